//! How figures grow with callers and with locks.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::compare::measures::Dose;
use crate::compare::peers::{Entrant, Part};
use crate::compare::team::Team;
use crate::stats::Spread;

/// What grows with what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curves {
    /// What was measured.
    pub name: String,
    /// In what.
    pub unit: String,
    /// Over what.
    pub over: String,
    /// How many of that.
    pub steps: Vec<u64>,
    /// Each library's.
    pub lines: Vec<Line>,
}

/// One library's figures, one for each step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Its language.
    pub language: String,
    /// Its name.
    pub library: String,
    /// Whether it is Fencelock.
    pub ours: bool,
    /// The medians.
    pub figures: Vec<f64>,
}

/// One measure of growth.
struct Growth {
    name: &'static str,
    unit: &'static str,
    over: &'static str,
    steps: &'static [u64],
    processes: usize,
    order: fn(&Team, u64, u64) -> String,
    /// What is shown of pairs a second.
    shown: fn(f64) -> f64,
    who: &'static [(&'static str, &'static str)],
}

const GROWTH: [Growth; 3] = [
    Growth {
        name: "callers, each with a key of its own, in one process",
        unit: "pairs a second",
        over: "callers",
        steps: &[1, 4, 16, 64, 256],
        processes: 1,
        order: |team, step, span| format!("keys {step} {} {span}", team.key("many")),
        shown: |rate| rate,
        who: &[
            ("Rust", "fencelock"),
            ("Rust", "redis"),
            ("Java", "fencelock"),
            ("Java", "redisson-lock"),
            ("Python", "fencelock-asyncio"),
            ("Python", "redis-py-asyncio"),
            ("Go", "redsync"),
        ],
    },
    Growth {
        name: "callers on one key, in each of two processes",
        unit: "pairs a second",
        over: "callers in each",
        steps: &[1, 4, 16, 64],
        processes: 2,
        order: |team, step, span| format!("hot {step} {} {span}", team.key("two")),
        shown: |rate| rate,
        who: &[
            ("Rust", "fencelock"),
            ("Rust", "fencelock-no-handoff"),
            ("Java", "fencelock"),
            ("Java", "redisson-lock"),
            ("Java", "redisson-fair"),
            ("Python", "redis-py-asyncio"),
            ("Go", "redsync"),
        ],
    },
    Growth {
        name: "re-entry while other locks are held",
        unit: "ns",
        over: "locks held",
        steps: &[1, 10, 100, 1000],
        processes: 1,
        order: |team, step, span| format!("reenter {} {step} {span}", team.key("inner")),
        shown: |rate| 1e9 / rate,
        who: &[
            ("Rust", "fencelock"),
            ("C", "fencelock"),
            ("Java", "fencelock"),
            ("Java", "redisson-lock"),
            ("Python", "fencelock"),
            ("Node", "fencelock"),
        ],
    },
];

/// Measures all of them that have `only` in their name.
///
/// # Errors
/// When a driver does not answer.
pub fn measure(entrants: &[Entrant], url: &str, only: &str, dose: Dose) -> Result<Vec<Curves>> {
    let wanted = GROWTH.iter().filter(|it| it.name.contains(only));
    wanted.map(|growth| growth.measure(entrants, url, dose)).collect()
}

impl Growth {
    fn measure(&self, entrants: &[Entrant], url: &str, dose: Dose) -> Result<Curves> {
        eprintln!("  {}", self.name);
        let takes_part = |it: &&Entrant| self.who.contains(&(it.language, it.library));
        let taking_part = entrants.iter().filter(takes_part);
        let mut teams = Team::start(taking_part, self.processes, url)?;
        let mut figures = vec![Vec::new(); teams.len()];
        for step in self.steps {
            let mut rates = vec![Vec::new(); teams.len()];
            for round in 0..=dose.rounds.div_ceil(2) {
                for (team, rates) in teams.iter_mut().zip(&mut rates) {
                    let order = (self.order)(team, *step, dose.span * self.processes as u64);
                    let turn = team.turn(&order)?.ok_or("a driver cannot do its part")?;
                    if round > 0 {
                        rates.push(turn.rate);
                    }
                }
            }
            for (figures, rates) in figures.iter_mut().zip(rates) {
                figures.push((self.shown)(Spread::of(rates).median));
            }
        }
        let lines = teams.iter().zip(figures).map(|(team, figures)| Line {
            language: team.entrant.language.to_owned(),
            library: team.entrant.library.to_owned(),
            ours: team.entrant.part == Part::Ours,
            figures,
        });
        Ok(Curves {
            name: self.name.to_owned(),
            unit: self.unit.to_owned(),
            over: self.over.to_owned(),
            steps: self.steps.to_vec(),
            lines: lines.collect(),
        })
    }
}

impl Curves {
    /// In Markdown.
    pub fn markdown(&self) -> String {
        let heads: Vec<String> = self.steps.iter().map(u64::to_string).collect();
        let mut text = format!("| {}, by {} | | {} |\n", self.unit, self.over, heads.join(" | "));
        text += &format!("|---|---|{}\n", "---|".repeat(heads.len()));
        for line in &self.lines {
            let bold = if line.ours { "**" } else { "" };
            let figures: Vec<String> = line.figures.iter().map(|it| format!("{it:.0}")).collect();
            let Line { language, library, .. } = line;
            text += &format!("| {language} | {bold}{library}{bold} | {} |\n", figures.join(" | "));
        }
        text
    }
}
