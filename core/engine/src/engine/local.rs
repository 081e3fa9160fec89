//! The local queue: callers of one client share an entry, and hand it to each other.

use std::time::Duration;

use crate::engine::call::{Call, CallKind, Hold};
use crate::engine::entry::{At, Entry, Holder};
use crate::engine::release::Step;
use crate::engine::slab::Key;
use crate::engine::words::{contended, seen, timed_out};
use crate::engine::{Acquired, Engine, hold_end};
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Outcome};
use crate::hold::{Ask, CallKey, Grant, HoldKey, How, Patience};
use crate::options::{Keeping, MIN_LEASE, Options, TOKEN_BLOCK};
use crate::reply::Abandoned;
use crate::request::{MAX_LOCAL_WAITERS, Mode};
use crate::time::Time;
use crate::validity::DRIFT_FIXED;

impl<C: Clone> Engine<C> {
    pub(super) fn acquire_local(
        &mut self,
        now: Time,
        lock: u32,
        owner: u64,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        if let Some(key) = self.lock_ref(lock).and_then(|lock| lock.entry)
            && self.live_holder(now, key) == Some(Some(owner))
        {
            return self.reenter(now, key, ask, call);
        }
        if let Some(key) = self.reads(now, lock, owner)
            && !planted!(UpgradeQueues)
        {
            if self.entries.get(key).is_some_and(|entry| entry.mode == Mode::Exclusive) {
                return self.reenter(now, key, ask, call);
            }
            return Err(super::reply::would_deadlock());
        }
        let present = self.lock_ref(lock).is_some_and(|lock| lock.entry.is_some());
        if present && ask.patience == Patience::Try {
            return Err(contended(ask.mode));
        }
        if let Some(error) = self.refuses(self.lane_of_lock(lock)) {
            return Err(error);
        }
        let waits = ask.patience != Patience::Try;
        let key = self.wait(now, lock, ask, None, call)?;
        if let Some(lock) = self.lock_mut(lock) {
            lock.waiting.push_back(key);
            lock.enter(owner);
            if waits && !planted!(ReaderPassesOwnWriter) {
                // Readers that come from now on have come after it.
                lock.seat = None;
            }
        }
        if !present {
            self.open_entry(now, lock);
        }
        Ok(Acquired::Pending(key))
    }

    pub(super) fn acquire_single(
        &mut self,
        now: Time,
        lock: u32,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        if let Some(error) = self.refuses(self.lane_of_lock(lock)) {
            return Err(error);
        }
        let key = self.wait(now, lock, ask, None, call)?;
        self.open_single(now, key);
        Ok(Acquired::Pending(key))
    }

    /// Adds a pending acquire or join, bounded in number and, for a try, in time.
    pub(super) fn wait(
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
        let kind = if join.is_some() { CallKind::Join(ask) } else { CallKind::Acquire(ask) };
        let key = self.add_call(call, kind, lock, join, deadline);
        if let Some(entry) = join.and_then(|entry| self.entries.get_mut(entry)) {
            entry.companions.push(key);
        }
        Ok(key)
    }

    /// The owner has the lock: one more hold with the same token. A lease that outlasts the
    /// present one is renewed before it returns.
    pub(super) fn reenter(
        &mut self,
        now: Time,
        key: Key,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        let Some(entry) = self.entries.get(key) else { return Err(contended(ask.mode)) };
        if self.outlasts(now, entry, &ask) {
            let call = self.wait(now, entry.lock, ask, Some(key), call)?;
            self.beat_by(key, now);
            return Ok(Acquired::Pending(call));
        }
        let hold = self.add_hold(now, key, &ask, call);
        Ok(Acquired::Granted(self.grant_of(key, hold, How::Reentry, Duration::ZERO)))
    }

    /// Whether a further hold of the entry's holder must wait for a renewal; or for the answer to an upgrade,
    /// whose token is the one to read with, too.
    pub(super) fn outlasts(&self, now: Time, entry: &Entry<C>, ask: &Ask) -> bool {
        if entry.is_being_upgraded() && !planted!(JoinsUpgrade) {
            return true;
        }
        // Under a watchdog that only this hold brings, a third of the lease is enough to begin with.
        let wanted = match ask.lease {
            Some(lease) => self.options.drift().until(now, lease),
            None => now + self.options.lease / 3,
        };
        wanted > entry.valid_until && entry.group_end() != Time::MAX
    }

