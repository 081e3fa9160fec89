//! What a record says: states for replies, and everything for people.

use core::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{HoldInfo, LockInfo, Standing, State, WaiterInfo};
use crate::store::record::Record;

/// A day in microseconds.
const DAY: u64 = 24 * 3600 * 1_000_000;

impl Record {
    /// The state of a hold that is not granted, without the queue's part.
    pub(super) fn state(&self, standing: Standing) -> State {
        State { last: self.token, ..State::bare(standing) }
    }

    /// Where a hold stands that holds or waits.
    pub(super) fn standing(&self, now: u64, id: HoldId, publish_failed: bool) -> State {
        let others_waiting = self.others_waiting(now, id);
        if let Some(hold) = self.holds.iter().find(|hold| hold.hold == id) {
            return State {
                token: self.token,
                end: self.last,
                lease: Duration::from_micros(hold.deadline - now),
                abandoned: self.abandoned,
                losses: self.losses,
                others_waiting,
                publish_failed,
                ..State::bare(Standing::Granted)
            };
        }
        State {
            expires_in: self.expires_in(now),
            others_waiting,
            ticket: self.waiter(id).map_or(0, |waiter| waiter.ticket),
            head: self.is_head(now, id),
            publish_failed,
            ..self.state(Standing::Queued)
        }
    }

    /// How long until the last of the present holds ends.
    pub(super) fn expires_in(&self, now: u64) -> Option<Duration> {
        let end = self.holds.iter().map(|hold| hold.deadline).max()?;
        Some(Duration::from_micros(end.saturating_sub(now)))
    }

    /// All that is known of the lock, for people.
    pub fn inspect(&self, now: u64, name: &Name) -> LockInfo {
        let mut record = self.clone();
        record.tick(now);
        let holds = record.holds.iter().map(|hold| HoldInfo {
            hold: hold.hold,
            client: hold.client.id().to_owned(),
            label: hold.client.label().to_owned(),
            expires_in: Duration::from_micros(hold.deadline - now),
            lease: Duration::from_micros(hold.lease),
            claim: hold.claim,
        });
        let waiters = record.waiters.iter().map(|waiter| WaiterInfo {
            hold: waiter.hold,
            client: waiter.client.id().to_owned(),
            label: waiter.client.label().to_owned(),
            owner: waiter.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            heard_ago: Duration::from_micros(now.saturating_sub(waiter.heard)),
            silent: !waiter.is_live(now),
        });
        LockInfo {
            name: name.clone(),
            owner: record.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            token: if record.holds.is_empty() { 0 } else { record.token },
            holds: holds.collect(),
            last_token: record.last,
            abandoned: record.abandoned_now(),
            waiters: waiters.collect(),
        }
    }

    /// Whether the record may be forgotten: nobody holds or waits, and every token it gave out
    /// lies a day back, so that an absent counter starts above them.
    pub fn is_collectable(&self, now: u64) -> bool {
        self.holds.is_empty() && self.waiters.is_empty() && self.last < now.saturating_sub(DAY)
    }
}
