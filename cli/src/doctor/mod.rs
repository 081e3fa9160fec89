//! `fencelock doctor`: what a store is like, what that means for locks, what to do.

mod access;
mod finding;
mod sqlite;
mod survey;
mod trial;
mod watch;

use fencelock::text;
use fencelock::{Capabilities, Client};
use serde::Serialize;

use crate::args::{Common, Doctor};
use crate::doctor::finding::{Finding, Severity};
use crate::doctor::trial::Trips;
use crate::doctor::watch::Seen;
use crate::failure::Failure;
use crate::view::{BAD, BOLD, DIM, GOOD, ODD, View, print};
use crate::{client, exit, span, store};

#[derive(Serialize)]
struct DoctorReport {
    store: String,
    worst: Severity,
    findings: Vec<Finding>,
}

/// Checks the store.
pub fn doctor(common: &Common, asked: &Doctor) -> Result<u8, Failure> {
    let view = View::new(common);
    let url = store::url(common)?;
    let shown = store::shown(&url)?;
    if let (Some(span), false) = (asked.watch, view.json) {
        eprintln!("watching the locks for {} …", span::show(span));
    }
    let findings = client::runtime()?.block_on(examine(&url, asked));
    let worst = findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Good);
    if view.json {
        view.print_json(&DoctorReport { store: shown, worst, findings })?;
    } else {
        print(&page(&shown, &findings, worst, view))?;
    }
    Ok(if worst == Severity::Problem { exit::NO } else { exit::DONE })
}

/// Gathers what can be known. What stands in the way becomes a finding itself.
async fn examine(url: &str, asked: &Doctor) -> Vec<Finding> {
    let mut findings = Vec::new();
    let connecting = Client::builder(url).label(client::label("fencelock doctor")).connect();
    match connecting.await {
        Ok(client) => {
            findings.push(connection(&client.capabilities()));
            use_it(&client, asked, &mut findings).await;
            client.close().await;
        }
        Err(error) => {
            let meaning = "the store cannot be used";
            findings.push(Finding::new(Severity::Problem, "connection", error.message(), meaning));
        }
    }
    // The servers' own word is worth hearing even when no lock could be taken.
    let broken = findings.iter().any(|finding| finding.severity == Severity::Problem);
    match survey::findings(url).await {
        Ok(told) => merge(&mut findings, told),
        Err(_) if broken => {}
        Err(error) => findings.push(Finding::new(
            Severity::Warning,
            "server",
            error.message(),
            "the servers could not be examined",
        )),
    }
    if let Some(file) = store::file(url) {
        merge(&mut findings, sqlite::findings(&file));
    }
    findings
}

/// The store's own findings; those found by use come first and count.
fn merge(findings: &mut Vec<Finding>, told: Vec<Finding>) {
    for finding in told {
        if findings.iter().all(|known| known.name != finding.name) {
            findings.push(finding);
        }
    }
}

fn connection(can: &Capabilities) -> Finding {
    let finding = if can.processes {
        Finding::new(Severity::Good, "connection", can.store, "connected; processes may share it")
    } else {
        Finding::new(
            Severity::Warning,
            "connection",
            can.store,
            "this store lives and ends with one process, and locks nobody else out",
        )
        .advise("for several processes use sqlite:PATH, for several machines redis://HOST")
    };
    let lacks: Vec<&str> = [
        (can.durable, "locks end with the process"),
        (can.owners, "owners do not travel"),
        (can.leases, "explicit leases do not end by themselves"),
        (can.abandoned, "an abandoned lock is not told"),
    ]
    .into_iter()
    .filter_map(|(has, lack)| (!has && can.processes).then_some(lack))
    .collect();
    if lacks.is_empty() {
        finding
    } else {
        finding.advise(format!("know that {}", lacks.join(", ")))
    }
}

async fn use_it(client: &Client, asked: &Doctor, findings: &mut Vec<Finding>) {
    findings.push(trial::lock(client).await);
    let trips = match Trips::measure(client).await {
        Ok(trips) => trips,
        Err(error) => {
            findings.push(Finding::new(
                Severity::Problem,
                "round_trip",
                error.message(),
                "the store stopped answering",
            ));
            return;
        }
    };
    findings.extend([trips.finding(), trips.clock()]);
    let lease = match asked.watch {
        Some(span) => Seen::watch(client, &asked.prefix, span)
            .await
            .map(|seen| seen.finding(span, &trips))
            .unwrap_or_else(|error| {
                let meaning = "watching the locks failed";
                Finding::new(Severity::Warning, "lease", error.message(), meaning)
            }),
        None => Finding::new(
            Severity::Note,
            "lease",
            "not measured",
            "how long holds last is seen only by watching",
        )
        .advise("run doctor --watch 1m while the locks are in use"),
    };
    findings.push(lease);
}

fn page(store: &str, findings: &[Finding], worst: Severity, view: View) -> String {
    let mut out = format!("{}\n\n", view.paint(BOLD, text::visible(store)));
    for finding in findings {
        let (mark, style) = match finding.severity {
            Severity::Good => ("✓", GOOD),
            Severity::Note => ("·", DIM),
            Severity::Warning => ("!", ODD),
            Severity::Problem => ("✗", BAD),
        };
        let name = format!("{:<12}", finding.name.replace('_', " "));
        let value = text::visible(&finding.value);
        out += &format!("{} {} {value}\n", view.paint(style, mark), view.paint(BOLD, name));
        out += &format!("{:15}{}\n", "", view.paint(DIM, text::visible(&finding.meaning)));
        if let Some(advice) = &finding.advice {
            out += &format!("{:15}→ {}\n", "", text::visible(advice));
        }
    }
    let (style, end) = match worst {
        Severity::Good | Severity::Note => (GOOD, "Locks work here."),
        Severity::Warning => (ODD, "Locks work here; see the warnings marked !."),
        Severity::Problem => (BAD, "Locks cannot be relied on here; see what is marked ✗."),
    };
    out += &format!("\n{}\n", view.paint(style, end));
    out
}
