//! `fencelock quorum`.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use fencelock::redis::{QuorumStatus, Standing, Voter, quorum_init, quorum_status};
use fencelock::{StoreUrl, text};
use serde::Serialize;

use crate::args::{Common, Quorum, QuorumCommand};
use crate::failure::Failure;
use crate::table::{Cell, Side, Table};
use crate::view::{BAD, GOOD, ODD, View, print};
use crate::{client, exit, span, store};

const DANGER: &str = "\
Danger: a server that has forgotten a vote gives it again. Two clients may then hold one lock; only a
check of the fencing token at what the lock protects stops the first one's writes. Go on if the servers
are new, or all clients have been stopped for max_lease.";

#[derive(Serialize)]
struct Report {
    store: String,
    fingerprint: String,
    max_lease_ms: u64,
    majority: usize,
    voters: usize,
    servers: Vec<ServerReport>,
}

#[derive(Serialize)]
struct ServerReport {
    server: String,
    /// Why it said nothing; null when it answered.
    error: Option<String>,
    role: Option<String>,
    run: Option<String>,
    fingerprint: Option<String>,
    /// For how long it has remembered; null when it has forgotten, or was never asked.
    age_ms: Option<u64>,
    votes: bool,
    /// Until it votes by itself, if that is a matter of time.
    waits_ms: Option<u64>,
    clock_ahead_ms: Option<i64>,
}

/// Looks at the servers of a quorum, or lets them vote.
pub fn quorum(common: &Common, asked: &Quorum) -> Result<u8, Failure> {
    let view = View::new(common);
    let url = match &asked.what {
        QuorumCommand::Status(asked) => asked.url.clone(),
        QuorumCommand::Init(asked) => asked.url.clone(),
    };
    let url = url.map_or_else(|| store::url(common), Ok)?;
    let shown = store::shown(&url)?;
    if !StoreUrl::parse(&url)?.scheme().ends_with("+quorum") {
        let message = format!("{shown} is no quorum: name one as redis+quorum://HOST,HOST,HOST");
        return Err(Failure::with(exit::USAGE, message));
    }
    let runtime = client::runtime()?;
    let status = match &asked.what {
        QuorumCommand::Status(_) => runtime.block_on(quorum_status(&url))?,
        QuorumCommand::Init(asked) => {
            let status = runtime.block_on(quorum_status(&url))?;
            if asked.yes {
                eprintln!("{DANGER}");
            } else {
                ask(&page(&shown, &status, view), view)?;
            }
            runtime.block_on(quorum_init(&url))?
        }
    };
    match view.json {
        true => view.print_json(&report(shown, &status))?,
        false => print(&page(&shown, &status, view))?,
    }
    Ok(if status.voters() < status.majority { exit::NO } else { exit::DONE })
}

fn report(store: String, status: &QuorumStatus) -> Report {
    let server = |(node, said): &(_, Result<Voter, String>)| {
        let voter = said.as_ref().ok();
        let standing = voter.map(|voter| voter.standing);
        ServerReport {
            server: format!("{node}"),
            error: said.as_ref().err().cloned(),
            role: voter.map(|voter| voter.role.clone()),
            run: voter.map(|voter| voter.run.clone()),
            fingerprint: voter.and_then(|voter| voter.fingerprint.clone()),
            age_ms: voter.and_then(|voter| voter.age).map(millis),
            votes: standing == Some(Standing::Votes),
            waits_ms: standing.and_then(|standing| match standing {
                Standing::Waits(left) => Some(millis(left)),
                _ => None,
            }),
            clock_ahead_ms: voter.map(|voter| voter.clock_ahead / 1_000),
        }
    };
    Report {
        store,
        fingerprint: status.fingerprint.clone(),
        max_lease_ms: millis(status.max_lease),
        majority: status.majority,
        voters: status.voters(),
        servers: status.servers.iter().map(server).collect(),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn page(store: &str, status: &QuorumStatus, view: View) -> String {
    let columns = ["server", "state", "role", "remembers for", "run", "list"];
    let mut table = Table::new(columns.map(|column| (column, Side::Left)));
    for (node, said) in &status.servers {
        let node = Cell::from(node);
        match said {
            Ok(voter) => {
                let style = if voter.standing == Standing::Votes { GOOD } else { ODD };
                let run: String = voter.run.chars().take(8).collect();
                let whole = |age: Duration| span::show(Duration::from_secs(age.as_secs()));
                table.row([
                    node,
                    Cell::new(style, voter.standing.to_string()),
                    Cell::from(text::visible(&voter.role)),
                    Cell::from(voter.age.map_or("-".to_owned(), whole)),
                    Cell::from(text::visible(&run)),
                    Cell::from(text::visible(voter.fingerprint.as_deref().unwrap_or("-"))),
                ]);
            }
            Err(why) => {
                let rest = ["-"; 4].map(Cell::from);
                let why = Cell::new(BAD, text::visible(why));
                table.row([node, why].into_iter().chain(rest));
            }
        }
    }
    let (votes, all) = (status.voters(), status.servers.len());
    let enough = match votes >= status.majority {
        true => view.paint(GOOD, "locks work"),
        false => view.paint(BAD, "nobody gets a lock"),
    };
    format!(
        "{}, list {}, max_lease {}\n\n{}\n{votes} of {all} give votes, and a lock takes {}: {enough}\n",
        text::visible(store),
        status.fingerprint,
        span::show(status.max_lease),
        table.render(view),
        status.majority,
    )
}

/// Asks the person at the terminal; without one, refuses.
fn ask(page: &str, view: View) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::with(
            exit::USAGE,
            "to let the servers of a quorum vote without a terminal, say --yes. Where one has forgotten a \
             vote that lasts, two clients may hold one lock; only a check of the fencing token stops the \
             first one's writes",
        ));
    }
    let mut err = std::io::stderr();
    write!(err, "{page}\n{}\nLet all of these servers vote? [y/N] ", view.paint(ODD, DANGER))?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::with(exit::NO, "nothing was written"))
}