    /// One more hold for one of those who have an entry that is held.
    pub(super) fn add_hold(&mut self, now: Time, key: Key, ask: &Ask, call: C) -> HoldKey {
        let (end, owner) = (hold_end(ask, now, self.options.drift()), ask.tenant());
        let hold = HoldKey::of(self.holds.insert(Hold {
            call,
            entry: key,
            mode: ask.mode,
            owner,
            lease: ask.lease,
            end,
            extended: Time::ZERO,
            wanted: false,
            lost: None,
        }));
        if let Some(entry) = self.entries.get_mut(key)
            && let Some(holder) = entry.tenants.get_mut(owner)
        {
            let first = holder.holds.is_empty();
            holder.holds.push(hold);
            if first || end > holder.end || planted!(ShorterLeaseCutsOuter) {
                entry.tenants.set_end(owner, end);
                self.plan_renewal(now, key);
                self.arm(key);
            }
        }
        hold
    }

    /// A hold of one of the entry's holders ended, or ends at another time than before.
    pub(super) fn update_end(&mut self, now: Time, key: Key, owner: Option<u64>) {
        let holds = &self.holds;
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(holder) = entry.tenants.get(owner) else { return };
        let ends = holder.holds.iter().filter_map(|hold| holds.get(hold.key()));
        let end = ends.map(|hold| hold.end).max().unwrap_or(Time::MAX);
        if end == holder.end {
            return;
        }
        entry.tenants.set_end(owner, end);
        if entry.ends_for(owner) <= now {
            self.expire(now, key);
        } else {
            self.plan_renewal(now, key);
            self.arm(key);
        }
    }

