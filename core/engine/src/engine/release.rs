//! Giving a hold up, handing the seat on, and leaving the store.

use std::time::Duration;

use crate::engine::call::Wish;
use crate::engine::flight::{Flight, Purpose};
use crate::engine::seat::{After, At, Parting, Seat};
use crate::engine::slab::Key;
use crate::engine::{Ended, Engine};
use crate::error::{Error, ErrorKind};
use crate::event::Outcome;
use crate::hold::{CallKey, HoldKey, How, Patience};
use crate::id::HoldId;
use crate::request::{Acquire, Mode, Op, Wait};
use crate::time::{Time, micros_up};

/// How late a try may take effect: half of what stores allow for a request without a claim.
const TRY_SLACK: Duration = Duration::from_secs(3);

/// What to do with a seat that is held and has no tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Grant it to this call.
    Grant(CallKey),
    /// Ask the store for more time, more tokens or fresh news, then look again.
    Renew,
    /// Others had to wait long enough: release, and queue again, in one step.
    Requeue,
    /// Nobody here wants it.
    Leave,
}

impl<C: Clone> Engine<C> {
    /// Releases a hold. Without a handle the release goes on in the background.
    ///
    /// # Errors
    /// `Lost` when the hold had ended, `NotHeld` when it was released before.
    pub fn release(&mut self, now: Time, hold: HoldKey, call: Option<C>) -> Result<Ended, Error> {
        let now = self.at(now);
        let released = self.release_hold(now, hold, call);
        self.settle(now);
        released
    }

    fn release_hold(&mut self, now: Time, hold: HoldKey, call: Option<C>) -> Result<Ended, Error> {
        let seat = self.live_seat(now, hold);
        self.holds.remove(hold.key());
        let key = seat?;
        let Some(seat) = self.seats.get_mut(key) else { return Err(not_held()) };
        if let Some(tenant) = &mut seat.tenant {
            if let Some(at) = tenant.holds.iter().rposition(|other| *other == hold) {
                tenant.holds.remove(at);
            }
            if !tenant.holds.is_empty() {
                self.update_end(now, key);
                return Ok(Ended::Done);
            }
        }
        seat.tenant = None;
        Ok(self.hand_on(now, key, How::Local, call))
    }

    /// The seat of a hold that is still good.
    pub(super) fn live_seat(&mut self, now: Time, hold: HoldKey) -> Result<Key, Error> {
        let Some(entry) = self.holds.get(hold.key()) else { return Err(not_held()) };
        let key = entry.seat;
        if entry.lost.is_none() && self.seats.get(key).is_some_and(|seat| seat.ends_at() <= now) {
            self.expire(now, key);
        }
        let Some(entry) = self.holds.get(hold.key()) else { return Err(not_held()) };
        match entry.lost {
            Some(reason) => Err(super::loss::lost(reason)),
            None => Ok(key),
        }
    }

    /// Passes on a seat that is held and has no tenant. `call` waits for the release that this
    /// is part of.
    pub(super) fn hand_on(&mut self, now: Time, key: Key, how: How, call: Option<C>) -> Ended {
        let step = self.next_step(now, key);
        match step {
            Step::Grant(waiter) => {
                self.grant(now, key, waiter, how);
                Ended::Done
            }
            Step::Renew => {
                self.beat_by(key, now);
                self.arm(key);
                Ended::Done
            }
            Step::Requeue => {
                self.requeue(now, key, call);
                Ended::Pending
            }
            Step::Leave => {
                self.part(now, key, call, false);
                Ended::Pending
            }
        }
    }

    /// Opens a seat for the local waiters of a lock that has none.
    pub(super) fn open_seat(&mut self, now: Time, lock: u32) {
        let key = self.new_seat(lock, None);
        if let Some(lock) = self.lock_mut(lock) {
            lock.seat = Some(key);
        }
        self.advance(now, key);
    }

    /// Opens a seat for one explicit owner's call.
    pub(super) fn open_explicit(&mut self, now: Time, call: CallKey) {
        let Some(entry) = self.calls.get(call.key()) else { return };
        let owner = match entry.ask().map(|ask| &ask.owner) {
            Some(crate::hold::Owner::Explicit(owner)) => Some(owner.clone()),
            _ => None,
        };
        let key = self.new_seat(entry.lock, owner);
        if let Some(entry) = self.calls.get_mut(call.key()) {
            entry.seat = Some(key);
        }
        if let Some(seat) = self.seats.get_mut(key) {
            seat.call = Some(call);
        }
        self.advance(now, key);
    }

    fn new_seat(&mut self, lock: u32, owner: Option<crate::id::OwnerId>) -> Key {
        let id = self.mint(self.seats.next_key());
        let name = self.lock_mut(lock).map(|lock| {
            lock.seats += 1;
            lock.name.clone()
        });
        // Only locks that exist get a seat; a name is all that could be missing.
        let Some(name) = name else { return Key { index: u32::MAX, serial: 0 } };
        self.seats.insert(Seat::new(id, lock, name, owner))
    }

