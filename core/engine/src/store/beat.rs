//! Renewing a hold, or hearing a waiter.

use crate::id::HoldId;
use crate::reply::{Refusal, Standing, State};
use crate::request::Beat;
use crate::store::mode::Tie;
use crate::store::queue::Heard;
use crate::store::record::{Announce, Caller, Record, StoredWaiter};
use crate::store::refusal::check_clock;
use crate::store::settle::{Settle, Settled};
use crate::time::micros_up;

impl Record {
    /// Renews a hold, or hears a waiter. Never queues, never revives.
    ///
    /// # Errors
    /// When the store's clock leaves no room for tokens.
    pub fn beat(
        &mut self,
        now: u64,
        caller: &Caller,
        beat: &Beat,
        out: &mut dyn Announce,
    ) -> Result<State, Refusal> {
        check_clock(now)?;
        if planted!(SettleBeforeHear) {
            self.tick(now);
            self.settle(&Settle { now, lock: &beat.lock, caller: None, floor: 0 }, out);
        }
        let silence = Some(micros_up(beat.silence));
        let heard = self.waiters.hear(now, caller.polling, beat.hold, silence, beat.local_waiters);
        let queued = heard != Heard::Nobody;
        self.tick(now);
        let mut known = queued;
        if let Some(at) = self.renewable(beat.hold) {
            let reach = self.reach(at, beat.used);
            self.holds[at].renew(now, micros_up(beat.lease), caller.polling, reach);
            self.holds[at].local_waiters = beat.local_waiters;
            if planted!(OwnerRenewsCoHolds) {
                for hold in &mut self.holds {
                    hold.renew(now, micros_up(beat.lease), hold.polling, reach);
                }
            }
            if planted!(ReaderCutsOthers) || planted!(ReaderRenewsOthers) {
                self.spread(at);
            }
            if self.holds[at].is_exclusive() {
                self.top_up(now, beat.used);
            }
            known = true;
        }
        let caller = queued.then_some(beat.hold);
        let settle = Settle { now, lock: &beat.lock, caller, floor: 0 };
        let waits = self.waiters.get(beat.hold);
        let ties = waits.is_some_and(|it| self.tie(it.owner.as_ref(), it.mode) == Tie::Deadlock);
        if ties && !planted!(OwnHoldAwaited) {
            return Ok(self.end_wait(beat.hold, Standing::Deadlock, &settle, out));
        }
        if let Some(doomed) = self.waiters.get(beat.hold).and_then(StoredWaiter::is_doomed) {
            return Ok(self.end_wait(beat.hold, doomed, &settle, out));
        }
        let passed_over = planted!(OwnerPassedOver) && !self.holds.is_empty();
        let mut settled = if passed_over { Settled::default() } else { self.settle(&settle, out) };
        settled.publish_failed |= self.announce_newcomer(heard, beat.hold, &beat.lock, out);
        if known {
            return Ok(self.standing(now, beat.hold, settled));
        }
        let publish_failed = settled.publish_failed;
        let released = self.released == Some(beat.hold);
        let standing = if released { Standing::Released } else { Standing::Gone };
        Ok(State { publish_failed, ..self.state(standing) })
    }

    fn renewable(&self, id: HoldId) -> Option<usize> {
        let at = self.holds.iter().position(|it| it.hold == id || planted!(RenewWithoutOwner))?;
        // Only with a bug that was planted.
        let first = planted!(FirstReaderRenewed) && !self.holds[at].is_exclusive();
        Some(if first { 0 } else { at })
    }
}
