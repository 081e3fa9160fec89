//! The search for an order in which what a window's callers saw could have happened.
//!
//! The algorithm is Wing and Gong's ("Testing and verifying concurrent objects", 1993) with Lowe's
//! memory of what was tried ("Testing for linearizability", 2017): from the states of lock and
//! operations that were reached, each is looked at once. A refused try changes nothing, so it is put
//! as early as it fits, and only what changes the lock is a choice. In a window nobody waits, so that a
//! try is refused by those who hold; where tries stand in line, by others that are under way, too.

use std::collections::{BTreeMap, HashSet};

use crate::check::Mode;
use crate::linear::Tries;

/// What was asked of the lock, by the hold it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Try(usize),
    Release(usize),
    /// To the call's mode.
    Convert(usize),
    /// To so many permits, for as long as some are out.
    Resize(u64),
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Granted,
    Contended,
    Released,
    Converted,
    /// To those who hold, or to nobody.
    Resized {
        used: bool,
    },
    /// Those who hold say another number of permits.
    OtherNumber,
    /// More permits are asked for than there are by now.
    TooMany,
}

impl Answer {
    /// Whether nothing came of a try, or of a conversion.
    fn is_refusal(self) -> bool {
        matches!(self, Answer::Contended | Answer::OtherNumber | Answer::TooMany)
    }
}

/// One operation, from its call to its return, in places of the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub operation: Operation,
    /// How the hold it is about was asked for, or what it becomes.
    pub mode: Mode,
    /// The number of permits that its mode says counts only where nobody holds.
    pub adopts: bool,
    pub from: usize,
    /// Its place and its answer; an operation that was never answered may have happened, or not.
    pub answer: Option<(usize, Answer)>,
}

/// Which operations have happened, and which holds the lock has.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Vec<bool>,
    held: BTreeMap<usize, Mode>,
    /// How many permits there are; 0 where none are out.
    of: u64,
    /// What a resize said while nobody held and a try stood in line: that may take it for its own.
    said: Option<u64>,
}

/// Whether there is an order that keeps every call before those that began after its return, and
/// in which a lock that is free at first gives these answers.
pub(super) fn exists(calls: &[Call], tries: Tries) -> bool {
    let mut seen = HashSet::new();
    let (done, held) = (vec![false; calls.len()], BTreeMap::new());
    let mut open = vec![State { done, held, of: 0, said: None }];
    while let Some(mut state) = open.pop() {
        let ready = loop {
            let ready = state.ready(calls);
            let refused = |index: &usize| {
                calls[*index].answer.is_some_and(|(_, answer)| match answer {
                    Answer::Contended => {
                        state.refuses(&calls[*index])
                            || tries == Tries::InLine && state.in_line(calls, *index)
                    }
                    Answer::OtherNumber => state.says_another(&calls[*index]),
                    Answer::TooMany => state.has_fewer(&calls[*index], tries),
                    _ => false,
                })
            };
            match ready.iter().copied().find(refused) {
                Some(index) => state.done[index] = true,
                None => break ready,
            }
        };
        if calls.iter().zip(&state.done).all(|(call, done)| *done || call.answer.is_none()) {
            return true;
        }
        if seen.insert(state.clone()) {
            open.extend(ready.iter().flat_map(|&index| state.after(calls, index, tries)));
        }
    }
    false
}

impl State {
    /// The operations that may happen next: those that began before any other has returned.
    fn ready(&self, calls: &[Call]) -> Vec<usize> {
        let left = || (0..calls.len()).filter(|&index| !self.done[index]);
        let first = left().filter_map(|index| calls[index].answer.map(|it| it.0)).min();
        left().filter(|&index| first.is_none_or(|first| calls[index].from < first)).collect()
    }

    /// Whether one more may be in.
    fn fits(&self, call: &Call) -> bool {
        let beside = self.held.values().all(|it| it.fits(call.mode));
        let taken: u64 = self.held.values().map(|it| it.count()).sum();
        match call.mode {
            Mode::Permits { count, of } if self.held.is_empty() => count <= of,
            Mode::Permits { count, .. } => {
                beside && !self.says_another(call) && taken + count <= self.of
            }
            Mode::Exclusive | Mode::Shared => beside,
        }
    }