    /// Releases, and queues again behind the clients that wait, in one step at the store.
    fn requeue(&mut self, now: Time, key: Key, call: Option<C>) {
        let Some(seat) = self.seats.get(key) else { return };
        let lock = seat.lock;
        if seat.flight.is_some() || seat.exposed_until > 0 {
            self.part(now, key, call, false);
        } else {
            let parting = Parting {
                call,
                deadline: now + self.options.request_timeout,
                told: true,
                lost: false,
                tries: 1,
                in_time: true,
            };
            let release = seat.release(true, false);
            let after = Some(After { release, parting });
            if let Some(lock) = self.lock_mut(lock) {
                lock.seat = None;
            }
            self.drop_seat(key);
            let next = self.new_seat(lock, None);
            if let Some(seat) = self.seats.get_mut(next) {
                seat.after = after;
            }
            if let Some(lock) = self.lock_mut(lock) {
                lock.seat = Some(next);
            }
            self.advance(now, next);
            self.arm(next);
        }
        self.reopen(now, lock);
    }

    /// A seat for the waiters that are left, if there are any and it has none.
    pub(super) fn reopen(&mut self, now: Time, lock: u32) {
        if self.lock_ref(lock).is_some_and(|lock| lock.live > 0 && lock.seat.is_none())
            && self.closing.is_none()
        {
            self.open_seat(now, lock);
        }
    }

    /// Begins to leave the store. `lost`: the holder's time had run out.
    pub(super) fn part(&mut self, now: Time, key: Key, call: Option<C>, lost: bool) {
        self.split_after(now, key);
        let deadline = now + self.options.request_timeout;
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.parting.is_some() {
            return;
        }
        seat.parting = Some(Parting {
            call,
            deadline,
            told: seat.told,
            lost: lost && seat.told,
            tries: 0,
            in_time: !lost,
        });
        seat.tenant = None;
        seat.call = None;
        // What was refused before says nothing about the release.
        seat.retry_at = Time::ZERO;
        let lock = seat.lock;
        if let Some(lock) = self.lock_mut(lock)
            && lock.seat == Some(key)
        {
            lock.seat = None;
        }
        self.no_beat(key);
        self.advance(now, key);
        self.arm(key);
    }

    /// A release that was to go out with an acquire goes alone, since the acquire does not.
    pub(super) fn split_after(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.flight.is_some() {
            return;
        }
        let Some(after) = seat.after.take() else { return };
        let lock = seat.lock;
        let old = self.leaving_seat(lock, after.release.hold, after.release.used);
        if let Some(seat) = self.seats.get_mut(old) {
            seat.parting = Some(after.parting);
        }
        self.advance(now, old);
        self.arm(old);
    }

    /// A seat whose hold, of whatever origin, is only to be released.
    pub(super) fn leaving_seat(&mut self, lock: u32, hold: HoldId, used: u64) -> Key {
        let deadline = self.now + self.options.request_timeout;
        let key = self.new_seat(lock, None);
        if let Some(seat) = self.seats.get_mut(key) {
            seat.id = hold;
            seat.used = used;
            seat.at = At::Unclear;
            seat.parting = Some(Parting {
                call: None,
                deadline,
                told: false,
                lost: false,
                tries: 0,
                in_time: false,
            });
        }
        key
    }

    /// Sends what the seat needs next, if anything, and if it may.
    pub(super) fn advance(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get(key) else { return };
        if seat.flight.is_some() {
            return;
        }
        let nothing_there = seat.at == At::Nowhere && seat.exposed_until == 0;
        if seat.parting.is_some() && nothing_there {
            return self.finish(key, Outcome::Released);
        }
        if !self.link.up || now < seat.retry_at {
            return self.arm(key);
        }
        match (&seat.parting, seat.at) {
            (Some(_), _) => self.send_release(now, key),
            (None, At::Nowhere | At::Unclear) => self.send_acquire(now, key),
            (None, At::Queued | At::Held) => {}
        }
    }

