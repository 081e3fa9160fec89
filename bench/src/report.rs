//! The table and the file.

use std::fmt::{self, Write as _};
use std::path::Path;

use fencelock_history::page;
use serde::{Deserialize, Serialize};

use crate::case::{Measured, Times};
use crate::gauge::Gauge;
use crate::machine::Machine;
use crate::stats::Spread;
use crate::{Aim, Result};

/// Where a page has what is written here.
pub const MARKS: [&str; 2] = ["<!-- figures: begin -->", "<!-- figures: end -->"];

/// All of one run of the program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where.
    pub machine: Machine,
    /// How many rounds each figure has.
    pub rounds: usize,
    /// On all processors.
    pub unpinned: Part,
    /// Server, client and second process on one processor.
    pub pinned: Part,
}

/// A run on ZooKeeper.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EnsembleReport {
    /// Where.
    pub machine: Machine,
    /// How many rounds each figure has.
    pub rounds: usize,
    /// On one server.
    pub alone: Part,
    /// On an ensemble of three, all on this machine.
    pub ensemble: Part,
}

/// A run on Redis servers that stand together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeploymentsReport {
    /// Where.
    pub machine: Machine,
    /// How many rounds each figure has.
    pub rounds: usize,
    /// A master with two replicas, and its Sentinels.
    pub sentinel: Part,
    /// Three masters.
    pub cluster: Part,
    /// Three servers that know nothing of each other.
    pub quorum: Part,
}

/// A run with many that wait.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueueReport {
    /// Where.
    pub machine: Machine,
    /// How many rounds each figure has.
    pub rounds: usize,
    /// Server and clients on one machine.
    pub queue: Part,
}

/// The figures of one way of running.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The machine's load before.
    pub load_before: f64,
    /// The machine's load after.
    pub load_after: f64,
    /// Times.
    pub cases: Vec<Measured>,
    /// What is counted or weighed.
    pub gauges: Vec<Gauge>,
}

impl Part {
    /// A table of it in Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| | | each | a second | ours / this | aim |\n|---|---|---|---|---|---|\n",
        );
        // Writing to a string cannot fail.
        for case in &self.cases {
            for (at, side) in case.sides.iter().enumerate() {
                let _ = line(&mut text, case, at, side);
            }
        }
        for gauge in &self.gauges {
            let Gauge { name, unit, value, aim } = gauge;
            let digits = match value.median {
                _ if unit == "×" => 2,
                below if below < 100.0 => 1,
                _ => 0,
            };
            let _ = writeln!(
                text,
                "| {name} | | {} {unit} | | | {} |",
                spread(*value, 1.0, digits),
                aim.map_or(String::new(), |aim| format!(
                    "≤ {aim} {unit}: {}",
                    verdict(gauge.is_met())
                ))
            );
        }
        text
    }
}

/// A run as a page has it: the machine, then each way of running under its title.
pub fn figures(machine: &Machine, rounds: usize, parts: &[(&str, &Part)]) -> String {
    let versions = machine.versions.iter().map(|(name, version)| format!("{name} {version}; "));
    let mut text = format!(
        "{}, {} processors, {}; {}{}; {rounds} rounds. Least – **median** – greatest.\n",
        machine.cpu,
        machine.cpus,
        machine.kernel,
        versions.collect::<String>(),
        machine.rustc,
    );
    for (title, part) in parts {
        let (before, after) = (part.load_before, part.load_after);
        // Writing to a string cannot fail.
        let _ =
            write!(text, "\n## {title} (load {before} before, {after} after)\n\n{}", part.table());
    }
    text
}

/// Puts it between the marks of a page.
///
/// # Errors
/// When the page cannot be read or written, or has no marks.
pub fn put(page: &Path, figures: &str) -> Result<()> {
    let old = std::fs::read_to_string(page)?;
    std::fs::write(page, page::put(&old, MARKS, figures)?)?;
    Ok(())
}

fn line(text: &mut String, case: &Measured, at: usize, side: &Times) -> fmt::Result {
    let (unit, divisor) = if side.nanos.median < 2000.0 { ("ns", 1.0) } else { ("µs", 1000.0) };
    let rate = 1e9 / side.nanos.median;
    writeln!(
        text,
        "| {} | {} | {} {unit} | {} | {} | {} |",
        if at == 0 { &case.name } else { "" },
        side.name,
        spread(side.nanos, divisor, 1),
        if rate >= 1e6 { format!("{:.2} M", rate / 1e6) } else { format!("{:.1} k", rate / 1e3) },
        if at == 0 { String::new() } else { spread(side.ratio, 1.0, 2) },
        if at == 0 { aim(case) } else { String::new() }
    )
}

fn aim(case: &Measured) -> String {
    let wanted = match case.aim {
        Aim::Ratio(limit) => format!("≤ {limit} ×"),
        Aim::Nanos(limit) => format!("≤ {limit} ns"),
        Aim::PerSecond(least) => format!("≥ {} M/s", least / 1e6),
        Aim::None => return String::new(),
    };
    format!("{wanted}: {}", verdict(case.met))
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "missed" }
}

/// Least – **median** – greatest.
fn spread(of: Spread, divisor: f64, digits: usize) -> String {
    let [min, median, max] = [of.min, of.median, of.max].map(|figure| figure / divisor);
    format!("{min:.digits$} – **{median:.digits$}** – {max:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_have_a_place_for_the_figures() {
        let part = |load_before| Part {
            load_before,
            load_after: 0.25,
            cases: Vec::new(),
            gauges: vec![Gauge::of("waiters".to_owned(), "MB", vec![3.0], Some(10.0))],
        };
        let machine = Machine::here([("redis", "7.0.15".to_owned())]);
        let text = figures(&machine, 11, &[("Alone", &part(1.5)), ("Together", &part(2.5))]);
        assert!(text.contains("redis 7.0.15; ") && text.contains("; 11 rounds."), "{text}");
        assert!(text.contains("\n## Together (load 2.5 before, 0.25 after)\n\n| | |"), "{text}");
        for old in [
            include_str!("../../docs/benchmarks/figures/deployments.md"),
            include_str!("../../docs/benchmarks/figures/floors.md"),
            include_str!("../../docs/benchmarks/figures/queue.md"),
            include_str!("../../docs/benchmarks/figures/zookeeper.md"),
        ] {
            let new = page::put(old, MARKS, &text).unwrap();
            assert!(new.starts_with(old.split(MARKS[0]).next().unwrap()));
            assert!(new.contains("| waiters | | 3.0 – **3.0** – 3.0 MB | | | ≤ 10 MB: met |"));
            assert!(!new.contains("| fencelock |"), "the old figures are gone");
        }
    }
}
