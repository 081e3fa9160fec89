//! Promise 13, as far as it is up to the clients: what is refused is not asked again at once.

use fencelock_engine::HoldId;
use fencelock_engine::reply::{Body, Failure, RefusalKind, Reply, Standing};
use fencelock_engine::request::Op;

use crate::clock::{Instant, SEC};
use crate::ids::HoldMap;

/// How often one hold's requests may be refused in a second, or a holder be told that it waits, reconnects and
/// cancels included. With pauses that double it is about ten times.
const MOST: u32 = 60;

/// How often each hold's requests were refused, or answered in vain, of late.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    refused: HoldMap<(Instant, u32)>,
}

impl Backoff {
    /// The store answered.
    pub fn answered(
        &mut self,
        at: Instant,
        op: &Op,
        result: &Result<Reply, Failure>,
    ) -> Result<(), String> {
        if let (Op::Beat(beats), Ok(Reply { body: Body::Beat(states), .. })) = (op, result) {
            // A holder whom the store has in its queue again has lost the lock, and leaves.
            let mut queued = beats.iter().zip(states).filter(|(beat, state)| {
                beat.used > 0
                    && state.as_ref().is_ok_and(|state| state.standing == Standing::Queued)
            });
            return queued.try_for_each(|(beat, _)| self.again(at, beat.hold));
        }
        let Err(Failure::Refused(refusal)) = result else { return Ok(()) };
        if refusal.kind != RefusalKind::Retry {
            return Ok(());
        }
        match op {
            Op::Acquire(ask) => self.again(at, ask.hold),
            Op::Release(release) => self.again(at, release.hold),
            Op::Beat(beats) => beats.iter().try_for_each(|beat| self.again(at, beat.hold)),
            _ => Ok(()),
        }
    }

    fn again(&mut self, at: Instant, hold: HoldId) -> Result<(), String> {
        let (since, count) = self.refused.entry(hold).or_insert((at, 0));
        if at - *since > SEC {
            (*since, *count) = (at, 0);
        }
        *count += 1;
        if *count > MOST {
            return Err(format!("{hold:?}: refused {count} times since {since}, and asked again"));
        }
        Ok(())
    }
}