    fn send_acquire(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get(key) else { return };
        let (index, explicit) = (seat.lock, seat.call);
        let first = if seat.owner.is_some() { explicit } else { self.first_waiter(index) };
        let Some(first) = first else { return self.part(now, key, None, false) };
        let wait = self.wants_to_wait(key, first);
        let Some(ask) = self.calls.get(first.key()).and_then(|call| call.ask()) else { return };
        let (lease, attach) = (ask.lease.unwrap_or(self.options.lease), ask.attach);
        let Some(seat) = self.seats.get(key) else { return };
        // The store refuses an instant that lies further ahead than twice the claim it is told.
        let claim = if wait { self.options.claim.min(lease) } else { self.options.claim };
        let claim = if planted!(ClaimShorterThanPoll) { claim / 10 } else { claim };
        let slack = if wait { claim } else { claim.min(TRY_SLACK) };
        let not_after = self.link.clock.estimate(now).saturating_add(micros_up(slack));
        let acquire = Acquire {
            lock: seat.name.clone(),
            hold: seat.id,
            owner: seat.owner.clone(),
            mode: Mode::Exclusive,
            lease,
            not_after,
            floor: self.lock_ref(index).map_or(0, |lock| lock.floor),
            wait: wait.then_some(Wait { ticket: seat.ticket, claim, silence: self.options.claim }),
            attach: attach.map(crate::token::Token::get),
            after: seat.after.as_ref().map(|after| after.release.clone()),
        };
        let purpose = Purpose::Acquire { seat: key, lease, not_after, wait };
        let id = self.send(Flight { sent: now, purpose }, Op::Acquire(acquire));
        if let Some(seat) = self.seats.get_mut(key) {
            seat.flight = Some(id);
            seat.claim_lease = seat.claim_lease.min(claim.min(lease));
        }
        self.arm(key);
    }

    /// Whether any call behind this seat is ready to wait.
    fn wants_to_wait(&self, key: Key, first: CallKey) -> bool {
        let patient = |call: &CallKey| {
            let ask = self.calls.get(call.key()).and_then(|call| call.ask());
            ask.is_some_and(|ask| ask.patience != Patience::Try && ask.attach.is_none())
        };
        let Some(seat) = self.seats.get(key) else { return false };
        if seat.owner.is_some() {
            return patient(&first);
        }
        self.lock_ref(seat.lock).is_some_and(|lock| lock.waiting.iter().any(patient))
    }

    fn send_release(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        let Some(parting) = &mut seat.parting else { return };
        parting.tries += 1;
        let (told, lost) = (parting.told, parting.lost);
        let release = seat.release(told, lost);
        let purpose = Purpose::Release { seat: key };
        let id = self.send(Flight { sent: now, purpose }, Op::Release(release));
        if let Some(seat) = self.seats.get_mut(key) {
            seat.flight = Some(id);
        }
        self.arm(key);
    }

    /// The caller waits for its release no longer; the release goes on.
    pub(super) fn bound_parting(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        let partings = [seat.parting.as_mut(), seat.after.as_mut().map(|after| &mut after.parting)];
        let mut late = Vec::new();
        for parting in partings.into_iter().flatten() {
            if parting.deadline <= now {
                late.extend(parting.call.take());
            }
        }
        for call in late {
            let text = self.unavailable("the store did not confirm the release");
            self.complete(call, Outcome::Failed(Error::new(ErrorKind::Unavailable, text)));
        }
    }

    /// The seat is over.
    pub(super) fn finish(&mut self, key: Key, outcome: Outcome) {
        let Some(seat) = self.drop_seat(key) else { return };
        debug_assert!(seat.after.is_none(), "a release was forgotten");
        if let Some(call) = seat.parting.and_then(|parting| parting.call) {
            self.complete(call, outcome);
        }
        self.check_closed();
    }

    fn drop_seat(&mut self, key: Key) -> Option<Seat<C>> {
        self.no_beat(key);
        let seat = self.seats.remove(key)?;
        if let Some(at) = seat.timer {
            self.timers.remove(&(at, super::timer::Due::Seat(key)));
        }
        if let Some(lock) = self.lock_mut(seat.lock) {
            lock.seats -= 1;
            lock.floor = lock.floor.max(seat.used);
            if lock.seat == Some(key) {
                lock.seat = None;
            }
        }
        self.retire_lock(seat.lock);
        Some(seat)
    }

    /// Fails every call that waits for this seat, or only the tries among them.
    pub(super) fn fail_waiters(&mut self, now: Time, key: Key, error: &Error, tries_only: bool) {
        let Some(seat) = self.seats.get(key) else { return };
        let waiters: Vec<CallKey> = match seat.owner {
            Some(_) => seat.call.into_iter().collect(),
            None => self
                .lock_ref(seat.lock)
                .map(|lock| lock.waiting.iter().copied().collect())
                .unwrap_or_default(),
        };
        for waiter in waiters {
            let Some(call) = self.calls.get(waiter.key()) else { continue };
            let Wish::Acquire(ask) = &call.wish else { continue };
            if tries_only && ask.patience != Patience::Try {
                continue;
            }
            if let Some(call) = self.withdraw(now, waiter) {
                self.complete(call.call, Outcome::Failed(error.clone()));
            }
        }
    }
}

pub(super) fn not_held() -> Error {
    Error::new(ErrorKind::NotHeld, "the lock is not held: it was released before")
}
