//! Promise 10, at the store: who holds a lock has been told that somebody waits for it, so that its
//! client ends the local run.

use fencelock_engine::reply::{Body, Failure, LockInfo, Push, Reply, Standing, State};
use fencelock_engine::request::Op;
use fencelock_engine::{HoldId, Name};

use crate::ids::HoldMap;

/// What the store said last to each hold: whether somebody waits. Nothing where that is not known.
#[derive(Debug, Default)]
pub(crate) struct Told(HoldMap<bool>);

impl Told {
    /// The store has forgotten something, or may not say anything.
    pub fn unclear(&mut self) {
        self.0.clear();
    }

    /// A request was executed, and led to these pushes.
    pub fn executed(&mut self, op: &Op, result: &Result<Reply, Failure>, sent: &[(usize, Push)]) {
        for (_, push) in sent {
            match push {
                Push::Granted { hold, others_waiting, .. } => {
                    self.0.insert(*hold, *others_waiting > 0);
                }
                Push::Wanted { hold, .. } => {
                    self.0.insert(*hold, true);
                }
                _ => {}
            }
        }
        let Ok(reply) = result else { return };
        match (op, &reply.body) {
            (Op::Acquire(ask), Body::Acquire(state)) => self.answered(ask.hold, state),
            (Op::Beat(beats), Body::Beat(states)) => {
                for (beat, state) in beats.iter().zip(states) {
                    // Of two answers in one, which came first is not seen.
                    if beats.iter().filter(|it| it.lock == beat.lock).count() > 1 {
                        self.0.remove(&beat.hold);
                    } else if let Ok(state) = state {
                        self.answered(beat.hold, state);
                    }
                }
            }
            _ => {}
        }
    }

    fn answered(&mut self, hold: HoldId, state: &State) {
        if state.standing == Standing::Granted {
            self.0.insert(hold, state.others_waiting > 0);
        }
    }

    /// A lock as the store has it, while somebody waits; `hears` says whether a holder's client is
    /// listening.
    pub fn waits(&self, info: &LockInfo, hears: impl Fn(&str) -> bool) -> Result<(), String> {
        let holds = info.holds.iter().filter(|it| !it.expires_in.is_zero() && hears(&it.client));
        match holds.into_iter().find(|it| self.0.get(&it.hold) == Some(&false)) {
            Some(it) => {
                Err(format!("{}: {:?} was not told that somebody waits", info.name, it.hold))
            }
            None => Ok(()),
        }
    }
}

/// The lock that a request's answer says somebody waits for, if it is about one waiter.
pub(crate) fn queued<'a>(op: &'a Op, result: &Result<Reply, Failure>) -> Option<&'a Name> {
    match (op, &result.as_ref().ok()?.body) {
        (Op::Acquire(ask), Body::Acquire(state)) if state.standing == Standing::Queued => {
            Some(&ask.lock)
        }
        (Op::Beat(beats), Body::Beat(states)) => match (&beats[..], &states[..]) {
            ([beat], [Ok(state)]) if state.standing == Standing::Queued => Some(&beat.lock),
            _ => None,
        },
        _ => None,
    }
}
