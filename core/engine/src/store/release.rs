//! Ending holds: by their holder, or by an operator.

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, Push, Released};
use crate::request::Release;
use crate::store::record::{Announce, Delivery, Record};
use crate::store::settle::Settle;

impl Record {
    /// Ends a hold or leaves the queue, and hands the lock on in the same step.
    pub fn release(&mut self, now: u64, release: &Release, out: &mut dyn Announce) -> Released {
        self.tick(now);
        let released = self.end(release);
        if planted!(TryPassesWaiters) {
            return released;
        }
        self.settle(&Settle { now, lock: &release.lock, caller: None, floor: 0 }, out);
        released
    }

    /// Ends every hold; gives how many there were.
    pub fn break_all(&mut self, now: u64, lock: &Name, out: &mut dyn Announce) -> usize {
        self.tick(now);
        let holds = core::mem::take(&mut self.holds);
        if !holds.is_empty() {
            self.lose(Abandoned::Yes);
        }
        for hold in holds.iter().filter(|hold| !hold.polling) {
            let push = Push::Broken { lock: lock.clone(), hold: hold.hold };
            out.announce(hold.client.id(), push);
        }
        self.settle(&Settle { now, lock, caller: None, floor: 0 }, out);
        holds.len()
    }

    /// Ends a hold or leaves the queue, without handing on.
    pub(super) fn end(&mut self, release: &Release) -> Released {
        if let Some(at) = self
            .holds
            .iter()
            .position(|hold| hold.hold == release.hold || planted!(ReleaseWithoutOwner))
        {
            let hold = self.holds.remove(at);
            // A repeated release may meet a late copy of its own acquire, granted for nobody: who
            // was told of an earlier token, or of fewer losses, was not told of this one.
            let heard = (release.used >= self.token || planted!(StrayReleaseTells))
                && (release.losses == self.losses || planted!(CoHoldReleaseTells));
            if planted!(OwnerLosesCoHolds) {
                self.holds.clear();
            }
            self.released = Some(hold.hold);
            if release.lost {
                self.lose(Abandoned::Yes);
            } else if release.told && heard || planted!(CancelClearsAbandoned) {
                self.abandoned = Abandoned::No;
            }
            if self.holds.is_empty() {
                self.vacate();
                self.give_back(release.used);
            }
            return if release.told { Released::Done } else { Released::Left };
        }
        if self.leave(release.hold) {
            Released::Left
        } else if self.released == Some(release.hold) && !planted!(RetriedReleaseIsLost) {
            Released::Done
        } else {
            Released::Unknown
        }
    }

    fn leave(&mut self, hold: HoldId) -> bool {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| waiter.hold != hold);
        self.waiters.len() < before
    }

    /// Tells every holder that somebody queued. True when the store may not publish.
    pub(super) fn tell_wanted(&self, lock: &Name, out: &mut dyn Announce) -> bool {
        let mut failed = false;
        for hold in self.holds.iter().filter(|hold| !hold.polling) {
            let push = Push::Wanted { lock: lock.clone(), hold: hold.hold };
            failed |= out.announce(hold.client.id(), push) == Delivery::Failed;
        }
        failed
    }
}