    /// Whether permits are out, of another number than the call says.
    fn says_another(&self, call: &Call) -> bool {
        let Mode::Permits { of, .. } = call.mode else { return false };
        self.of > 0 && self.of != of && !call.adopts
    }

    /// Whether permits are out, of fewer than the call wants. In line that is met by one that agreed with
    /// the number before it was changed, too.
    fn has_fewer(&self, call: &Call, tries: Tries) -> bool {
        let agreed = call.adopts || tries == Tries::InLine;
        agreed && self.of > 0 && call.mode.count() > self.of
    }

    /// Whether a hold that is in may have this mode from now on.
    fn lets(&self, hold: usize, mode: Mode) -> bool {
        let others = || self.held.iter().filter(|it| *it.0 != hold);
        self.held.contains_key(&hold) && others().all(|it| it.1.fits(mode))
    }

    /// Whether a call is refused as it stands. Of conversions only one to a writer may be.
    fn refuses(&self, call: &Call) -> bool {
        match call.operation {
            Operation::Convert(hold) => call.mode.is_alone() && !self.lets(hold, call.mode),
            // Of another kind of name, or by no number that there may be.
            Operation::Resize(_) => true,
            _ => !self.fits(call) && !self.says_another(call),
        }
    }

    /// Whether another try is under way that does not go with this call. One that was refused may be in line
    /// until it has heard so.
    fn in_line(&self, calls: &[Call], index: usize) -> bool {
        let call = &calls[index];
        let before = |it: usize| call.answer.is_none_or(|(at, _)| it < at);
        calls.iter().zip(&self.done).enumerate().any(|(at, (other, done))| {
            let beside = call.mode == Mode::Shared && other.mode == Mode::Shared;
            let lingers =
                other.answer.is_some_and(|(at, answer)| answer.is_refusal() && at > call.from);
            matches!(other.operation, Operation::Try(_))
                && at != index
                && !beside
                && before(other.from)
                && (!done || lingers)
        })
    }

    /// What may be so once an operation that changes the lock, or could, has happened.
    fn after(&self, calls: &[Call], index: usize, tries: Tries) -> Vec<State> {
        let call = &calls[index];
        let answer = call.answer.map(|it| it.1);
        let refused = answer.is_some_and(Answer::is_refusal);
        let mut next = self.clone();
        next.done[index] = true;
        match call.operation {
            Operation::Try(hold) if self.fits(call) && !refused => {
                next.held.insert(hold, call.mode);
                return next.numbered(call, self.said);
            }
            Operation::Convert(hold) if self.lets(hold, call.mode) && !refused => {
                next.held.insert(hold, call.mode);
            }
            Operation::Try(_) | Operation::Convert(_) => return Vec::new(),
            Operation::Release(hold) => {
                // That nothing came of one that was never answered needs no step.
                if next.held.remove(&hold).is_none() && answer.is_none() {
                    return Vec::new();
                }
                if next.held.is_empty() {
                    next.of = 0;
                }
            }
            Operation::Resize(of) => {
                let used = self.of > 0;
                match answer {
                    _ if used && answer != Some(Answer::Resized { used: false }) => next.of = of,
                    Some(Answer::Resized { used: false }) if !used => {}
                    // Who stands in line counts, too.
                    _ if tries == Tries::InLine && !used && self.in_line(calls, index) => {
                        next.said = Some(of);
                    }
                    _ => return Vec::new(),
                }
            }
        }
        vec![next]
    }

    /// What may be so once permits were taken: the first to take some says how many there are, unless a
    /// resize did while it stood in line.
    fn numbered(mut self, call: &Call, said: Option<u64>) -> Vec<State> {
        let Mode::Permits { count, of } = call.mode else { return vec![self] };
        if self.held.len() > 1 {
            return vec![self];
        }
        self.said = None;
        let numbers = [Some(of), said.filter(|said| *said >= count && *said != of)];
        numbers.into_iter().flatten().map(|of| State { of, ..self.clone() }).collect()
    }
}

#[cfg(test)]
mod tests;
