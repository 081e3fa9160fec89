//! What a record says: states for replies, and everything for people.

use core::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, HoldInfo, LockInfo, Standing, State, WaiterInfo};
use crate::request::Mode;
use crate::store::mode::Admission;
use crate::store::queue::Queue;
use crate::store::record::{Record, StoredHold};
use crate::store::settle::Settled;

/// How many waiters an inspection shows.
pub(crate) const SHOWN_WAITERS: usize = 256;

impl Record {
    /// The state of a hold that is not granted, without the queue's part.
    pub(super) fn state(&self, standing: Standing) -> State {
        State { last: self.token, ..State::bare(standing) }
    }

    /// Where a hold stands that holds or waits.
    pub(super) fn standing(&self, now: u64, id: HoldId, settled: Settled) -> State {
        let Settled { publish_failed, cut } = settled;
        if let Some(hold) = self.holds.iter().find(|hold| hold.hold == id) {
            let told = self.told(hold);
            return State {
                token: told.token,
                end: told.end,
                lease: Duration::from_micros(hold.deadline - now),
                abandoned: told.abandoned,
                losses: told.losses,
                others_waiting: self.others_waiting(id),
                publish_failed,
                ..State::bare(Standing::Granted)
            };
        }
        let ticket = self.waiters.get(id).map_or(0, |waiter| waiter.ticket);
        let first = self.waiters.first().is_some_and(|waiter| waiter.hold == id);
        State {
            // The lock is free, and whoever is next was not found within one contact: look again.
            expires_in: if cut {
                Some(Duration::ZERO)
            } else {
                self.expires_in(now).filter(|_| first)
            },
            ahead: u32::try_from(self.waiters.ahead_of(ticket)).unwrap_or(u32::MAX),
            ticket,
            publish_failed,
            ..self.state(Standing::Queued)
        }
    }

    /// What a present hold is told.
    fn told(&self, hold: &StoredHold) -> Admission {
        let (token, end) = (hold.token, hold.token);
        match hold.mode {
            Mode::Exclusive => {
                let (token, end, losses) = (self.token, self.last, self.losses);
                Admission { token, end, abandoned: self.abandoned, losses }
            }
            Mode::Shared => Admission { token, end, abandoned: self.abandoned, losses: 0 },
            Mode::Permits { .. } => {
                // The block of the newest is the one that was reserved last.
                let end = if token == self.token { self.last.max(token) } else { token };
                Admission { token, end, abandoned: Abandoned::No, losses: 0 }
            }
        }
    }

    /// Who is to be served, other than `id`.
    pub(super) fn others_waiting(&self, id: HoldId) -> u32 {
        let own = self.waiters.get(id).is_some_and(|waiter| !waiter.silent);
        let others = self.waiters.listed() - usize::from(own);
        u32::try_from(others).unwrap_or(u32::MAX)
    }

    /// How long until the last of the present holds ends; of permits the first, which may be enough.
    pub(super) fn expires_in(&self, now: u64) -> Option<Duration> {
        let ends = self.holds.iter().map(|hold| hold.deadline);
        let permits = matches!(self.holds.first()?.mode, Mode::Permits { .. });
        let end = if permits { ends.min() } else { ends.max() }?;
        Some(Duration::from_micros(end.saturating_sub(now)))
    }

    /// All that is known of the lock, for people.
    pub fn inspect(&self, now: u64, name: &Name) -> LockInfo {
        // Without the queue, which may be long.
        let mut record = Record {
            owner: self.owner.clone(),
            holds: self.holds.clone(),
            released: self.released,
            waiters: Queue::default(),
            ..*self
        };
        record.expire(now);
        let holds = record.holds.iter().map(|hold| HoldInfo {
            hold: hold.hold,
            client: hold.client.id().to_owned(),
            label: hold.client.label().to_owned(),
            expires_in: Duration::from_micros(hold.deadline - now),
            lease: Duration::from_micros(hold.lease),
            mode: hold.mode,
            token: hold.token,
            owner: hold.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            claim: hold.claim,
            local_waiters: Some(hold.local_waiters),
        });
        let waiters = self.waiters.iter().take(SHOWN_WAITERS).map(|waiter| WaiterInfo {
            hold: waiter.hold,
            client: waiter.client.id().to_owned(),
            label: waiter.client.label().to_owned(),
            owner: waiter.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            heard_ago: Duration::from_micros(now.saturating_sub(waiter.heard)),
            silent: !waiter.is_live(now),
            mode: waiter.mode,
            local_waiters: Some(waiter.local_waiters),
        });
        let (holds, waiters): (Vec<_>, Vec<_>) = (holds.collect(), waiters.collect());
        let local = holds.iter().map(|hold| hold.local_waiters);
        let local = local.chain(waiters.iter().map(|waiter| waiter.local_waiters));
        let local = local.flatten().map(|count| count as usize).sum::<usize>();
        LockInfo {
            name: name.clone(),
            owner: record.owner.as_ref().map(|owner| owner.as_str().to_owned()),
            token: if record.holds.is_empty() { 0 } else { record.token },
            holds,
            last_token: record.last,
            abandoned: record.abandoned_now(),
            waiters,
            waiting: self.waiters.len() + local,
        }
    }
}
