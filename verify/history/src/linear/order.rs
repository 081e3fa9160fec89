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
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Granted,
    Contended,
    Released,
    Converted,
}

/// One operation, from its call to its return, in places of the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub operation: Operation,
    /// How the hold it is about was asked for, or what it becomes.
    pub mode: Mode,
    pub from: usize,
    /// Its place and its answer; an operation that was never answered may have happened, or not.
    pub answer: Option<(usize, Answer)>,
}

/// Which operations have happened, and which holds the lock has.
#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    done: Vec<bool>,
    held: BTreeMap<usize, Mode>,
}

/// Whether there is an order that keeps every call before those that began after its return, and
/// in which a lock that is free at first gives these answers.
pub(super) fn exists(calls: &[Call], tries: Tries) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![State { done: vec![false; calls.len()], held: BTreeMap::new() }];
    while let Some(mut state) = open.pop() {
        let ready = loop {
            let ready = state.ready(calls);
            let refused = |index: &usize| {
                matches!(calls[*index].answer, Some((_, Answer::Contended)))
                    && (state.refuses(&calls[*index])
                        || tries == Tries::InLine && state.in_line(calls, *index))
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
            open.extend(ready.iter().filter_map(|&index| state.after(calls, index)));
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
    fn fits(&self, mode: Mode) -> bool {
        let of = |mode: Mode| if let Mode::Permits { of, .. } = mode { of } else { 0 };
        let taken: u64 = self.held.values().map(|it| it.count()).sum();
        self.held.values().all(|it| it.fits(mode)) && taken + mode.count() <= of(mode)
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
            _ => !self.fits(call.mode),
        }
    }

    /// Whether another try is under way that does not go with this call. One that was refused may be in line
    /// until it has heard so.
    fn in_line(&self, calls: &[Call], index: usize) -> bool {
        let call = &calls[index];
        let before = |it: usize| call.answer.is_none_or(|(at, _)| it < at);
        calls.iter().zip(&self.done).enumerate().any(|(at, (other, done))| {
            let beside = call.mode == Mode::Shared && other.mode == Mode::Shared;
            let lingers = matches!(other.answer, Some((at, Answer::Contended)) if at > call.from);
            matches!(other.operation, Operation::Try(_))
                && at != index
                && !beside
                && before(other.from)
                && (!done || lingers)
        })
    }

    /// What is so once an operation that changes the lock, or could, has happened.
    fn after(&self, calls: &[Call], index: usize) -> Option<State> {
        let answer = calls[index].answer.map(|it| it.1);
        let mut held = self.held.clone();
        match calls[index].operation {
            Operation::Try(hold)
                if self.fits(calls[index].mode) && answer != Some(Answer::Contended) =>
            {
                held.insert(hold, calls[index].mode);
            }
            Operation::Try(_) => return None,
            Operation::Convert(hold)
                if self.lets(hold, calls[index].mode) && answer != Some(Answer::Contended) =>
            {
                held.insert(hold, calls[index].mode);
            }
            Operation::Convert(_) => return None,
            // That nothing came of one that was never answered needs no step.
            Operation::Release(hold) if held.remove(&hold).is_none() && answer.is_none() => {
                return None;
            }
            Operation::Release(_) => {}
        }
        let mut done = self.done.clone();
        done[index] = true;
        Some(State { done, held })
    }
}

#[cfg(test)]
mod tests;
