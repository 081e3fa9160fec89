//! Giving a hold up, handing the entry on, and leaving the store.

use std::time::Duration;

use crate::engine::call::CallKind;
use crate::engine::entry::{After, At, Entry, Parting};
use crate::engine::flight::{Flight, Purpose};
use crate::engine::slab::Key;
use crate::engine::words::{contended, seen};
use crate::engine::{Ended, Engine};
use crate::error::{Error, ErrorKind};
use crate::event::Outcome;
use crate::hold::{CallKey, HoldKey, How, Owner, Patience};
use crate::id::{HoldId, OwnerId};
use crate::request::{Acquire, Mode, Op, Wait};
use crate::time::{Time, micros_up};

/// How late a try may take effect: half of what stores allow for a request without a claim.
const TRY_SLACK: Duration = Duration::from_secs(3);

/// What to do with an entry that is held and has no holder.
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
        self.send_due_beats(now);
        released
    }

    fn release_hold(&mut self, now: Time, hold: HoldKey, call: Option<C>) -> Result<Ended, Error> {
        let entry = self.live_entry(now, hold);
        let owner = self.holds.remove(hold.key()).and_then(|hold| hold.owner);
        let key = entry?;
        self.end_extends(key, hold);
        let Some(entry) = self.entries.get_mut(key) else { return Err(not_held()) };
        if let Some(holder) = entry.tenants.get_mut(owner) {
            if let Some(at) = holder.holds.iter().rposition(|other| *other == hold) {
                holder.holds.remove(at);
            }
            if !holder.holds.is_empty() {
                self.update_end(now, key, owner);
                self.share_if_read(now, key);
                if !planted!(ShorteningCancelled) {
                    self.shorten(now, key);
                }
                return Ok(Ended::Done);
            }
        }
        self.end_tenure(now, key, owner);
        let shared = self.entries.get(key).is_some_and(|entry| !entry.tenants.is_empty());
        let mut strays = Vec::new();
        if !planted!(JoinForgotten) {
            let only = shared.then_some(owner);
            strays = self.release_companions(now, key, &not_held(), only);
        }
        let ended = if shared {
            // Others have it still.
            self.plan_renewal(now, key);
            self.arm(key);
            Ended::Done
        } else {
            self.hand_on(now, key, How::Local, call)
        };
        self.open_strays(now, strays);
        Ok(ended)
    }

    /// The entry of a hold that is still good.
    pub(super) fn live_entry(&mut self, now: Time, hold: HoldKey) -> Result<Key, Error> {
        let Some(item) = self.holds.get(hold.key()) else { return Err(not_held()) };
        let (key, owner) = (item.entry, item.owner);
        let ended = |entry: &Entry<C>| entry.ends_for(owner) <= now;
        if item.lost.is_none() && self.entries.get(key).is_some_and(ended) {
            self.expire(now, key);
        }
        let Some(item) = self.holds.get(hold.key()) else { return Err(not_held()) };
        match item.lost {
            Some(reason) => Err(super::loss::lost(reason)),
            None => Ok(key),
        }
    }

    /// Passes on an entry that is held and has no holder. `call` waits for the release that this
    /// is part of.
    pub(super) fn hand_on(&mut self, now: Time, key: Key, how: How, call: Option<C>) -> Ended {
        let step = self.next_step(now, key);
        match step {
            Step::Grant(waiter) => {
                self.grant(now, key, waiter, how);
                self.let_all_in(now, key, how);
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
                let lock = self.entries.get(key).map(|entry| entry.lock);
                self.part(now, key, call, false);
                if let Some(lock) = lock {
                    self.reseat(now, lock, false);
                }
                Ended::Pending
            }
        }
    }

    /// Opens an entry for the local waiters of a lock that has none.
    pub(super) fn open_entry(&mut self, now: Time, lock: u32) {
        let key = self.new_entry(lock, None, Mode::Exclusive);
        if let Some(lock) = self.lock_mut(lock) {
            lock.entry = Some(key);
        }
        self.advance(now, key);
    }

    /// Opens an entry for a call that does not wait in the local queue. Local readers that come later
    /// may stand behind it, too.
    pub(super) fn open_single(&mut self, now: Time, call: CallKey) {
        let Some(item) = self.calls.get(call.key()) else { return };
        let Some(ask) = item.ask() else { return };
        let owner = match &ask.owner {
            Owner::Explicit(owner) => Some(owner.clone()),
            Owner::Local(_) => None,
        };
        let (lock, shares) = (item.lock, self.shares_seat(ask));
        let key = self.new_entry(lock, owner, ask.mode);
        if shares && let Some(lock) = self.lock_mut(lock) {
            lock.seat = Some(key);
        }
        self.stand_behind(key, call);
        self.advance(now, key);
    }

    pub(super) fn new_entry(&mut self, lock: u32, owner: Option<OwnerId>, mode: Mode) -> Key {
        let id = self.mint(self.entries.next_key());
        let name = self.lock_mut(lock).map(|lock| {
            lock.entries += 1;
            lock.name.clone()
        });
        // Only locks that exist get an entry; a name is all that could be missing.
        let Some(name) = name else { return Key { index: u32::MAX, serial: 0 } };
        let place = self.lanes.place_of(&name);
        let lane = self.lanes.of_place(&name, place);
        self.entries.insert(Entry { place, lane, ..Entry::new(id, lock, name, owner, mode) })
    }

    /// Releases, and queues again behind the clients that wait, in one step at the store.
    fn requeue(&mut self, now: Time, key: Key, call: Option<C>) {
        let Some(entry) = self.entries.get(key) else { return };
        let lock = entry.lock;
        if matches!(entry.mode, Mode::Permits { .. }) {
            return self.requeue_permits(now, key, call);
        }
        if entry.flight.is_some() || entry.exposed_until > 0 {
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
            let release = entry.release(true, false, self.retention(entry));
            let after = Some(After { release, parting });
            if let Some(lock) = self.lock_mut(lock) {
                lock.entry = None;
            }
            self.drop_entry(key);
            let next = self.new_entry(lock, None, Mode::Exclusive);
            if let Some(entry) = self.entries.get_mut(next) {
                entry.after = after;
            }
            if let Some(lock) = self.lock_mut(lock) {
                lock.entry = Some(next);
            }
            self.advance(now, next);
            self.arm(next);
        }
        self.reopen(now, lock);
    }

    /// An entry for the waiters that are left, if there are any and it has none.
    pub(super) fn reopen(&mut self, now: Time, lock: u32) {
        if self.lock_ref(lock).is_some_and(|lock| lock.live > 0 && lock.entry.is_none())
            && self.closing.is_none()
        {
            self.open_entry(now, lock);
        }
        self.reseat(now, lock, false);
    }

    /// Begins to leave the store. `lost`: the holder's time had run out.
    pub(super) fn part(&mut self, now: Time, key: Key, call: Option<C>, lost: bool) {
        self.split_after(now, key);
        let deadline = now + self.options.request_timeout;
        while let Some(owner) = self.entries.get(key).and_then(|entry| entry.tenants.first()) {
            let owner = owner.owner;
            self.end_tenure(now, key, owner);
        }
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.parting.is_some() {
            return;
        }
        entry.parting = Some(Parting {
            call,
            deadline,
            told: entry.told,
            lost: lost && entry.told,
            tries: 0,
            in_time: !lost,
        });
        entry.calls.clear();
        entry.conversion = None;
        // What was refused before says nothing about the release.
        entry.retry_at = Time::ZERO;
        let lock = entry.lock;
        if let Some(lock) = self.lock_mut(lock) {
            lock.forget_entry(key);
        }
        self.no_beat(key);
        self.advance(now, key);
        self.arm(key);
    }

    /// A release that was to go out with an acquire goes alone, since the acquire does not.
    pub(super) fn split_after(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.flight.is_some() {
            return;
        }
        let Some(after) = entry.after.take() else { return };
        let lock = entry.lock;
        let old = self.leaving_entry(lock, after.release.hold, after.release.used);
        if let Some(entry) = self.entries.get_mut(old) {
            (entry.mode, entry.stored) = (after.release.mode, after.release.mode);
            entry.parting = Some(after.parting);
        }
        self.advance(now, old);
        self.arm(old);
    }

    /// An entry whose hold, of whatever origin, is only to be released.
    pub(super) fn leaving_entry(&mut self, lock: u32, hold: HoldId, used: u64) -> Key {
        let deadline = self.now + self.options.request_timeout;
        let key = self.new_entry(lock, None, Mode::Exclusive);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.id = hold;
            entry.used = used;
            entry.at = At::Unclear;
            entry.parting = Some(Parting {
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

    /// Sends what the entry needs next, if anything, and if it may.
    pub(super) fn advance(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.flight.is_some() {
            return;
        }
        let nothing_there = entry.at == At::Nowhere && entry.exposed_until == 0;
        if entry.parting.is_some() && nothing_there {
            return self.finish(key, Outcome::Released);
        }
        if !self.lanes[entry.lane].link.up || now < entry.retry_at {
            return self.arm(key);
        }
        match (&entry.parting, entry.at) {
            (Some(_), _) => self.send_release(now, key),
            // It would only queue behind what is not answered, and be late. A release that was to
            // go along does not wait for it.
            (None, At::Nowhere | At::Unclear) if self.lanes[entry.lane].link.doubted => {
                self.split_after(now, key)
            }
            (None, At::Nowhere | At::Unclear) => self.send_acquire(now, key),
            (None, At::Held) => self.send_conversion(now, key),
            (None, At::Queued) => {}
        }
    }

    fn send_acquire(&mut self, now: Time, key: Key) {
        let Some(first) = self.next_waiter(key) else { return self.part(now, key, None, false) };
        let wait = self.wants_to_wait(key);
        let lease = self.wanted_lease(key);
        let Some(ask) = self.calls.get(first.key()).and_then(|call| call.ask()) else { return };
        let attach = ask.attach;
        let Some(entry) = self.entries.get(key) else { return };
        let index = entry.lock;
        // The store refuses an instant that lies further ahead than twice the claim it is told.
        let lane = entry.lane;
        let silence = self.claim(lane);
        let claim = if wait { silence.min(lease) } else { silence };
        let claim = if planted!(ClaimShorterThanPoll) { claim / 10 } else { claim };
        let slack = if wait { claim } else { claim.min(TRY_SLACK) };
        let not_after = self.lanes[lane].link.clock.estimate(now).saturating_add(micros_up(slack));
        let acquire = Acquire {
            lock: entry.name.clone(),
            hold: entry.id,
            owner: entry.owner.clone(),
            mode: entry.mode,
            read_write: self.lock_ref(index).is_some_and(|lock| lock.read_write),
            lease,
            not_after,
            floor: self.lock_ref(index).map_or(0, |lock| lock.floor),
            wait: wait.then_some(Wait { ticket: entry.ticket, claim, silence }),
            attach: attach.map(crate::token::Token::get),
            after: entry.after.as_ref().map(|after| after.release.clone()),
            local_waiters: self.local_waiters(key),
        };
        let purpose = Purpose::Acquire { entry: key, lease, not_after, wait };
        let id = self.send(lane, Flight { sent: now, purpose }, Op::Acquire(acquire));
        if let Some(entry) = self.entries.get_mut(key) {
            entry.flight = Some(id);
            entry.news = false;
            // A copy of it may be executed after the repeat that asks for less.
            entry.lent = entry.lent.max(self.options.drift().until(now, lease));
            if entry.alone == Time::ZERO {
                entry.alone = now;
            }
            entry.claim_lease = entry.claim_lease.min(claim.min(lease));
            entry.patience = entry.patience.max(self.options.claim.max(slack) * 2);
        }
        self.arm(key);
    }

    /// Whether any call behind this entry is ready to wait.
    fn wants_to_wait(&self, key: Key) -> bool {
        let patient = |call: &CallKey| {
            let ask = self.calls.get(call.key()).and_then(|call| call.ask());
            ask.is_some_and(|ask| ask.patience != Patience::Try && ask.attach.is_none())
        };
        let Some(entry) = self.entries.get(key) else { return false };
        if !entry.is_handed_on() {
            // Who stands in line for permits waits.
            return self.is_seat(key) || entry.calls.iter().any(patient);
        }
        self.lock_ref(entry.lock).is_some_and(|lock| lock.waiting.iter().any(patient))
    }

    /// How long the store is to keep the record: at least twice as long as a late copy of an acquire
    /// of this hold, or of one that is asked now, may take effect.
    pub(super) fn retention(&self, entry: &Entry<C>) -> Duration {
        self.options.retention.max(self.claim(entry.lane) * 2).max(entry.patience)
    }

    fn send_release(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(parting) = &mut entry.parting else { return };
        parting.tries += 1;
        let (told, lost) = (parting.told, parting.lost);
        let Some(entry) = self.entries.get(key) else { return };
        let release = entry.release(told, lost, self.retention(entry));
        let (lane, purpose) = (entry.lane, Purpose::Release { entry: key });
        let id = self.send(lane, Flight { sent: now, purpose }, Op::Release(release));
        if let Some(entry) = self.entries.get_mut(key) {
            entry.flight = Some(id);
        }
        self.arm(key);
    }

    /// The caller waits for its release no longer; the release goes on.
    pub(super) fn bound_parting(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let partings =
            [entry.parting.as_mut(), entry.after.as_mut().map(|after| &mut after.parting)];
        let mut late = Vec::new();
        for parting in partings.into_iter().flatten() {
            if parting.deadline <= now {
                late.extend(parting.call.take());
            }
        }
        for call in late {
            let text =
                self.unavailable(self.lane_of_entry(key), "the store did not confirm the release");
            self.complete(call, Outcome::Failed(Error::new(ErrorKind::Unavailable, text)));
        }
    }

    /// The entry is over.
    pub(super) fn finish(&mut self, key: Key, outcome: Outcome) {
        let Some(entry) = self.drop_entry(key) else { return };
        debug_assert!(entry.after.is_none(), "a release was forgotten");
        if let Some(call) = entry.parting.and_then(|parting| parting.call) {
            self.complete(call, outcome);
        }
        self.check_closed();
    }

    pub(super) fn drop_entry(&mut self, key: Key) -> Option<Entry<C>> {
        self.no_beat(key);
        let entry = self.entries.remove(key)?;
        if let Some(at) = entry.timer {
            self.timers.remove(&(at, super::timer::Due::Entry(key)));
        }
        if let Some(lock) = self.lock_mut(entry.lock) {
            lock.entries -= 1;
            lock.floor = lock.floor.max(entry.used);
            lock.forget_entry(key);
        }
        self.retire_lock(entry.lock);
        Some(entry)
    }

    /// Fails every call that waits for this entry, or only the tries among them.
    pub(super) fn fail_waiters(&mut self, now: Time, key: Key, error: &Error, tries_only: bool) {
        self.fail_each(now, key, &|_| error.clone(), tries_only);
    }

    /// The same, as others have it or wait for it.
    pub(super) fn refuse_waiters(&mut self, now: Time, key: Key, tries_only: bool) {
        self.fail_each(now, key, &contended, tries_only);
    }

    fn fail_each(&mut self, now: Time, key: Key, error: &dyn Fn(Mode) -> Error, tries_only: bool) {
        let Some(entry) = self.entries.get(key) else { return };
        let stands = entry.mode;
        let waiters: Vec<CallKey> = if entry.is_handed_on() {
            let lock = self.lock_ref(entry.lock);
            lock.map(|lock| lock.waiting.iter().copied().collect()).unwrap_or_default()
        } else if self.is_seat(key) {
            self.seat_and_after(key)
        } else {
            entry.calls.iter().copied().collect()
        };
        for waiter in waiters {
            let Some(call) = self.calls.get(waiter.key()) else { continue };
            let CallKind::Acquire(ask) = &call.kind else { continue };
            if tries_only && ask.patience != Patience::Try {
                continue;
            }
            let mode = seen(ask.mode, stands);
            if let Some(call) = self.withdraw(now, waiter) {
                self.complete(call.call, Outcome::Failed(error(mode)));
            }
        }
        if !tries_only && self.is_to_spare(key) {
            self.part(now, key, None, false);
        }
    }
}

pub(super) fn not_held() -> Error {
    Error::new(ErrorKind::NotHeld, "the lock is not held: it was released before")
}
