//! How long a store keeps a record that nobody uses.

use core::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::options::{MAX_RETENTION, RETENTION, TOKEN_BLOCK};
use crate::reply::Abandoned;
use crate::request::Release;
use crate::store::record::{Announce, Record};
use crate::time::micros_up;

/// How many contacts one look makes at the most, to be rid of waiters that went silent.
const CONTACTS: usize = 64;

/// When a record may be forgotten, and when it is looked at for that: so seldom that a lock in use
/// costs nothing for it. Times are the store's, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// When it may be forgotten, unless it is used before; `None` while anybody holds or waits.
    pub until: Option<u64>,
    /// When it is looked at.
    pub due: u64,
}

impl Keep {
    /// Of a record that is made now.
    pub fn new(now: u64) -> Keep {
        Keep { until: None, due: now.saturating_add(micros_up(RETENTION)) }
    }

    /// The record was used. A free one is kept no shorter for that: who looks at it again, or breaks
    /// what is not held, says nothing of how long.
    pub fn used(&mut self, record: &Record, now: u64, retention: Duration) {
        let before = self.until.unwrap_or(0);
        self.until = record.kept_until(now, retention).map(|until| until.max(before));
        if let Some(until) = self.until {
            self.due = self.due.min(until);
        }
    }

    /// It is due: whether it is to be forgotten, or else looked at later. What its holders and
    /// waiters left behind, whom nobody has contacted since, is ended first.
    pub fn is_over(
        &mut self,
        record: &mut Record,
        now: u64,
        lock: &Name,
        out: &mut dyn Announce,
    ) -> bool {
        for _ in 0..CONTACTS {
            if self.until.is_some() {
                break;
            }
            record.release(now, &nothing(lock), out);
            self.until = record.kept_until(now, RETENTION);
            if !record.holds.is_empty() {
                break;
            }
        }
        self.due = self.until.unwrap_or_else(|| Keep::new(now).due);
        self.due <= now
    }
}

impl Record {
    /// Until when the record is kept for what it has to tell; `None` while anybody holds or waits.
    ///
    /// One that has nothing to tell is kept for the retention, others for a day after their last
    /// token.
    pub fn kept_until(&self, now: u64, retention: Duration) -> Option<u64> {
        if !self.holds.is_empty() || !self.waiters.is_empty() {
            return None;
        }
        let (from, span) = if self.has_nothing_to_tell(now) {
            (now, retention)
        } else {
            (now.max(self.last), MAX_RETENTION)
        };
        Some(from.saturating_add(micros_up(span)))
    }

    /// Whether nobody holds or waits, and the record says nothing that its absence does not say,
    /// but for how its last holder ended. An absent counter leaves out a block.
    pub(super) fn has_nothing_to_tell(&self, now: u64) -> bool {
        self.holds.is_empty()
            && self.waiters.is_empty()
            && (self.abandoned == Abandoned::No || planted!(LossForgotten))
            && (self.last < now + TOKEN_BLOCK || planted!(TokensAheadForgotten))
    }
}

/// The release of a hold that does not exist: a contact, no more.
fn nothing(lock: &Name) -> Release {
    Release { told: false, ..Release::new(lock.clone(), HoldId(0), 0) }
}
