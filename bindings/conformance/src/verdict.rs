//! What came of the scenes, by language and promise.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a scene is about: a column of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// A promise by its number.
    Promise(u8),
    /// Read-write locks.
    Readers,
    /// Semaphores.
    Permits,
}

impl std::fmt::Display for Column {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Column::Promise(number) => number.fmt(f),
            Column::Readers => f.write_str("readers"),
            Column::Permits => f.write_str("permits"),
        }
    }
}

/// What came of one scene with one language on one store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The promise was kept.
    Kept,
    /// It was not: what happened.
    Broken(String),
    /// There is nothing to test, and why.
    Empty(&'static str),
}

/// The verdicts of one store.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    rows: BTreeMap<String, BTreeMap<Column, Verdict>>,
    missing: BTreeMap<String, String>,
}

impl Matrix {
    /// Adds a verdict; a column with several scenes is kept when all of them say so.
    pub fn put(&mut self, language: &str, column: Column, verdict: Verdict) {
        let cells = self.rows.entry(language.to_owned()).or_default();
        let worse = |old: &Verdict| match (old, &verdict) {
            (Verdict::Broken(_), _) => false,
            (_, Verdict::Broken(_)) => true,
            (Verdict::Empty(_), _) => true,
            _ => false,
        };
        if cells.get(&column).is_none_or(worse) {
            cells.insert(column, verdict);
        }
    }

    /// Notes that a language could not take part.
    pub fn missing(&mut self, language: &str, why: &str) {
        self.missing.insert(language.to_owned(), why.to_owned());
    }

    /// What was broken, a line each.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (language, cells) in &self.rows {
            for (column, verdict) in cells {
                if let Verdict::Broken(what) = verdict {
                    let about = match column {
                        Column::Promise(number) => format!("promise {number}"),
                        modes => modes.to_string(),
                    };
                    found.push(format!("{language}, {about}: {what}"));
                }
            }
        }
        found
    }

    /// How many cells were kept, broken, and not tested.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let all = || self.rows.values().flat_map(BTreeMap::values);
        let count = |wanted: fn(&Verdict) -> bool| all().filter(|it| wanted(it)).count();
        (
            count(|it| *it == Verdict::Kept),
            count(|it| matches!(it, Verdict::Broken(_))),
            count(|it| matches!(it, Verdict::Empty(_))),
        )
    }

    /// The matrix as a table of Markdown, a column for each promise and mode, with the reasons of what is empty below it.
    #[must_use]
    pub fn render(&self, store: &str, columns: &[Column]) -> String {
        let heads: String = columns.iter().map(|it| format!(" {it} |")).collect();
        let mut out = format!("### {store}\n\n| language |{heads}\n| --- |");
        out += &" :-: |".repeat(columns.len());
        out.push('\n');
        let mut notes: Vec<&'static str> = Vec::new();
        for (language, cells) in &self.rows {
            let _ = write!(out, "| {language} |");
            for column in columns {
                let cell = match cells.get(column) {
                    Some(Verdict::Kept) => "yes".to_owned(),
                    Some(Verdict::Broken(_)) => "**BROKEN**".to_owned(),
                    Some(Verdict::Empty(why)) => {
                        let known = notes.iter().position(|it| it == why);
                        let note = known.unwrap_or_else(|| {
                            notes.push(why);
                            notes.len() - 1
                        });
                        format!("– ({})", note + 1)
                    }
                    None => "–".to_owned(),
                };
                let _ = write!(out, " {cell} |");
            }
            out.push('\n');
        }
        for (language, why) in &self.missing {
            let _ = writeln!(out, "| {language} |{} not run: {why}", " – |".repeat(columns.len()));
        }
        out.push('\n');
        for (number, why) in notes.iter().enumerate() {
            let _ = writeln!(out, "({}) {why}", number + 1);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_of_a_promise_counts() {
        let mut matrix = Matrix::default();
        matrix.put("c", Column::Promise(6), Verdict::Empty("no owners"));
        matrix.put("c", Column::Promise(6), Verdict::Kept);
        matrix.put("c", Column::Promise(6), Verdict::Empty("no owners"));
        assert_eq!(matrix.counts(), (1, 0, 0));
        matrix.put("c", Column::Promise(6), Verdict::Broken("two at once".to_owned()));
        matrix.put("c", Column::Promise(6), Verdict::Kept);
        matrix.put("c", Column::Readers, Verdict::Empty("nothing cancels"));
        assert_eq!(matrix.counts(), (0, 1, 1));
        assert_eq!(matrix.broken(), ["c, promise 6: two at once"]);
        let text = matrix.render("Redis", &[Column::Promise(6), Column::Readers]);
        assert!(
            text.contains("| 6 | readers |")
                && text.contains("**BROKEN**")
                && text.contains("(1) nothing cancels"),
            "{text}"
        );
    }
}
