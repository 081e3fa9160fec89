//! What every contact does: clamp deadlines, expire holds, hand the lock on.

use crate::id::{HoldId, OwnerId};
use crate::reply::{Abandoned, Push};
use crate::request::Mode;
use crate::store::mode::Tie;
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
/// How many one contact lets in beside the caller; and how many holders hear of a newcomer.
pub(super) const BATCH: usize = 64;

/// What a settle came to.
#[derive(Clone, Copy, Default)]
pub(super) struct Settled {
    /// The store may not publish.
    pub publish_failed: bool,
    /// The lock is free, and those that were passed over were so many that the next contact must
    /// go on.
    pub cut: bool,
}

const SHARED: Mode = Mode::Shared;

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
        for (at, hold) in self.holds.iter_mut().enumerate() {
            if !planted!(DeadlineNotClamped) && (at == 0 || !planted!(FirstHoldClamped)) {
                hold.deadline = hold.deadline.min(now.saturating_add(hold.lease));
            }
        }
        if planted!(ReadersEndTogether) {
            self.keep_readers(now);
        }
        // Only who had the lock for itself can have left anything half done.
        let (mut heard, mut unheard) = (false, false);
        self.holds.retain(|hold| {
            let live = now < hold.deadline;
            let over = !live && (hold.is_exclusive() || planted!(LostReaderTold));
            heard |= over && !hold.claim;
            unheard |= over && hold.claim;
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
        if !self.is_exclusive() {
            self.vacate();
        } else {
            self.losses = self.losses.saturating_add(1);
        }
    }

    /// Nobody has the lock for itself any more.
    pub(super) fn vacate(&mut self) {
        self.owner = None;
        self.losses = 0;
    }

    /// Lets in those live waiters at the head who fit, one after the other, and all live waiters of
    /// an explicit owner who is let in. Nobody passes one who does not fit. Who is found silent at
    /// the head is parked, also while the lock is held, so that the first one is known to live.
    pub(super) fn settle(&mut self, ask: &Settle<'_>, out: &mut dyn Announce) -> Settled {
        let mut settled = Settled::default();
        if ask.now >= MAX_STORE_TIME {
            return settled;
        }
        let (mut left, mut room) = (TRIES, BATCH);
        let taken = self.is_exclusive();
        let caller = ask.caller.and_then(|caller| self.waiters.get(caller));
        let mut sharer = caller.and_then(|caller| caller.owner.clone());
        while left > 0 && room > 0 {
            let one = planted!(OneReaderWakes) && room < BATCH;
            let granted = !taken && self.is_exclusive() || one;
            let Some(next) = self.next_to_serve(ask.now, granted, sharer.as_ref()) else { break };
            let delivery = match next {
                Next::Silent(hold) => {
                    self.waiters.park(ask.now, hold);
                    if planted!(DeadReaderStops) && !self.holds.is_empty() {
                        left = 1;
                    }
                    Delivery::Nobody
                }
                Next::Live(hold) => {
                    let owner = self.waiters.get(hold).and_then(|waiter| waiter.owner.clone());
                    let delivery = self.serve(hold, ask, out);
                    let served = delivery != Delivery::Nobody;
                    let other = served && ask.caller != Some(hold) && !self.is_exclusive();
                    room -= usize::from(other);
                    sharer = owner.filter(|_| served).or(sharer);
                    delivery
                }
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

    /// After the lock was granted to one alone, only its owner's others are of interest.
    fn next_to_serve(&self, now: u64, granted: bool, sharer: Option<&OwnerId>) -> Option<Next> {
        if let Some(own) = self.own_waiter(now, sharer)
            && !planted!(OwnerQueuesBehindStranger)
        {
            return Some(Next::Live(own));
        }
        let first = self.waiters.first().filter(|_| !granted)?;
        let fits = self.fits(first.mode);
        if first.polling && planted!(PollersNeverServed) {
            return fits.then_some(Next::Silent(first.hold));
        }
        if !first.is_live(now) {
            return (!planted!(DeadWaiterBlocks)).then_some(Next::Silent(first.hold));
        }
        if self.tie(first.owner.as_ref(), first.mode) == Tie::Deadlock && !planted!(OwnHoldAwaited)
        {
            return Some(Next::Silent(first.hold));
        }
        if first.is_doomed().is_some() {
            return Some(Next::Silent(first.hold));
        }
        if !fits && planted!(WhoFitsPasses) {
            return self.planted_passer(now).map(Next::Live);
        }
        fits.then_some(Next::Live(first.hold))
    }

    /// A waiter of the explicit owner who has the lock for itself, or of one who shares it and was let
    /// in just now, or calls: its others join it.
    fn own_waiter(&self, now: u64, sharer: Option<&OwnerId>) -> Option<HoldId> {
        let own = match &self.owner {
            Some(owner) if !self.holds.is_empty() => self.waiters.first_of(owner, now, |_| true),
            _ => {
                let sharer =
                    sharer.filter(|it| matches!(self.tie(Some(it), SHARED), Tie::Joins(_)))?;
                self.waiters.first_of(sharer, now, |mode| mode == SHARED)
            }
        };
        own.map(|waiter| waiter.hold)
    }

    /// Grants to a waiter, or parks it when nobody hears the push.
    fn serve(&mut self, hold: HoldId, ask: &Settle<'_>, out: &mut dyn Announce) -> Delivery {
        let now = ask.now;
        let Some(waiter) = self.waiters.remove(hold) else { return Delivery::Nobody };
        let before = (self.token, self.last, self.abandoned);
        let told = self.admit(now, ask.floor, waiter.mode, waiter.owner.as_ref());
        let called = ask.caller == Some(waiter.hold);
        let delivery = if called || waiter.polling {
            Delivery::Delivered
        } else {
            let push = Push::Granted {
                lock: ask.lock.clone(),
                hold: waiter.hold,
                token: told.token,
                end: told.end,
                abandoned: told.abandoned,
                losses: told.losses,
                others_waiting: self.others_waiting(waiter.hold),
            };
            out.announce(waiter.client.id(), push)
        };
        if delivery == Delivery::Nobody {
            (self.token, self.last, self.abandoned) = before;
            self.waiters.insert(StoredWaiter { silent: true, ..waiter });
            return delivery;
        }
        if waiter.mode == Mode::Exclusive {
            self.owner.clone_from(&waiter.owner);
        }
        self.holds.push(StoredHold::granted(waiter, now, called, told.token));
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
    /// given out. A shared hold, permits, and an
    /// explicit owner's hold have one holder: a copy of what it asked moves the end on, and
    /// its other holds, of which nothing was given out yet, are renewed as well.
    pub(super) fn reach(&mut self, at: usize, used: u64) -> Reach {
        if !self.holds[at].is_exclusive() {
            return Reach::Lengthen;
        }
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
    fn granted(waiter: StoredWaiter, now: u64, called: bool, token: u64) -> StoredHold {
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
            mode: waiter.mode,
            token,
            owner: waiter.owner,
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