    pub(super) fn grant_of(&self, key: Key, hold: HoldKey, how: How, waited: Duration) -> Grant {
        let owner = self.holds.get(hold.key()).and_then(|hold| hold.owner);
        let holder = self.entries.get(key).and_then(|entry| entry.tenants.get(owner));
        let (token, abandoned) =
            holder.map_or((0, Abandoned::No), |holder| (holder.token, holder.abandoned));
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

    /// How many of this client's callers wait behind an entry: besides the one whose turn is next,
    /// while nobody here holds the lock. Other callers have an entry each.
    pub(super) fn local_waiters(&self, key: Key) -> u32 {
        let Some(entry) = self.entries.get(key) else { return 0 };
        let lock = self.lock_ref(entry.lock).filter(|lock| lock.entry == Some(key));
        let mut wait = lock.map_or(entry.calls.len(), |lock| lock.live);
        if let Some(line) = self.lock_ref(entry.lock).map(|lock| &lock.line)
            && line.seats.last() == Some(&key)
        {
            wait += line.unseated() + 1;
        }
        let behind = wait.saturating_sub(usize::from(entry.tenants.is_empty()));
        u32::try_from(behind).map_or(MAX_LOCAL_WAITERS, |behind| behind.min(MAX_LOCAL_WAITERS))
    }

    /// What to do with an entry that is held and has no holder.
    pub(super) fn next_step(&mut self, now: Time, key: Key) -> Step {
        let Some(entry) = self.entries.get(key) else { return Step::Leave };
        let shared = entry.mode == Mode::Shared;
        let Some(waiter) = self.next_waiter(key) else {
            return if planted!(ImmortalAfterCancel) { Step::Renew } else { Step::Leave };
        };
        let call = self.calls.get(waiter.key());
        let came = call.map_or(now, |call| call.since);
        let own = call
            .and_then(|call| call.ask())
            .and_then(|ask| ask.lease)
            .unwrap_or(self.options.lease);
        let own = if shared { self.wanted_lease(key) } else { own };
        let Some(entry) = self.entries.get(key) else { return Step::Leave };
        let left = entry.valid_until.since(now);
        let session = self.options.keeping == Keeping::Session;
        // A session may be shorter than any lease that is wanted.
        let most = if session { entry.asked } else { Duration::MAX };
        if !entry.told {
            // The grant itself, looked at again: the reply may have been long under way.
            let whole = if entry.claim { entry.claim_lease } else { own };
            let enough = whole.min(self.options.lease).min(most) / 3;
            return if left >= enough || planted!(LeaseNotLookedAtAgain) {
                Step::Grant(waiter)
            } else {
                Step::Renew
            };
        }
        let permits = matches!(entry.mode, Mode::Permits { .. });
        // The store shortens no lease of permits: if this process died, they would be out for as long as
        // was asked for those who had them before. A session's end is the same for all.
        let asked = self.options.drift().until(now, own.max(MIN_LEASE));
        if permits && !session && entry.lent > asked + DRIFT_FIXED {
            return Step::Requeue;
        }
        let next = entry.used + 1;
        let bounded = self.options.local_run_grants;
        let run_over = self.is_run_over(now, entry, came);
        if bounded == 0 || run_over && self.others_wait(entry) {
            return Step::Requeue;
        }
        if run_over && !planted!(OthersIgnored) {
            // Whether anybody waits, only a look can tell.
            return Step::Renew;
        }
        // What was reserved with permits is all there is: what comes after it may be another client's.
        if (session || permits) && next > entry.end {
            return Step::Requeue;
        }
        // Tokens must not outrun the store's clock: it is what a lost counter starts again from.
        // Where it stepped back far below them, only the store can go on counting.
        let bound = self.lanes[entry.lane].link.clock.at_least(now).saturating_add(TOKEN_BLOCK);
        if next > bound.saturating_add(TOKEN_BLOCK) && !session {
            return Step::Requeue;
        }
        let room = next <= entry.end && (session || next < bound) || planted!(BlockNotReserved);
        // No answer is younger than the way of its request and back.
        let fresh = now.since(entry.contact) < self.claim(entry.lane) / 3;
        // Less than a renewal that asks for `own` gives, so that one renewal is enough.
        if room && fresh && left >= (own.min(most) / 2).min(self.options.lease / 3) {
            Step::Grant(waiter)
        } else {
            Step::Renew
        }
    }

    /// Whether the local run ends before a caller that came at `came`: after so many grants, or so
    /// long; and before whoever may have come later than a waiter of another client, unless by the
    /// length of the latest tenures its own will end in time.
    pub(super) fn is_run_over(&self, now: Time, entry: &Entry<C>, came: Time) -> bool {
        let session = self.options.keeping == Keeping::Session;
        let others = self.others_wait(entry);
        if !others && !session {
            return false;
        }
        let Options { local_run_grants, local_run_time, .. } = self.options;
        let ran = entry.run_since.map_or(Duration::ZERO, |at| now.since(at));
        let pace = self.lock_ref(entry.lock).map_or(Duration::ZERO, |lock| lock.pace);
        let late = came > entry.alone && !planted!(LatecomersRun);
        // Where nobody tells of waiters, one may have come just after the last look.
        let waited = if others { ran } else { now.since(entry.alone) };
        entry.run > 0 && entry.run >= local_run_grants
            || ran >= local_run_time
            || late && waited.saturating_add(pace) > local_run_time
    }

    /// Gives an entry that is held to the call that is next.
    pub(super) fn grant(&mut self, now: Time, key: Key, waiter: CallKey, how: How) {
        self.leave_line(key, waiter);
        let Some(call) = self.remove_call(waiter) else { return };
        let Some(ask) = call.ask().cloned() else { return };
        let owner = ask.tenant();
        if let Some(owner) = owner.filter(|_| ask.queues_locally())
            && let Some(lock) = self.lock_mut(call.lock)
        {
            lock.waiting.pop_front();
            lock.leave(owner);
        }
        let session = self.options.keeping == Keeping::Session;
        let crowded = self.entries.get(key).is_some_and(|entry| self.others_wait(entry));
        let Some(entry) = self.entries.get_mut(key) else { return };
        let first = !entry.told;
        let token = if first { entry.token } else { entry.used + 1 };
        let how = if first { how } else { How::Local };
        // A local hand-off follows a release that its holder made.
        let abandoned = if first { entry.abandoned } else { Abandoned::No };
        let (holds, end) = (Vec::with_capacity(1), Time::MAX);
        entry.tenants.add(Holder { owner, holds, token, abandoned, since: now, end });
        entry.used = token;
        entry.told = true;
        entry.calls.retain(|call| *call != waiter);
        if !first && (crowded || session) {
            entry.run += 1;
            entry.run_since.get_or_insert(now);
        }
        let others = entry.others;
        let lock = entry.lock;
        if let Some(lock) = self.lock_mut(lock) {
            lock.floor = lock.floor.max(token);
            if matches!(ask.mode, Mode::Permits { .. }) {
                lock.permits.insert(key);
            }
        }
        let hold = self.add_hold(now, key, &ask, call.call.clone());
        if first {
            self.end_with_grant(now, key, hold);
        }
        self.shorten(now, key);
        let grant = self.grant_of(key, hold, how, now.since(call.since));
        self.complete(call.call, Outcome::Granted(grant));
        if let Some(owner) = owner {
            self.serve_owner(now, key, owner);
        }
        if others > 0 {
            self.tell_wanted(now, key);
        }
        self.reseat(now, lock, true);
    }

    /// An explicit lease that came with the grant itself ends with it: it is not renewed.
    pub(super) fn end_with_grant(&mut self, now: Time, key: Key, hold: HoldKey) {
        let Some(entry) = self.entries.get(key) else { return };
        let (valid_until, asked) = (entry.valid_until, entry.asked);
        if let Some(item) = self.holds.get_mut(hold.key())
            && item.lease.is_some_and(|lease| lease <= asked)
            && item.end > valid_until
        {
            item.end = valid_until;
            let owner = item.owner;
            self.update_end(now, key, owner);
        }
    }

    /// Lets the calls join that wait in the local queue.
    pub(super) fn serve_branches(&mut self, now: Time, key: Key, owner: u64) {
        let Some(entry) = self.entries.get(key) else { return };
        let index = entry.lock;
        let branches = self.branches_of(index, owner);
        if branches.is_empty() || planted!(BranchesWait) {
            return;
        }
        if let Some(lock) = self.lock_mut(index) {
            lock.waiting.retain(|call| !branches.contains(call));
            branches.iter().for_each(|_| lock.leave(owner));
        }
        for call in branches {
            self.join(now, key, call, None);
        }
    }

    /// A call that waited joins its owner's holds: now, or with the renewal that it needs, unless that
    /// has come, and asked for so much.
    pub(super) fn join(&mut self, now: Time, key: Key, waiter: CallKey, renewed: Option<Duration>) {
        let Some(call) = self.calls.get(waiter.key()) else { return };
        let Some(ask) = call.ask().cloned() else { return };
        let Some(entry) = self.entries.get(key) else { return };
        if renewed.is_none() && self.outlasts(now, entry, &ask) {
            return self.join_with_renewal(now, key, waiter);
        }
        let Some(call) = self.remove_call(waiter) else { return };
        let hold = self.add_hold(now, key, &ask, call.call.clone());
        let grant = self.grant_of(key, hold, How::Reentry, now.since(call.since));
        self.complete(call.call, Outcome::Granted(grant));
    }

    /// A call waits for the entry's next renewal, to join those who have it.
    pub(super) fn join_with_renewal(&mut self, now: Time, key: Key, waiter: CallKey) {
        let Some(call) = self.calls.get_mut(waiter.key()) else { return };
        let Some(ask) = call.ask().cloned() else { return };
        (call.kind, call.entry) = (CallKind::Join(ask), Some(key));
        if let Some(entry) = self.entries.get_mut(key) {
            entry.companions.push(waiter);
        }
        self.beat_by(key, now);
    }

    /// One of the entry's holders has it no more.
    pub(super) fn end_tenure(&mut self, now: Time, key: Key, owner: Option<u64>) -> Option<Holder> {
        let entry = self.entries.get_mut(key)?;
        let holder = entry.tenants.remove(owner)?;
        let (lock, mode) = (entry.lock, entry.mode);
        let reader = holder.owner.filter(|_| mode == Mode::Shared || entry.lone);
        if let Some(owner) = reader {
            self.set_reader(lock, owner, None);
        } else if let Some(lock) = self.lock_mut(lock) {
            match mode {
                Mode::Exclusive => lock.lasted(now.since(holder.since)),
                Mode::Shared => {}
                Mode::Permits { .. } => {
                    lock.lasted(now.since(holder.since));
                    lock.permits.remove(&key);
                }
            }
        }
        Some(holder)
    }

    /// Others wait: the local run begins, and the holder is told once.
    pub(super) fn tell_wanted(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.at != At::Held {
            return;
        }
        entry.run_since.get_or_insert(now);
        let holds = entry.tenants.iter().flat_map(|holder| &holder.holds);
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
        match &call.kind {
            CallKind::Acquire(_) if Engine::is_in_line(&call) => {
                self.reseat(now, call.lock, false);
                self.retire_lock(call.lock);
            }
            CallKind::Acquire(ask) if !ask.queues_locally() => {
                if let Some(entry) = call.entry
                    && !planted!(CancelLeavesWaiter)
                {
                    self.leave_seat(now, entry, key);
                }
            }
            CallKind::Acquire(_) => {
                let mut idle = None;
                if let Some(owner) = call.local_owner()
                    && let Some(lock) = self.lock_mut(call.lock)
                {
                    lock.leave(owner);
                    if lock.live == 0 {
                        lock.waiting.clear();
                        idle = lock.entry;
                    } else if lock.waiting.len() > 32 && lock.waiting.len() > 2 * lock.live {
                        let calls = &self.calls;
                        let (index, _) = self.locks.at(call.lock)?;
                        if let Some(lock) = self.locks.get_mut(index) {
                            lock.waiting.retain(|waiter| calls.get(waiter.key()).is_some());
                        }
                    }
                }
                if let Some(entry) = idle
                    && self.entries.get(entry).is_some_and(|entry| entry.tenants.is_empty())
                {
                    self.part(now, entry, None, false);
                }
                self.retire_lock(call.lock);
            }
            CallKind::Convert { .. } => {
                if let Some(entry) = call.entry {
                    self.leave_conversion(now, entry);
                }
            }
            CallKind::Join(_) | CallKind::Extend { .. } => {
                if let Some(entry) = call.entry {
                    self.shorten(now, entry);
                }
            }
        }
        Some(call)
    }

    pub(super) fn call_expired(&mut self, now: Time, key: Key) {
        let Some(call) = self.calls.get(key) else { return };
        let entry = match call.entry {
            Some(entry) => Some(entry),
            None => self
                .lock_ref(call.lock)
                .and_then(|lock| lock.line.seats.first().copied().or(lock.entry)),
        };
        let entry = entry.and_then(|entry| self.entries.get(entry));
        let lane = self.lane_of_lock(call.lock);
        let up = self.lanes[lane].link.up;
        let answered = up && entry.is_some_and(|s| matches!(s.at, At::Queued | At::Held));
        let trouble = entry.and_then(|entry| entry.trouble.clone());
        let is_try = call.ask().is_none_or(|ask| ask.patience == Patience::Try);
        // A bound shorter than a round trip says nothing of a store that has had no time to answer.
        let hasty = up && now.since(call.since) < self.options.heartbeat();
        let error = if let Some(trouble) = trouble {
            Error::new(ErrorKind::Unavailable, trouble)
        } else if answered && !is_try {
            let asked = call.ask().map_or(Mode::Exclusive, |ask| ask.mode);
            timed_out(entry.map_or(asked, |entry| seen(asked, entry.mode)))
        } else if hasty && !is_try {
            let text = "the store had no time to answer within the wait's bound: try longer";
            Error::new(ErrorKind::TimedOut, text)
        } else {
            let text = self.unavailable(lane, "the store did not answer");
            Error::new(ErrorKind::Unavailable, text)
        };
        if let Some(call) = self.withdraw(now, CallKey::of(key)) {
            self.complete(call.call, Outcome::Failed(error));
        }
    }
}
