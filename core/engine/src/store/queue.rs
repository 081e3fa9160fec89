//! Who waits: places, and who is heard from.

use crate::id::HoldId;
use crate::store::record::{Caller, Record, StoredWaiter};

/// A waiter is forgotten when it was not heard from for so many times its `silence`.
const FORGET: u64 = 10;

impl StoredWaiter {
    /// Whether the waiter may be handed the lock.
    pub(super) fn is_live(&self, now: u64) -> bool {
        !self.silent && self.heard <= now && now < self.heard.saturating_add(self.silence)
    }

    fn is_forgotten(&self, now: u64) -> bool {
        now >= self.heard.saturating_add(self.silence.saturating_mul(FORGET))
    }

    fn place(&self) -> (u64, HoldId) {
        (self.ticket, self.hold)
    }
}

impl Record {
    pub(super) fn waiter(&self, hold: HoldId) -> Option<&StoredWaiter> {
        self.waiters.iter().find(|waiter| waiter.hold == hold)
    }

    /// Counts a waiter as heard; false when it is not queued.
    pub(super) fn hear(&mut self, now: u64, caller: &Caller, hold: HoldId) -> bool {
        let Some(waiter) = self.waiters.iter_mut().find(|waiter| waiter.hold == hold) else {
            return false;
        };
        waiter.heard = now;
        waiter.silent = false;
        waiter.polling = caller.polling;
        true
    }

    /// The ticket of a new entry: the one that it shows, or the next.
    pub(super) fn next_ticket(&self, now: u64, shown: u64) -> u64 {
        if shown > 0 { shown } else { (self.ticket + 1).max(now) }
    }

    pub(super) fn insert(&mut self, waiter: StoredWaiter) {
        let at = self.waiters.partition_point(|other| other.place() < waiter.place());
        self.waiters.insert(at, waiter);
    }

    /// Silences those whose last word lies after now, and forgets those long silent.
    pub(super) fn tick_queue(&mut self, now: u64) {
        for waiter in &mut self.waiters {
            if waiter.heard > now {
                waiter.heard = now;
                waiter.silent = true;
            }
        }
        self.waiters.retain(|waiter| !waiter.is_forgotten(now));
    }

    /// Live waiters other than `hold`.
    pub(super) fn others_waiting(&self, now: u64, hold: HoldId) -> u32 {
        let others = self.waiters.iter().filter(|w| w.hold != hold && w.is_live(now)).count();
        u32::try_from(others).unwrap_or(u32::MAX)
    }

    /// Whether no live waiter comes before `hold`.
    pub(super) fn is_head(&self, now: u64, hold: HoldId) -> bool {
        self.waiters.iter().find(|w| w.is_live(now)).is_some_and(|first| first.hold == hold)
    }
}
