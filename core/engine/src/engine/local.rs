//! The local queue: callers of one client share a seat, and hand it to each other.

use std::time::Duration;

use crate::engine::call::{Call, Hold, Wish};
use crate::engine::release::Step;
use crate::engine::seat::{At, Tenant};
use crate::engine::slab::Key;
use crate::engine::{Acquired, Engine, hold_end};
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Outcome};
use crate::hold::{Ask, CallKey, Grant, HoldKey, How, Owner, Patience};
use crate::options::{Keeping, TOKEN_BLOCK};
use crate::reply::Abandoned;
use crate::time::Time;
use crate::validity::margin;

impl<C: Clone> Engine<C> {
    pub(super) fn acquire_local(
        &mut self,
        now: Time,
        lock: u32,
        owner: u64,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        let seat = self.lock_ref(lock).and_then(|lock| lock.seat);
        if let Some(key) = seat
            && let Some(seat) = self.seats.get(key)
            && let Some(tenant) = &seat.tenant
        {
            if now >= seat.ends_at() && !planted!(ReentryAfterEnd) {
                self.expire(now, key);
            } else if tenant.owner == Some(owner) {
                return self.reenter(now, key, ask, call);
            }
        }
        let present = self.lock_ref(lock).is_some_and(|lock| lock.seat.is_some());
        if present && ask.patience == Patience::Try {
            return Err(contended());
        }
        if let Some(error) = self.refuses() {
            return Err(error);
        }
        let key = self.wait(now, lock, ask, None, call)?;
        if let Some(lock) = self.lock_mut(lock) {
            lock.waiting.push_back(key);
            lock.live += 1;
        }
        if !present {
            self.open_seat(now, lock);
        }
        Ok(Acquired::Pending(key))
    }

    pub(super) fn acquire_explicit(
        &mut self,
        now: Time,
        lock: u32,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        if let Some(error) = self.refuses() {
            return Err(error);
        }
        let key = self.wait(now, lock, ask, None, call)?;
        self.open_explicit(now, key);
        Ok(Acquired::Pending(key))
    }

