//! All languages together on one hot lock, under faults.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use fencelock_nemesis::run::{Kind, Outcome, Plan, run};
use fencelock_nemesis::{Record, Role};

/// Does a run: faults drawn from the seed for so long, then a quiet part in which all must end.
///
/// # Errors
/// When what it needs cannot be started; a broken promise is in the outcome.
pub fn mix(kind: Kind, seed: u64, span: Duration, cast: &[Role]) -> io::Result<Outcome> {
    run(Plan { cast: cast.to_vec(), locks: vec!["stock"], ..Plan::new(seed, span, kind) })
}

/// What each language met, as a table.
#[must_use]
pub fn render(records: &[Record], cast: &[Role]) -> String {
    const EVENTS: [(&str, &str); 6] = [
        ("asked", "asked"),
        ("granted", "granted"),
        ("released", "released"),
        ("lost", "lost and told"),
        ("failed", "refused"),
        ("wrote", "wrote"),
    ];
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for record in records {
        let name = record.who.trim_end_matches(|it: char| it.is_ascii_digit());
        *counts.entry((name, &record.event)).or_default() += 1;
    }
    let heads: String = EVENTS.iter().map(|it| format!(" {} |", it.1)).collect();
    let mut out = format!("| language |{heads}\n| --- |{}\n", " ---: |".repeat(EVENTS.len()));
    for role in cast {
        let _ = write!(out, "| {} |", role.name);
        for (event, _) in EVENTS {
            let count = counts.get(&(role.name.as_str(), event)).copied().unwrap_or(0);
            let _ = write!(out, " {count} |");
        }
        out.push('\n');
    }
    out
}
