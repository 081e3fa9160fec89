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

/// How many waiters one contact may pass over.
const TRIES: usize = 512;

/// What a settle came to.
#[derive(Clone, Copy, Default)]
pub(super) struct Settled {
    /// The store may not publish.
    pub publish_failed: bool,
    /// The lock is free, and those that were passed over were so many that the next contact must
    /// go on.
    pub cut: bool,
}

/// Who comes next.
enum Next {
    /// It gets the lock.
    Live(HoldId),
    /// It is passed over.
    Silent(HoldId),
}

impl Record {
    /// Brings the record to `now`: nothing outlives its lease, whatever the clock did.
    pub(super) fn tick(&mut self, now: u64) {
        self.expire(now);
        self.waiters.sweep(now);
    }

    /// Ends the holds whose time is over.
    pub(super) fn expire(&mut self, now: u64) {
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
    /// explicit owner if it has one. Who is found silent at the head is parked, also while the
    /// lock is held, so that the first one is known to live.
    pub(super) fn settle(&mut self, ask: &Settle<'_>, out: &mut dyn Announce) -> Settled {
        let mut settled = Settled::default();
        if ask.now >= MAX_STORE_TIME {
            return settled;
        }
        let (mut left, taken) = (TRIES, !self.holds.is_empty());
        while left > 0 {
            let granted = !taken && !self.holds.is_empty();
            let Some(next) = self.next_to_serve(ask.now, granted) else { break };
            let delivery = match next {
                Next::Silent(hold) => {
                    self.waiters.park(ask.now, hold);
                    Delivery::Nobody
                }
                Next::Live(hold) => self.serve(hold, ask, out),
            };
            settled.publish_failed |= delivery == Delivery::Failed;
            left -= usize::from(delivery == Delivery::Nobody);
        }
        if left == 0 && self.holds.is_empty() {
            settled.cut = true;
            settled.publish_failed |= self.call_last(ask, out);
        }
        settled
    }

    /// Asks for another contact, which goes on; who came last is likely to live.
    fn call_last(&self, ask: &Settle<'_>, out: &mut dyn Announce) -> bool {
        let Some(last) = self.waiters.last() else { return false };
        if last.polling || ask.caller == Some(last.hold) {
            return false;
        }
        let push = Push::Changed { lock: ask.lock.clone(), hold: last.hold };
        out.announce(last.client.id(), push) == Delivery::Failed
    }

    /// After the lock was granted only its owner's others are of interest.
    fn next_to_serve(&self, now: u64, granted: bool) -> Option<Next> {
        let free = self.holds.is_empty();
        if !free
            && let Some(owner) = &self.owner
            && let Some(own) = self.waiters.first_of(owner, now)
            && !planted!(OwnerQueuesBehindStranger)
        {
            return Some(Next::Live(own.hold));
        }
        let first = self.waiters.first().filter(|_| !granted)?;
        if first.polling && planted!(PollersNeverServed) {
            return free.then_some(Next::Silent(first.hold));
        }
        if !first.is_live(now) {
            return (!planted!(DeadWaiterBlocks)).then_some(Next::Silent(first.hold));
        }
        free.then_some(Next::Live(first.hold))
    }

    /// Grants to a waiter, or parks it when nobody hears the push.
    fn serve(&mut self, hold: HoldId, ask: &Settle<'_>, out: &mut dyn Announce) -> Delivery {
        let now = ask.now;
        let Some(waiter) = self.waiters.remove(hold) else { return Delivery::Nobody };
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
                others_waiting: self.others_waiting(waiter.hold),
            };
            out.announce(waiter.client.id(), push)
        };
        if delivery == Delivery::Nobody {
            (self.token, self.last, self.abandoned) = before;
            self.waiters.insert(StoredWaiter { silent: true, ..waiter });
            return delivery;
        }
        self.owner.clone_from(&waiter.owner);
        self.holds.push(StoredHold::granted(waiter, now, called));
        delivery
    }
}

/// How far a renewal may move its hold's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// To what it asks for: the first word of a holder that was handed the lock by its client.
    Set,
    /// No nearer than it is: the same holder again.
    Lengthen,
    /// Not at all: a late copy, of what an earlier holder asked for.
    Keep,
}

impl Record {
    /// What a request may do to the end of a hold of which it says that tokens up to `used` were
    /// given out. An explicit owner's hold has one holder: a copy of what it asked moves the end on, and
    /// its other holds, of which nothing was given out yet, are renewed as well.
    pub(super) fn reach(&mut self, used: u64) -> Reach {
        let told = self.used >= self.token;
        if used > self.used && used >= self.token {
            self.used = used;
            if planted!(HandOffInherits) { Reach::Lengthen } else { Reach::Set }
        } else if self.owner.is_none() && told && used < self.used && !planted!(LateLeaseKept) {
            Reach::Keep
        } else if planted!(RenewalShortens) {
            Reach::Set
        } else {
            Reach::Lengthen
        }
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
            local_waiters: waiter.local_waiters,
        }
    }

    /// Moves the end to what was asked for from now on, as far as `reach` lets it.
    pub(super) fn renew(&mut self, now: u64, asked: u64, polling: bool, reach: Reach) {
        let end = now.saturating_add(asked);
        self.deadline = match reach {
            Reach::Set => end,
            Reach::Lengthen => self.deadline.max(end),
            Reach::Keep => self.deadline,
        };
        self.lease = if planted!(ShorterLeaseStored) { asked } else { self.deadline - now };
        self.asked = asked;
        self.claim = false;
        self.polling = polling;
    }
}
