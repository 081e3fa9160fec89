//! What a hold is from one conversion to the next.

use std::collections::BTreeMap;
use std::ops::Deref;

use crate::check::holds::{End, Hold};
use crate::check::mode::Mode;

/// A part of a hold in which it has one mode and one token; most holds have one.
#[derive(Debug)]
pub(crate) struct Stretch<'a> {
    pub hold: &'a Hold,
    pub mode: Mode,
    pub token: u64,
    /// When it was granted, or converted. What becomes a reader writes no more from when it asks for
    /// that; what becomes a writer may from when it hears of it.
    pub from: u64,
    /// The instant up to which its holder would have acted on it.
    pub trusted: u64,
    pub end: End,
    /// The store has said what it is.
    pub sure: bool,
    /// It is the first, whose grant told what became of the holder before.
    pub told: bool,
}

impl Deref for Stretch<'_> {
    type Target = Hold;

    fn deref(&self) -> &Hold {
        self.hold
    }
}

impl Stretch<'_> {
    /// Its holder heard of it when it was over already.
    pub fn is_over(&self) -> bool {
        self.hold.until <= self.from
    }
}

/// All holds in their stretches, by lock and in the order in which these began.
pub(crate) fn by_lock(holds: &[Hold]) -> BTreeMap<&str, Vec<Stretch<'_>>> {
    let mut locks: BTreeMap<&str, Vec<Stretch<'_>>> = BTreeMap::new();
    for hold in holds {
        locks.entry(&hold.lock).or_default().extend(of(hold));
    }
    for stretches in locks.values_mut() {
        stretches.sort_by_key(|it| it.from);
    }
    locks
}

fn of(hold: &Hold) -> Vec<Stretch<'_>> {
    let mut stretches = vec![Stretch {
        hold,
        mode: hold.mode,
        token: hold.token,
        from: hold.granted,
        trusted: hold.trusted(),
        end: hold.end.clone(),
        sure: true,
        told: true,
    }];
    for turn in &hold.turns {
        if let Some(last) = stretches.last_mut() {
            last.trusted = last.trusted.min(turn.from);
            // A writer that became a reader has left nothing half done.
            last.end = if turn.sure { End::Released } else { End::Dropped };
        }
        stretches.push(Stretch {
            hold,
            mode: turn.mode,
            token: turn.token,
            from: turn.from,
            trusted: hold.trusted(),
            end: hold.end.clone(),
            sure: turn.sure,
            told: false,
        });
    }
    stretches
}
