//! The table of real faults: what was kept under which, in how many histories.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::run::{Kind, Outcome};

/// Where the table begins on a page, and where it ends.
pub const MARKS: [&str; 2] = ["<!-- faults: begin -->", "<!-- faults: end -->"];

/// The row of histories in which all faults of a store are mixed.
pub const MIXED: &str = "all of these, mixed";

/// A column: a promise's number and how its checks begin what they say.
struct Column {
    head: &'static str,
    checks: &'static [&'static str],
    /// How often it was met, so that it was kept and not just left alone.
    met: fn(&Row) -> usize,
    /// How often a fault beyond the promise broke it.
    excused: fn(&Row) -> usize,
}

const fn column(
    head: &'static str,
    checks: &'static [&'static str],
    met: fn(&Row) -> usize,
) -> Column {
    Column { head, checks, met, excused: |_| 0 }
}

const COLUMNS: [Column; 9] = [
    Column {
        head: "1",
        checks: &["exclusion"],
        met: |row| row.whole.found.grants,
        excused: |row| row.whole.found.excused,
    },
    Column {
        head: "2",
        checks: &["token order", "fencing"],
        met: |row| row.whole.found.grants,
        excused: |row| row.whole.found.doubled,
    },
    column("3", &["taken away"], |row| row.whole.found.grants),
    column("8", &["told in time", "releases"], |row| row.whole.found.lost),
    column("11", &["residue"], |row| row.histories),
    column("12", &["abandoned"], |row| row.whole.found.abandoned),
    column("13", &["liveness"], |row| row.histories),
    column("14", &["answers"], |row| row.whole.found.asked),
    column("one order", &["linearizability"], |row| row.whole.operations),
];

/// The histories in which a fault struck.
#[derive(Clone, Debug, Default)]
struct Row {
    histories: usize,
    struck: usize,
    whole: Outcome,
}

/// One store's rows.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<&'static str, Row>,
}

impl Table {
    /// Adds a history to the row of each fault that struck in it; one in which they are `mixed` to
    /// the row of all.
    pub fn add(&mut self, outcome: &Outcome, mixed: bool) {
        let mut add = |fault, struck| {
            let row: &mut Row = self.rows.entry(fault).or_default();
            row.histories += 1;
            row.struck += struck;
            row.whole.add(outcome.clone());
        };
        if mixed {
            add(MIXED, outcome.faults.values().sum());
        } else {
            outcome.faults.iter().for_each(|(fault, struck)| add(fault, *struck));
        }
    }

    /// The table as text, its faults in the order of `faults`.
    #[must_use]
    pub fn render(&self, kind: Kind, faults: &[&'static str]) -> String {
        let title = kind.title();
        let heads: Vec<&str> = COLUMNS.iter().map(|it| it.head).collect();
        let mut out = format!(
            "### {title}, real\n\n| under | struck | histories | acquisitions | {} |\n",
            heads.join(" | ")
        );
        let _ = writeln!(out, "| --- | ---: | ---: | ---: |{}", " :-: |".repeat(COLUMNS.len()));
        let mut excused = Vec::new();
        for fault in faults.iter().chain([&MIXED]) {
            let Some(row) = self.rows.get(fault) else { continue };
            let Row { histories, struck, whole } = row;
            let _ = write!(out, "| {fault} | {struck} | {histories} | {} |", whole.found.asked);
            for column in &COLUMNS {
                let _ = write!(out, " {} |", column.cell(row));
            }
            out.push('\n');
            let (overlaps, back) = (whole.found.excused, whole.found.doubled);
            if overlaps > 0 {
                excused.push(format!("{fault} (promise 1: {overlaps} overlaps)"));
            }
            if back > 0 {
                excused.push(format!("{fault} (promise 2: {back} pairs of tokens)"));
            }
        }
        if !excused.is_empty() {
            let _ = write!(
                out,
                "\nWhere it says **no**, the store had forgotten what it acknowledged, or its clock \
                 was set forward: {}.\n",
                excused.join("; ")
            );
        }
        let all: usize = self.rows.values().map(|it| it.whole.operations).sum();
        let windows: usize = self.rows.values().map(|it| it.whole.windows).sum();
        let spoiled: usize = self.rows.values().map(|it| it.whole.spoiled).sum();
        let _ = write!(
            out,
            "\nTries: {all} operations in {windows} windows could be put in one order; {spoiled} \
             windows show nothing, because the store forgot, or too much went unanswered.\n\n"
        );
        out
    }
}

impl Column {
    fn cell(&self, row: &Row) -> String {
        let mine = |what: &&String| self.checks.iter().any(|check| what.starts_with(check));
        let broken = row.whole.broken.iter().filter(mine).count();
        match ((self.excused)(row), (self.met)(row)) {
            _ if broken > 0 => format!("**BROKEN** ({broken})"),
            (0, 0) => "–".to_owned(),
            (0, met) if self.head == "one order" => format!("yes ({met})"),
            (0, _) => "yes".to_owned(),
            _ => "**no**".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use fencelock_history::check;

    use super::*;

    fn history(faults: &[(&'static str, usize)]) -> Outcome {
        let mut outcome = Outcome {
            faults: faults.iter().copied().collect(),
            windows: 2,
            operations: 30,
            ..Outcome::default()
        };
        (outcome.found.asked, outcome.found.grants, outcome.found.lost) = (50, 40, 3);
        outcome
    }

    #[test]
    fn a_row_says_what_was_met_and_what_was_broken() {
        let mut table = Table::default();
        table.add(&history(&[("FLUSHALL", 4)]), false);
        let mut other = history(&[("FLUSHALL", 2)]);
        other.found.excused = 7;
        table.add(&other, false);
        let mut bad = history(&[("memory full", 1), ("FLUSHALL", 1)]);
        bad.broken.push("answers: p1 asked and never heard".to_owned());
        table.add(&bad, true);
        let text = table.render(Kind::Redis, &["FLUSHALL", "memory full"]);
        let rows: Vec<&str> = text.lines().filter(|it| it.starts_with("| ")).skip(2).collect();
        assert_eq!(
            rows,
            [
                "| FLUSHALL | 6 | 2 | 100 | **no** | yes | yes | yes | yes | – | yes | yes | yes (60) |",
                "| all of these, mixed | 2 | 1 | 50 | yes | yes | yes | yes | yes | – | yes | \
                 **BROKEN** (1) | yes (30) |",
            ]
        );
        assert!(text.contains("FLUSHALL (promise 1: 7 overlaps)"), "{text}");
        assert!(text.contains("90 operations in 6 windows"), "{text}");
    }

    #[test]
    fn the_page_has_room_for_the_table() {
        let page = include_str!("../../../../docs/guarantees.md");
        assert!(fencelock_history::page::put(page, MARKS, "").is_ok());
    }

    #[test]
    fn every_check_has_its_column() {
        for (check, promise) in check::JUDGEMENTS {
            let head = promise.to_string();
            let column = |it: &Column| it.head == head && it.checks.contains(&check);
            assert!(COLUMNS.iter().any(column), "{check}");
        }
        // How the judgements of a run begin.
        for check in ["liveness", "residue", "linearizability"] {
            assert!(COLUMNS.iter().any(|it| it.checks.contains(&check)), "{check}");
        }
    }
}
