//! What a holder is told of its predecessor.

use std::collections::BTreeSet;

use crate::reply::Abandoned;
use crate::zookeeper::name::{Participant, order};
use crate::zookeeper::note::Note;

/// So many readers may have come and gone one after the other, and none be missed.
const MOST: usize = 10_000;

/// What the last list showed while others came before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct View {
    /// The first in the queue: it held the lock.
    pub first: i32,
    /// It reads.
    pub first_reads: bool,
    /// Whether that one is one of ours, who say so when they release.
    pub first_is_ours: Option<bool>,
    /// Those between it and oneself who want the lock for themselves.
    pub between: Vec<i32>,
    /// The readers that any list showed: however they went, they left nothing half done.
    pub readers: BTreeSet<i32>,
}

impl View {
    /// What the participant at this place sees, who saw `older` before.
    pub fn of(queue: &[Participant], at: usize, older: Option<View>) -> View {
        let first = &queue[0];
        let (known, mut readers) = match older {
            Some(older) => {
                (older.first_is_ours.filter(|_| older.first == first.sequence), older.readers)
            }
            None => (None, BTreeSet::new()),
        };
        let (reads, writes): (Vec<_>, Vec<_>) =
            queue[..at].iter().partition(|one| one.kind.reads());
        readers.extend(reads.iter().map(|one| one.sequence));
        View {
            first: first.sequence,
            first_reads: first.kind.reads(),
            first_is_ours: known,
            between: writes
                .iter()
                .map(|one| one.sequence)
                .filter(|sequence| *sequence != first.sequence)
                .collect(),
            readers,
        }
    }

    /// Whether nobody but readers stood between two numbers.
    fn read_between(&self, from: i32, to: i32) -> bool {
        let between = (1..).map(|ahead: i32| from.wrapping_add(ahead)).take_while(|it| *it != to);
        let mut between = between.take(MOST);
        between.all(|sequence| self.readers.contains(&sequence))
    }

    /// Who is let in beside readers sees them.
    pub fn beside(queue: &[Participant], at: usize, older: Option<View>) -> View {
        match older {
            Some(mut older) => {
                older.readers.extend(queue[..at].iter().map(|one| one.sequence));
                older
            }
            None => View::of(queue, at, None),
        }
    }
}

/// Whether the first of two numbers comes before the other.
fn precedes(a: i32, b: i32) -> bool {
    order(a, b).is_lt()
}

/// Whether the previous holder released, as far as it can be proven.
///
/// `own` is the number of the new holder, `reads` whether it reads, `view` what it saw while it waited.
/// A holder says when it has held for a moment and when it releases; a participant of Curator says
/// neither. A reader says what it was told, as it goes: it mends nothing.
pub(crate) fn verdict(note: Option<Note>, own: i32, reads: bool, view: Option<&View>) -> Abandoned {
    let gone_by_itself = |view: &View| match view.first_is_ours {
        // It held the lock, and would have said that it released.
        Some(true) if !view.first_reads || planted!(ZkLostReaderTold) => Abandoned::Yes,
        _ => Abandoned::Unknown,
    };
    let Some(note) = note else { return view.map_or(Abandoned::Unknown, gone_by_itself) };
    let unsure = match note.abandoned {
        Abandoned::Yes => Abandoned::Yes,
        _ => Abandoned::Unknown,
    };
    if !precedes(note.sequence, own) {
        // Only readers hold beside a reader: a later one has gone before. Otherwise the lock's node was
        // made anew in between.
        return if reads && note.released { note.abandoned } else { Abandoned::Unknown };
    }
    if !note.released {
        return Abandoned::Yes;
    }
    match view {
        Some(view)
            if precedes(note.sequence, view.first)
                && !(view.first_reads && view.read_between(note.sequence, view.first)) =>
        {
            match gone_by_itself(view) {
                Abandoned::Yes => Abandoned::Yes,
                _ => unsure,
            }
        }
        // Whoever stood between the last that released and us may have held for a moment.
        Some(view) if view.between.iter().any(|one| precedes(note.sequence, *one)) => unsure,
        Some(_) => note.abandoned,
        None if note.sequence.wrapping_add(1) == own => note.abandoned,
        None => unsure,
    }
}
