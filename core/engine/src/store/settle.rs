//! What every contact does: clamp deadlines, expire holds, hand the lock on.

use crate::id::HoldId;
use crate::reply::{Abandoned, Push};
use crate::store::record::{Announce, Delivery, Record, StoredHold, StoredWaiter};
use crate::token::MAX_STORE_TIME;

/// Whom a settle serves.
pub(super) struct Settle<'a> {
    /// The store's time.
    pub now: u64,
    /// The lock's name, for pushes.
    pub lock: &'a crate::name::Name,
    /// The waiter who calls: granted in full by the reply, without a push.
    pub caller: Option<HoldId>,
    /// The highest token that the caller ever saw.
    pub floor: u64,
}

impl Record {
    /// Brings the record to `now`: nothing outlives its lease, whatever the clock did.
    pub(super) fn tick(&mut self, now: u64) {
        for hold in &mut self.holds {
            if !planted!(DeadlineNotClamped) {
                hold.deadline = hold.deadline.min(now.saturating_add(hold.lease));
            }
        }
        let (mut heard, mut unheard) = (false, false);
        self.holds.retain(|hold| {
            let live = now < hold.deadline;
            heard |= !live && !hold.claim;
            unheard |= !live && hold.claim;
            live
        });
        if heard {
            self.lose(Abandoned::Yes);
        } else if unheard {
            self.lose(Abandoned::Unknown);
        }
        self.tick_queue(now);
    }

    /// Holds ended without their holders' release. Those that remain were not told of it.
    pub(super) fn lose(&mut self, how: Abandoned) {
        if self.abandoned != Abandoned::Yes {
            self.abandoned = how;
        }
        if self.holds.is_empty() {
            self.vacate();
        } else {
            self.losses = self.losses.saturating_add(1);
        }
    }

    /// Nobody holds the lock any more.
    pub(super) fn vacate(&mut self) {
        self.owner = None;
        self.losses = 0;
    }

    /// Hands the lock to the first live waiter if it is free, and to all live waiters of its
    /// explicit owner if it has one. True when the store may not publish.
    pub(super) fn settle(&mut self, ask: &Settle<'_>, out: &mut dyn Announce) -> bool {
        let mut publish_failed = false;
        if ask.now >= MAX_STORE_TIME {
            return publish_failed;
        }
        while let Some(at) = self.next_to_serve(ask.now) {
            publish_failed |= self.serve(at, ask, out) == Delivery::Failed;
        }
        publish_failed
    }

    fn next_to_serve(&self, now: u64) -> Option<usize> {
        let free = self.holds.is_empty();
        self.waiters.iter().take(if planted!(DeadWaiterBlocks) { 1 } else { usize::MAX }).position(
            |w| {
                let joins =
                    self.is_held_by(w.owner.as_ref()) && !planted!(OwnerQueuesBehindStranger);
                w.is_live(now) && (free || joins) && !(w.polling && planted!(PollersNeverServed))
            },
        )
    }

    /// Grants to the waiter at `at`, or silences it when nobody hears the push.
    fn serve(&mut self, at: usize, ask: &Settle<'_>, out: &mut dyn Announce) -> Delivery {
        let now = ask.now;
        let waiter = self.waiters.remove(at);
        let fresh = self.holds.is_empty();
        let before = (self.token, self.last, self.abandoned);
        if fresh {
            self.abandoned = self.abandoned_now();
            self.reserve(self.first_token(now, ask.floor));
        }
        let called = ask.caller == Some(waiter.hold);
        let delivery = if called || waiter.polling {
            Delivery::Delivered
        } else {
            let push = Push::Granted {
                lock: ask.lock.clone(),
                hold: waiter.hold,
                token: self.token,
                end: self.last,
                abandoned: self.abandoned,
                losses: self.losses,
                others_waiting: self.others_waiting(now, waiter.hold),
            };
            out.announce(waiter.client.id(), push)
        };
        if delivery == Delivery::Nobody {
            (self.token, self.last, self.abandoned) = before;
            self.waiters.insert(at, StoredWaiter { silent: true, ..waiter });
            return delivery;
        }
        self.owner.clone_from(&waiter.owner);
        self.holds.push(StoredHold::granted(waiter, now, called));
        delivery
    }
}

impl StoredHold {
    /// The hold that a waiter becomes: in full when it calls, on a claim when it is handed the
    /// lock.
    fn granted(waiter: StoredWaiter, now: u64, called: bool) -> StoredHold {
        let lease = if called { waiter.lease } else { waiter.claim.min(waiter.lease) };
        StoredHold {
            hold: waiter.hold,
            client: waiter.client,
            polling: waiter.polling,
            deadline: now.saturating_add(lease),
            lease,
            asked: waiter.lease,
            claim: !called,
        }
    }

    /// Sets the lease from now on; never shortens what is left.
    pub(super) fn renew(&mut self, now: u64, asked: u64, polling: bool) {
        self.deadline = self.deadline.max(now.saturating_add(asked));
        self.lease = if planted!(ShorterLeaseStored) { asked } else { self.deadline - now };
        self.asked = asked;
        self.claim = false;
        self.polling = polling;
    }
}
