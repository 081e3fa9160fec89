//! Stores that are wrong on purpose, to show that the checks find something.

use fencelock_engine::reply::{Body, Reply, Standing};
use fencelock_engine::request::Op;
use fencelock_engine::store::Record;

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wrong {
    /// A release ends whatever hold there is, whoever made it.
    ReleaseAnybody,
    /// A release of a waiter is answered and forgotten: its place stays.
    KeepWaiters,
    /// A hold that was handed over never ends by itself.
    EndlessClaims,
    /// A request is executed however late it arrives.
    IgnoreLateness,
    /// Each tenure begins at the same token.
    RepeatTokens,
    /// A renewal revives a hold that has been given to somebody else.
    ReviveHolds,
}

impl Wrong {
    /// All of them.
    pub const ALL: [Wrong; 6] = [
        Wrong::ReleaseAnybody,
        Wrong::KeepWaiters,
        Wrong::EndlessClaims,
        Wrong::IgnoreLateness,
        Wrong::RepeatTokens,
        Wrong::ReviveHolds,
    ];

    /// What it does before the request is executed.
    pub(super) fn before(self, record: &mut Record, now: u64, op: &mut Op) {
        match (self, op) {
            (Wrong::ReleaseAnybody, Op::Release(release)) => {
                if let Some(hold) = record.holds.first() {
                    release.hold = hold.hold;
                }
            }
            (Wrong::KeepWaiters, Op::Release(release)) => {
                if record.waiters.iter().any(|waiter| waiter.hold == release.hold) {
                    release.hold.0 ^= 1 << 64;
                }
            }
            (Wrong::IgnoreLateness, Op::Acquire(ask)) => ask.not_after = now,
            (Wrong::RepeatTokens, _) if record.holds.is_empty() && record.token > 0 => {
                record.last = record.token - 1;
            }
            _ => {}
        }
    }

    /// What it does afterwards, and what it makes of the answer.
    pub(super) fn after(self, record: &mut Record, op: &Op, reply: &mut Reply) {
        if self == Wrong::EndlessClaims {
            for hold in record.holds.iter_mut().filter(|hold| hold.claim) {
                (hold.deadline, hold.lease) = (u64::MAX / 2, u64::MAX / 2);
            }
        }
        if let (Wrong::ReviveHolds, Op::Beat(beats), Body::Beat(states)) =
            (self, op, &mut reply.body)
        {
            for (beat, state) in beats.iter().zip(states) {
                if let Ok(state) = state
                    && beat.used > 0
                    && state.standing != Standing::Granted
                {
                    state.standing = Standing::Granted;
                    state.token = beat.used;
                    state.end = beat.used;
                    state.lease = beat.lease;
                }
            }
        }
    }
}