    /// Adds a pending acquire or join, bounded in number and, for a try, in time.
    fn wait(
        &mut self,
        now: Time,
        lock: u32,
        ask: Ask,
        join: Option<Key>,
        call: C,
    ) -> Result<CallKey, Error> {
        if self.calls.len() >= self.options.max_waiters {
            let max = self.options.max_waiters;
            let text = format!("{max} calls wait in this client already: raise max_waiters");
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        let deadline = match ask.patience {
            Patience::Try => Some(now + self.options.request_timeout),
            Patience::Until(bound) => Some(bound),
            Patience::Forever => None,
        };
        let wish = if join.is_some() { Wish::Join(ask) } else { Wish::Acquire(ask) };
        let key = self.add_call(call, wish, lock, join, deadline);
        if let Some(seat) = join.and_then(|seat| self.seats.get_mut(seat)) {
            seat.companions.push(key);
        }
        Ok(key)
    }

    /// The owner has the lock: one more hold with the same token. A lease that outlasts the
    /// present one is renewed before it returns.
    fn reenter(&mut self, now: Time, key: Key, ask: Ask, call: C) -> Result<Acquired, Error> {
        let Some(seat) = self.seats.get(key) else { return Err(contended()) };
        // Under a watchdog that only this hold brings, a third of the lease is enough to begin with.
        let wanted = match ask.lease {
            Some(lease) => now + margin(lease),
            None => now + self.options.lease / 3,
        };
        if wanted > seat.valid_until && seat.group_end() != Time::MAX {
            let call = self.wait(now, seat.lock, ask, Some(key), call)?;
            self.beat_by(key, now);
            return Ok(Acquired::Pending(call));
        }
        let hold = self.add_hold(now, key, &ask, call);
        Ok(Acquired::Granted(self.grant_of(key, hold, How::Reentry, Duration::ZERO)))
    }

    /// One more hold under a seat that is held and has a tenant.
    pub(super) fn add_hold(&mut self, now: Time, key: Key, ask: &Ask, call: C) -> HoldKey {
        let end = hold_end(ask, now);
        let hold = Hold { call, seat: key, lease: ask.lease, end, wanted: false, lost: None };
        let hold = HoldKey::of(self.holds.insert(hold));
        if let Some(seat) = self.seats.get_mut(key)
            && let Some(tenant) = &mut seat.tenant
        {
            let first = tenant.holds.is_empty();
            tenant.holds.push(hold);
            if first || end > tenant.end || planted!(ShorterLeaseCutsOuter) {
                tenant.end = end;
                self.plan_renewal(now, key);
                self.arm(key);
            }
        }
        hold
    }

    /// A hold of the seat's tenant ended, or ends at another time than before.
    pub(super) fn update_end(&mut self, now: Time, key: Key) {
        let holds = &self.holds;
        let Some(tenant) = self.seats.get_mut(key).and_then(|seat| seat.tenant.as_mut()) else {
            return;
        };
        let ends = tenant.holds.iter().filter_map(|hold| holds.get(hold.key()));
        let end = ends.map(|hold| hold.end).max().unwrap_or(Time::MAX);
        if end == tenant.end {
            return;
        }
        tenant.end = end;
        if self.seats.get(key).is_some_and(|seat| seat.ends_at() <= now) {
            self.expire(now, key);
        } else {
            self.plan_renewal(now, key);
            self.arm(key);
        }
    }

    pub(super) fn grant_of(&self, key: Key, hold: HoldKey, how: How, waited: Duration) -> Grant {
        let (token, abandoned) = self.seats.get(key).map_or((0, Abandoned::No), |seat| {
            let token = seat.tenant.as_ref().map_or(0, |tenant| tenant.token);
            // A local hand-off follows a release that its holder made.
            (token, if how == How::Local { Abandoned::No } else { seat.abandoned })
        });
        let token = crate::token::Token(token);
        Grant { hold, token, abandoned, reentry: how == How::Reentry, how, waited }
    }

    /// The first local waiter that still waits.
    pub(super) fn first_waiter(&mut self, lock: u32) -> Option<CallKey> {
        let (key, _) = self.locks.at(lock)?;
        let lock = self.locks.get_mut(key)?;
        while let Some(&call) = lock.waiting.front() {
            if self.calls.get(call.key()).is_some() {
                return Some(call);
            }
            lock.waiting.pop_front();
        }
        None
    }

    /// What to do with a seat that is held and has no tenant.
    pub(super) fn next_step(&mut self, now: Time, key: Key) -> Step {
        let Some(seat) = self.seats.get(key) else { return Step::Leave };
        let (lock, explicit) = (seat.lock, seat.owner.is_some());
        let waiter = if explicit { seat.call } else { self.first_waiter(lock) };
        let Some(waiter) = waiter else {
            return if planted!(ImmortalAfterCancel) { Step::Renew } else { Step::Leave };
        };
        let own = self
            .calls
            .get(waiter.key())
            .and_then(|call| call.ask())
            .and_then(|ask| ask.lease)
            .unwrap_or(self.options.lease);
        let Some(seat) = self.seats.get(key) else { return Step::Leave };
        let left = seat.valid_until.since(now);
        let session = self.options.keeping == Keeping::Session;
        // A session may be shorter than any lease that is wanted.
        let most = if session { seat.asked } else { Duration::MAX };
        if !seat.told {
            // The grant itself, looked at again: the reply may have been long under way.
            let whole = if seat.claim { seat.claim_lease } else { own };
            let enough = whole.min(self.options.lease).min(most) / 3;
            return if left >= enough || planted!(LeaseNotLookedAtAgain) {
                Step::Grant(waiter)
            } else {
                Step::Renew
            };
        }
        let next = seat.used + 1;
        let bounded = self.options.local_run_grants;
        let run_over = (seat.others > 0 || session)
            && (seat.run >= bounded
                || seat.run_since.is_some_and(|at| now.since(at) >= self.options.local_run_time));
        if bounded == 0 || run_over && seat.others > 0 {
            return Step::Requeue;
        }
        if run_over && !planted!(OthersIgnored) {
            // Whether anybody waits, only a look can tell.
            return Step::Renew;
        }
        if session && next > seat.end {
            return Step::Requeue;
        }
        // Tokens must not outrun the store's clock: it is what a lost counter starts again from.
        // Where it stepped back far below them, only the store can go on counting.
        let bound = self.link.clock.at_least(now).saturating_add(TOKEN_BLOCK);
        if next > bound.saturating_add(TOKEN_BLOCK) && !session {
            return Step::Requeue;
        }
        let room = next <= seat.end && (session || next < bound) || planted!(BlockNotReserved);
        let fresh = now.since(seat.contact) < self.options.heartbeat();
        // Less than a renewal that asks for `own` gives, so that one renewal is enough.
        if room && fresh && left >= (own.min(most) / 2).min(self.options.lease / 3) {
            Step::Grant(waiter)
        } else {
            Step::Renew
        }
    }

    /// Gives a seat that is held to the call that is next.
    pub(super) fn grant(&mut self, now: Time, key: Key, waiter: CallKey, how: How) {
        let Some(call) = self.remove_call(waiter) else { return };
        let Some(ask) = call.ask().cloned() else { return };
        if let Owner::Local(_) = ask.owner
            && let Some(lock) = self.lock_mut(call.lock)
        {
            lock.waiting.pop_front();
            lock.live -= 1;
        }
        let session = self.options.keeping == Keeping::Session;
        let Some(seat) = self.seats.get_mut(key) else { return };
        let first = !seat.told;
        let token = if first { seat.token } else { seat.used + 1 };
        let how = if first { how } else { How::Local };
        let owner = match ask.owner {
            Owner::Local(owner) => Some(owner),
            Owner::Explicit(_) => None,
        };
        seat.tenant = Some(Tenant { owner, holds: Vec::with_capacity(1), token, end: Time::ZERO });
        seat.used = token;
        seat.told = true;
        seat.call = None;
        if !first && (seat.others > 0 || session) {
            seat.run += 1;
            seat.run_since.get_or_insert(now);
        }
        let (valid_until, asked, others) = (seat.valid_until, seat.asked, seat.others);
        let lock = seat.lock;
        if let Some(lock) = self.lock_mut(lock) {
            lock.floor = lock.floor.max(token);
        }
        let hold = self.add_hold(now, key, &ask, call.call.clone());
        // An explicit lease that came with the grant itself ends with it: it is not renewed.
        if first
            && ask.lease.is_some_and(|lease| lease <= asked)
            && let Some(entry) = self.holds.get_mut(hold.key())
            && entry.end > valid_until
        {
            entry.end = valid_until;
            self.update_end(now, key);
        }
        let grant = self.grant_of(key, hold, how, now.since(call.since));
        self.complete(call.call, Outcome::Granted(grant));
        if others > 0 {
            self.tell_wanted(now, key);
        }
    }

    /// Others wait: the local run begins, and the holder is told once.
    pub(super) fn tell_wanted(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        if seat.at != At::Held {
            return;
        }
        seat.run_since.get_or_insert(now);
        let holds = seat.tenant.as_ref().map(|tenant| tenant.holds.clone()).unwrap_or_default();
        for hold in holds {
            if let Some(hold) = self.holds.get_mut(hold.key())
                && !hold.wanted
            {
                hold.wanted = true;
                self.effects.push_back(Effect::Wanted(hold.call.clone()));
            }
        }
    }

    /// Takes a pending call out, with whatever it had going at the store.
    pub(super) fn withdraw(&mut self, now: Time, key: CallKey) -> Option<Call<C>> {
        let call = self.remove_call(key)?;
        match &call.wish {
            Wish::Acquire(Ask { owner: Owner::Explicit(_), .. }) => {
                if let Some(seat) = call.seat
                    && !planted!(CancelLeavesWaiter)
                {
                    self.part(now, seat, None, false);
                }
            }
            Wish::Acquire(_) => {
                let mut idle = None;
                if let Some(lock) = self.lock_mut(call.lock) {
                    lock.live -= 1;
                    if lock.live == 0 {
                        lock.waiting.clear();
                        idle = lock.seat;
                    } else if lock.waiting.len() > 32 && lock.waiting.len() > 2 * lock.live {
                        let calls = &self.calls;
                        let (index, _) = self.locks.at(call.lock)?;
                        if let Some(lock) = self.locks.get_mut(index) {
                            lock.waiting.retain(|waiter| calls.get(waiter.key()).is_some());
                        }
                    }
                }
                if let Some(seat) = idle
                    && self.seats.get(seat).is_some_and(|seat| seat.tenant.is_none())
                {
                    self.part(now, seat, None, false);
                }
                self.retire_lock(call.lock);
            }
            Wish::Join(_) | Wish::Extend { .. } => {}
        }
        Some(call)
    }

    pub(super) fn call_expired(&mut self, now: Time, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let seat = match call.seat {
            Some(seat) => Some(seat),
            None => self.lock_ref(call.lock).and_then(|lock| lock.seat),
        };
        let seat = seat.and_then(|seat| self.seats.get(seat));
        let answered = self.link.up && seat.is_some_and(|s| matches!(s.at, At::Queued | At::Held));
        let trouble = seat.and_then(|seat| seat.trouble.clone());
        let is_try = call.ask().is_none_or(|ask| ask.patience == Patience::Try);
        let error = if let Some(trouble) = trouble {
            Error::new(ErrorKind::Unavailable, trouble)
        } else if answered && !is_try {
            Error::new(ErrorKind::TimedOut, "the lock was not free within the wait's bound")
        } else {
            let text = self.unavailable("the store did not answer");
            Error::new(ErrorKind::Unavailable, text)
        };
        if let Some(call) = self.withdraw(now, CallKey::of(key)) {
            self.complete(call.call, Outcome::Failed(error));
        }
    }
}

pub(super) fn contended() -> Error {
    Error::new(ErrorKind::Contended, "the lock is held by another, or others wait for it")
}
