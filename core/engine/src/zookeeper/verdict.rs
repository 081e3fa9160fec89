//! What a holder is told of its predecessor.

use crate::reply::Abandoned;
use crate::zookeeper::name::order;
use crate::zookeeper::note::Note;
use crate::zookeeper::place::View;

/// Whether the first of two numbers comes before the other.
fn precedes(a: i32, b: i32) -> bool {
    order(a, b).is_lt()
}

/// Whether the previous holder released, as far as it can be proven.
///
/// `own` is the number of the new holder, `view` what it saw while it waited. A holder says when
/// it has held for a moment and when it releases; a participant of Curator says neither.
pub(crate) fn verdict(note: Option<Note>, own: i32, view: Option<&View>) -> Abandoned {
    let gone_by_itself = |view: &View| match view.first_is_ours {
        // It held the lock, and would have said that it released.
        Some(true) => Abandoned::Yes,
        _ => Abandoned::Unknown,
    };
    let Some(note) = note else { return view.map_or(Abandoned::Unknown, gone_by_itself) };
    let unsure = match note.abandoned {
        Abandoned::Yes => Abandoned::Yes,
        _ => Abandoned::Unknown,
    };
    if !precedes(note.sequence, own) {
        // The lock's node was made anew in between.
        return Abandoned::Unknown;
    }
    if !note.released {
        return Abandoned::Yes;
    }
    match view {
        Some(view) if precedes(note.sequence, view.first) => match gone_by_itself(view) {
            Abandoned::Yes => Abandoned::Yes,
            _ => unsure,
        },
        // Whoever stood between the last that released and us may have held for a moment.
        Some(view) if view.between.iter().any(|one| precedes(note.sequence, *one)) => unsure,
        Some(_) => note.abandoned,
        None if note.sequence.wrapping_add(1) == own => note.abandoned,
        None => unsure,
    }
}
