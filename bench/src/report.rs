//! The table and the file.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

use crate::Aim;
use crate::case::{Measured, Times};
use crate::gauge::Gauge;
use crate::machine::Machine;
use crate::stats::Spread;

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
            let digits = if value.median < 100.0 { 1 } else { 0 };
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
