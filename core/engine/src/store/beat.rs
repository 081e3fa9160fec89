//! Renewing a hold, or hearing a waiter.

use crate::reply::{Refusal, Standing, State};
use crate::request::Beat;
use crate::store::record::{Announce, Caller, Record};
use crate::store::refusal::check_clock;
use crate::store::settle::Settle;
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
        let queued = self.hear(now, caller, beat.hold);
        self.tick(now);
        let mut known = queued;
        if let Some(hold) =
            self.holds.iter_mut().find(|hold| hold.hold == beat.hold || planted!(RenewWithoutOwner))
        {
            hold.renew(now, micros_up(beat.lease), caller.polling);
            if planted!(OwnerRenewsCoHolds) {
                for hold in &mut self.holds {
                    hold.renew(now, micros_up(beat.lease), hold.polling);
                }
            }
            self.top_up(now, beat.used);
            known = true;
        }
        let caller = queued.then_some(beat.hold);
        let settle = Settle { now, lock: &beat.lock, caller, floor: 0 };
        let passed_over = planted!(OwnerPassedOver) && !self.holds.is_empty();
        let publish_failed = !passed_over && self.settle(&settle, out);
        if known {
            return Ok(self.standing(now, beat.hold, publish_failed));
        }
        let released = self.released == Some(beat.hold);
        let standing = if released { Standing::Released } else { Standing::Gone };
        Ok(State { publish_failed, ..self.state(standing) })
    }
}
