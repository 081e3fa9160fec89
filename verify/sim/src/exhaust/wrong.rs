//! Stores and engines that are wrong on purpose, to show that the checks find something.

use fencelock_engine::plant::{self, Bug};
use fencelock_engine::request::Op;
use fencelock_engine::store::Record;

/// What is wrong.
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
    /// A claim ends at the store before its client believes so.
    ShortClaims,
    /// A bug planted in the engine or in the store's rules.
    Planted(Bug),
}

impl Wrong {
    /// The wrong stores.
    pub const STORES: [Wrong; 6] = [
        Wrong::ReleaseAnybody,
        Wrong::KeepWaiters,
        Wrong::EndlessClaims,
        Wrong::IgnoreLateness,
        Wrong::RepeatTokens,
        Wrong::ShortClaims,
    ];

    /// Plants it in this thread, if it is a bug of the engine's; otherwise none is left there.
    pub(super) fn plant(wrong: Option<Wrong>) {
        plant::plant(match wrong {
            Some(Wrong::Planted(bug)) => Some(bug),
            _ => None,
        });
    }

    /// What it does before the request is executed.
    pub(super) fn before(self, record: &mut Record, now: u64, op: &mut Op) {
        match (self, op) {
            (Wrong::ReleaseAnybody, Op::Release(release)) => {
                if let Some(hold) = record.holds.first() {
                    release.hold = hold.hold;
                }
            }
            (Wrong::KeepWaiters, Op::Release(release))
                if record.waiters.iter().any(|waiter| waiter.hold == release.hold) =>
            {
                release.hold.0 ^= 1 << 64;
            }
            (Wrong::IgnoreLateness, Op::Acquire(ask)) => ask.not_after = now,
            (Wrong::RepeatTokens, _) if record.holds.is_empty() && record.token > 0 => {
                record.last = record.token - 1;
            }
            _ => {}
        }
    }

    /// What it does afterwards.
    pub(super) fn after(self, record: &mut Record, now: u64) {
        let span = match self {
            Wrong::EndlessClaims => u64::MAX / 4,
            Wrong::ShortClaims => 100_000,
            _ => return,
        };
        for hold in record.holds.iter_mut().filter(|hold| hold.claim) {
            (hold.deadline, hold.lease) = (hold.deadline.min(now + span), span);
            if self == Wrong::EndlessClaims {
                hold.deadline = now + span;
            }
        }
    }
}
