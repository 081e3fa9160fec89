//! The checks on a history, one for each promise that a history can show.

use crate::record::Record;

mod found;
mod holds;
mod judge;
mod mode;
mod numbers;
mod permits;
mod stretch;

pub use found::Found;
use holds::{End, Story};
pub(crate) use mode::Mode;
use numbers::Numbers;

/// How the judgements begin what they say, and the promise that each is about.
pub const JUDGEMENTS: [(&str, u8); 8] = [
    ("exclusion", 1),
    ("token order", 2),
    ("fencing", 2),
    ("taken away", 3),
    ("told in time", 8),
    ("releases", 8),
    ("abandoned", 12),
    ("answers", 14),
];

/// Judges a whole history.
///
/// # Errors
/// The promises that it breaks, each with what happened.
pub fn all(records: &[Record]) -> Result<Found, Broken> {
    let mut sorted = records.to_vec();
    sorted.sort_by_key(|record| record.at);
    let story = Story::read(&sorted);
    let mut broken = Vec::new();
    let mut found = Found {
        asked: story.asked.len(),
        grants: story.holds.len(),
        lost: story.holds.iter().filter(|hold| hold.lost.is_some()).count(),
        killed: story.holds.iter().filter(|hold| hold.end == End::Killed).count(),
        converted: story.holds.iter().flat_map(|it| &it.turns).filter(|it| it.sure).count(),
        abandoned: story.holds.iter().filter(|hold| hold.abandoned == "yes").count(),
        refused_writes: sorted
            .iter()
            .filter(|it| it.is("wrote") || it.is("read"))
            .filter(|it| it.get("accepted") == Some("Ok(false)"))
            .count(),
        ..Found::default()
    };
    for (lock, stretches) in &stretch::by_lock(&story.holds) {
        let numbers = Numbers::read(&story, lock, stretches);
        judge::exclusion(&story, stretches, &numbers, &mut found, &mut broken);
        judge::tokens(&story, stretches, &mut found, &mut broken);
        judge::abandoned(&story, stretches, &mut broken);
    }
    judge::told(&story, &mut found, &mut broken);
    judge::taken_away(&story, &mut broken);
    judge::releases(&story, &mut broken);
    judge::writes(&story, &sorted, &mut broken);
    if broken.is_empty() { Ok(found) } else { Err(Broken(broken)) }
}

/// The promises that a history breaks.
#[derive(Clone, PartialEq, Eq)]
pub struct Broken(pub Vec<String>);

impl std::fmt::Debug for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} broken promises", self.0.len())?;
        self.0.iter().take(20).try_for_each(|what| write!(f, "\n  {what}"))
    }
}

#[cfg(test)]
mod tests;
