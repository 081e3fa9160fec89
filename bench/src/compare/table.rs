//! What came of a measure.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::compare::peers::{Entrant, Part};
use crate::stats::Spread;

/// Whether a greater figure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// It is: a rate.
    More,
    /// It is not: a time, or a weight.
    Less,
}

/// What came of a measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// What was measured.
    pub name: String,
    /// In what.
    pub unit: String,
    /// Whether a greater figure is the better one.
    pub better: Better,
    /// Each library's.
    pub rows: Vec<Row>,
}

/// What came of it for one library.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its language.
    pub language: String,
    /// Its name.
    pub library: String,
    /// Whether it is Fencelock.
    pub ours: bool,
    /// The figure of all rounds; none at all is infinite.
    #[serde(with = "crate::stats::finite")]
    pub figure: Spread,
    /// How many times as good ours in the same language is, round by round; Rust's for Go.
    pub ratio: Option<Spread>,
    /// More of it, by name.
    pub more: Vec<(String, f64)>,
    #[serde(skip)]
    rounds: Vec<f64>,
    #[serde(skip)]
    entrant: Option<Entrant>,
}

impl Row {
    /// A row of what a library did in each round.
    pub fn new(entrant: &Entrant, rounds: Vec<f64>) -> Row {
        Row {
            language: entrant.language.to_owned(),
            library: entrant.library.to_owned(),
            ours: entrant.part == Part::Ours,
            figure: Spread::of(rounds.iter().copied()),
            ratio: None,
            more: Vec::new(),
            rounds,
            entrant: Some(entrant.clone()),
        }
    }

    /// Adds a figure.
    pub fn more(&mut self, name: &str, figure: f64) {
        self.more.push((name.to_owned(), figure));
    }

    /// Whether it is this library's.
    pub fn is_of(&self, entrant: &Entrant) -> bool {
        self.language == entrant.language && self.library == entrant.library
    }
}

impl Table {
    /// A table, with the ratios of its rows.
    pub fn new(name: &str, unit: &str, better: Better, mut rows: Vec<Row>) -> Table {
        let others = rows.clone();
        for row in &mut rows {
            let Some(entrant) = &row.entrant else { continue };
            let rival = |it: &&Row| it.entrant.as_ref().is_some_and(|it| entrant.is_beside(it));
            let Some(ours) = others.iter().find(rival).filter(|it| !it.is_of(entrant)) else {
                continue;
            };
            let ratios = ours.rounds.iter().zip(&row.rounds).map(|(ours, this)| match better {
                Better::More => ours / this,
                Better::Less => this / ours,
            });
            row.ratio = Some(Spread::of(ratios)).filter(|it| it.median.is_finite());
        }
        Table { name: name.to_owned(), unit: unit.to_owned(), better, rows }
    }

    /// In Markdown.
    pub fn markdown(&self) -> String {
        let Some(first) = self.rows.first() else { return String::new() };
        let more: Vec<&str> = first.more.iter().map(|it| it.0.as_str()).collect();
        let mut text = format!("| | | {} | ours is | {} |\n", self.unit, more.join(" | "));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "|---|---|---|---|{}", "---|".repeat(more.len().max(1)));
        for row in &self.rows {
            let bold = if row.ours { "**" } else { "" };
            let more: Vec<String> = row.more.iter().map(|it| number(it.1)).collect();
            let _ = writeln!(
                text,
                "| {} | {bold}{}{bold} | {} | {} | {} |",
                row.language,
                row.library,
                spread(row.figure),
                row.ratio.map_or(String::new(), |it| format!("{} ×", spread(it))),
                more.join(" | ")
            );
        }
        text
    }
}

/// Least – **median** – greatest.
fn spread(of: Spread) -> String {
    if of.min == of.max {
        return number(of.median);
    }
    format!("{} – **{}** – {}", number(of.min), number(of.median), number(of.max))
}

/// With three digits that say something.
fn number(figure: f64) -> String {
    match figure.abs() {
        _ if !figure.is_finite() => "never".to_owned(),
        size if size == 0.0 || size >= 100.0 => format!("{figure:.0}"),
        size if size >= 10.0 => format!("{figure:.1}"),
        size if size >= 0.1 => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    }
}
