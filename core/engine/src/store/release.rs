//! Ending holds: by their holder, or by an operator.

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, Broken, Push, Released};
use crate::request::{Break, Mode, Release};
use crate::store::queue::Heard;
use crate::store::record::{Announce, Delivery, Record, StoredHold};
use crate::store::settle::{BATCH, Settle};

impl Record {
    /// Ends a hold or leaves the queue, and hands the lock on in the same step.
    pub fn release(&mut self, now: u64, release: &Release, out: &mut dyn Announce) -> Released {
        self.tick(now);
        let released = self.end(release);
        if planted!(TryPassesWaiters) || planted!(LeaverWakesNobody) && released == Released::Left {
            return released;
        }
        self.settle(&Settle { now, lock: &release.lock, caller: None, floor: 0 }, out);
        if self.has_nothing_to_tell(now) {
            // Where nobody waits, no place in the queue is remembered.
            self.ticket = 0;
            self.used = 0;
            // Of a block that permits left only the end is kept.
            self.token = self.last;
        }
        released
    }

    /// Ends holds of the tenure that is named, and hands the lock on in the same step.
    pub fn break_lock(&mut self, now: u64, what: &Break, out: &mut dyn Announce) -> Broken {
        self.tick(now);
        let broken = self.break_seen(what, out);
        self.settle(&Settle { now, lock: &what.lock, caller: None, floor: 0 }, out);
        broken
    }

    fn break_seen(&mut self, what: &Break, out: &mut dyn Announce) -> Broken {
        let meant = |hold: &mut StoredHold| {
            let seen = hold.token <= what.token || planted!(BreakEndsAnybody);
            seen && what.hold.is_none_or(|named| hold.hold == named)
        };
        let ended: Vec<_> = self.holds.extract_if(.., meant).collect();
        if ended.is_empty() {
            let later = self.holds.iter().map(|hold| hold.token).max();
            return match later.filter(|later| *later > what.token) {
                Some(later) => Broken::ChangedHands(later),
                None => Broken::NotHeld,
            };
        }
        if ended.iter().any(StoredHold::is_exclusive) {
            self.lose(Abandoned::Yes);
        }
        for hold in ended.iter().filter(|hold| !hold.polling) {
            let push = Push::Broken { lock: what.lock.clone(), hold: hold.hold };
            out.announce(hold.client.id(), push);
        }
        Broken::Ended(ended.len())
    }

    /// Ends a hold or leaves the queue, without handing on.
    pub(super) fn end(&mut self, release: &Release) -> Released {
        if let Some(at) = self
            .holds
            .iter()
            .position(|hold| hold.hold == release.hold || planted!(ReleaseWithoutOwner))
        {
            let hold = self.holds.remove(at);
            if !hold.is_exclusive() {
                // A reader was told of its predecessor, and has mended nothing.
                self.released = Some(hold.hold);
                if planted!(ReaderClearsAbandoned) && release.told {
                    self.abandoned = Abandoned::No;
                }
                if planted!(ReaderEndsOwner) && hold.owner.is_some() {
                    self.holds.retain(|other| other.owner != hold.owner);
                }
                return if release.told { Released::Done } else { Released::Left };
            }
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
            let stays = planted!(ReaderStaysWriter) && !self.holds.is_empty();
            if !self.is_exclusive() && !stays {
                // Another hold of an explicit owner may have shown more.
                let shown = if self.owner.is_some() { self.used } else { 0 };
                self.vacate();
                self.give_back(release.used.max(shown));
            }
            return if release.told { Released::Done } else { Released::Left };
        }
        if self.waiters.remove(release.hold).is_some() {
            Released::Left
        } else if self.released == Some(release.hold) && !planted!(RetriedReleaseIsLost) {
            Released::Done
        } else {
            if planted!(ExpiredPermitFrees) && matches!(release.mode, Mode::Permits { .. }) {
                self.holds.pop();
            }
            Released::Unknown
        }
    }

    /// Tells every holder of a waiter that was parked and waits again, since they know of nobody.
    pub(super) fn announce_newcomer(
        &self,
        heard: Heard,
        hold: HoldId,
        lock: &Name,
        out: &mut dyn Announce,
    ) -> bool {
        let waits = heard == Heard::Newcomer && self.waiters.get(hold).is_some();
        waits && !planted!(ReturnUntold) && self.tell_wanted(lock, out)
    }

    /// Tells the holders, of many the first, that somebody queued. True when the store may not publish.
    pub(super) fn tell_wanted(&self, lock: &Name, out: &mut dyn Announce) -> bool {
        let mut failed = false;
        for hold in self.holds.iter().filter(|hold| !hold.polling).take(BATCH) {
            let push = Push::Wanted { lock: lock.clone(), hold: hold.hold };
            failed |= out.announce(hold.client.id(), push) == Delivery::Failed;
        }
        failed
    }
}
