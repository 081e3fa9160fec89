//! Local readers of one client share an entry: one hold at the store, for which they come in together,
//! and which others join while nobody is passed so.

use std::collections::BTreeSet;

use crate::engine::call::CallKind;
use crate::engine::entry::{At, Entry, Holder};
use crate::engine::slab::Key;
use crate::engine::words::contended;
use crate::engine::{Acquired, Engine};
use crate::error::Error;
use crate::event::Outcome;
use crate::hold::{Ask, CallKey, HoldKey, How, Patience};
use crate::request::Mode;
use crate::time::Time;

/// Where a local reader goes.
enum Place {
    /// To those who read by this entry.
    Beside(Key),
    /// The same, once the store has said anew that nobody waits, or has given more time.
    Renewed(Key),
    /// To those who wait for this entry.
    Behind(Key),
    /// To the queue, behind an entry that is new.
    New,
    /// Nowhere: it does not wait, and others do.
    None,
}

impl<C: Clone> Engine<C> {
    /// Whether a call may share an entry with others. A reader that asks for longer than the others'
    /// lease would keep writers out for so long if the process died: it has one for itself.
    pub(super) fn shares_seat(&self, ask: &Ask) -> bool {
        ask.mode == Mode::Shared
            && ask.tenant().is_some()
            && ask.lease.is_none_or(|lease| lease <= self.options.lease)
    }

    /// A local owner that reads nothing yet asks to.
    pub(super) fn take_seat(
        &mut self,
        now: Time,
        lock: u32,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        if let Some(error) = self.refuses(self.lane_of_lock(lock)) {
            return Err(error);
        }
        match self.place(now, lock, &ask) {
            Place::Beside(key) => {
                let hold = self.sit_down(now, key, &ask, call);
                let grant = self.grant_of(key, hold, How::Local, std::time::Duration::ZERO);
                self.serve_tenant(now, key, &ask);
                Ok(Acquired::Granted(grant))
            }
            Place::None => Err(contended(ask.mode)),
            Place::Renewed(key) => {
                let call = self.wait(now, lock, ask, Some(key), call)?;
                self.beat_by(key, now);
                Ok(Acquired::Pending(call))
            }
            Place::Behind(key) => {
                let call = self.wait(now, lock, ask, None, call)?;
                self.stand_behind(key, call);
                Ok(Acquired::Pending(call))
            }
            Place::New => {
                let call = self.wait(now, lock, ask, None, call)?;
                self.open_single(now, call);
                Ok(Acquired::Pending(call))
            }
        }
    }

    /// A call that stood behind an entry that has ended, or was to join one, goes elsewhere.
    pub(super) fn open_seat(&mut self, now: Time, call: CallKey) {
        let Some(item) = self.calls.get(call.key()) else { return };
        let (Some(ask), lock) = (item.ask().cloned(), item.lock) else { return };
        if let Some(owner) = item.reader()
            && let Some(key) = self.reads(now, lock, owner)
        {
            self.end_wait_to_read(lock, owner, call);
            return self.join(now, key, call, None);
        }
        match self.place(now, lock, &ask) {
            Place::Beside(key) => self.let_in(now, key, call, How::Local),
            Place::Renewed(key) => {
                if let Some(owner) = ask.tenant() {
                    self.end_wait_to_read(lock, owner, call);
                }
                self.join_with_renewal(now, key, call);
            }
            Place::Behind(key) => self.stand_behind(key, call),
            Place::New => self.open_single(now, call),
            Place::None => {
                if let Some(call) = self.withdraw(now, call) {
                    self.complete(call.call, Outcome::Failed(contended(ask.mode)));
                }
            }
        }
    }

    fn place(&mut self, now: Time, lock: u32, ask: &Ask) -> Place {
        let shares = self.shares_seat(ask);
        let seat = self.lock_ref(lock).and_then(|lock| lock.seat).filter(|_| shares);
        let Some((key, entry)) = seat.and_then(|key| Some((key, self.entries.get(key)?))) else {
            return Place::New;
        };
        if entry.tenants.is_empty() {
            let late = entry.at == At::Queued && ask.patience == Patience::Try;
            return if late { Place::None } else { Place::Behind(key) };
        }
        if entry.ends_at() <= now {
            self.expire(now, key);
            return Place::New;
        }
        if self.is_closed_to_readers(key) {
            return Place::New;
        }
        let fresh = now.since(entry.contact) < self.options.heartbeat();
        if (fresh || planted!(JoinOnOldWord)) && !self.needs_renewal(now, entry, ask) {
            Place::Beside(key)
        } else {
            Place::Renewed(key)
        }
    }

    /// Whether a reader that joined would pass somebody who waits, here or elsewhere; or the entry is not
    /// to be read by, or may not be soon.
    pub(super) fn is_closed_to_readers(&self, key: Key) -> bool {
        let Some(entry) = self.entries.get(key) else { return true };
        let own = self.lock_ref(entry.lock).is_some_and(|lock| lock.live > 0);
        !entry.is_shared_for_sure()
            || own && !planted!(ReaderPassesOwnWriter)
            || entry.others > 0 && !planted!(ReaderPassesKnownWriter)
    }

    /// Whether the entry ends sooner than a reader wants that joins: it is promised what it would be
    /// with an entry for itself.
    fn needs_renewal(&self, now: Time, entry: &Entry<C>, ask: &Ask) -> bool {
        let wanted =
            ask.lease.map_or(self.options.lease / 3, |lease| self.options.drift().margin(lease));
        now + wanted > entry.valid_until
    }

    /// A call waits for this entry.
    pub(super) fn stand_behind(&mut self, key: Key, call: CallKey) {
        if let Some(item) = self.calls.get_mut(call.key()) {
            item.entry = Some(key);
        }
        if let Some(entry) = self.entries.get_mut(key) {
            entry.calls.push_back(call);
        }
        self.begin_to_read(call);
    }

    /// A call waits for this entry no longer. The last one takes it along.
    pub(super) fn leave_seat(&mut self, now: Time, key: Key, call: CallKey) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let first = planted!(FirstReaderEndsWait)
            && entry.tenants.is_empty()
            && entry.calls.front() == Some(&call);
        // Mostly the first to come gives up first.
        if let Some(at) = entry.calls.iter().position(|other| *other == call) {
            entry.calls.remove(at);
        }
        if entry.calls.is_empty() && entry.tenants.is_empty() || first {
            self.part(now, key, None, false);
        }
    }

    /// The first of the calls that wait for an entry.
    pub(super) fn next_waiter(&mut self, key: Key) -> Option<CallKey> {
        let entry = self.entries.get(key)?;
        if entry.is_handed_on() {
            return self.first_waiter(entry.lock);
        }
        entry.calls.front().copied().or_else(|| self.next_in_line(entry))
    }

    /// After the first of the readers that wait for an entry, all of them come in.
    pub(super) fn let_all_in(&mut self, now: Time, key: Key, how: How) {
        while let Some(entry) = self.entries.get(key)
            && entry.mode == Mode::Shared
            && let Some(&call) = entry.calls.front()
        {
            let ask = self.calls.get(call.key()).and_then(|call| call.ask()).cloned();
            let Some(ask) = ask else { return };
            // One that stood behind it when it was asked for already.
            let longer = !entry.claim
                && ask.lease.is_none_or(|lease| lease > entry.asked)
                && self.needs_renewal(now, entry, &ask);
            let has = entry.tenants.get(ask.tenant()).is_some();
            if let Some(entry) = self.entries.get_mut(key) {
                entry.calls.pop_front();
            }
            if has || longer {
                if let (Some(owner), Some(item)) = (ask.tenant(), self.calls.get(call.key())) {
                    self.end_wait_to_read(item.lock, owner, call);
                }
                if has {
                    self.join(now, key, call, None);
                } else {
                    self.join_with_renewal(now, key, call);
                }
            } else {
                self.let_in(now, key, call, how);
            }
        }
        if self.entries.get(key).is_some_and(|entry| entry.others > 0) {
            self.tell_wanted(now, key);
        }
    }

    /// A call that waited reads with those who have the entry.
    pub(super) fn let_in(&mut self, now: Time, key: Key, waiter: CallKey, how: How) {
        let Some(call) = self.remove_call(waiter) else { return };
        let Some(ask) = call.ask() else { return };
        let hold = self.sit_down(now, key, ask, call.call.clone());
        let grant = self.grant_of(key, hold, how, now.since(call.since));
        self.complete(call.call.clone(), Outcome::Granted(grant));
        self.serve_tenant(now, key, ask);
    }

    /// One more of those who have the entry, with its first hold.
    fn sit_down(&mut self, now: Time, key: Key, ask: &Ask, call: C) -> HoldKey {
        if let Some(entry) = self.entries.get_mut(key) {
            let (token, abandoned) = (entry.token, entry.abandoned);
            let (owner, holds) = (ask.tenant(), Vec::with_capacity(1));
            let holder = Holder { owner, holds, token, abandoned, since: now, end: Time::MAX };
            entry.tenants.add(holder);
        }
        let hold = self.add_hold(now, key, ask, call);
        self.end_with_grant(now, key, hold);
        hold
    }

    fn serve_tenant(&mut self, now: Time, key: Key, ask: &Ask) {
        if let Some(owner) = ask.tenant() {
            self.serve_owner(now, key, owner);
        }
    }

    /// Whether the owner of a call has been let in elsewhere meanwhile, to read.
    pub(super) fn reads_already(&mut self, now: Time, call: CallKey) -> bool {
        let Some(item) = self.calls.get(call.key()) else { return false };
        let (Some(owner), lock) = (item.local_owner(), item.lock) else { return false };
        self.reads(now, lock, owner).is_some() && !planted!(ReaderSitsTwice)
    }

    /// Calls that were to join readers must wait after all: others do, who came first.
    pub(super) fn turn_away(&mut self, now: Time, key: Key, calls: Vec<CallKey>) {
        if let Some(entry) = self.entries.get_mut(key) {
            let away: BTreeSet<CallKey> = calls.iter().copied().collect();
            entry.companions.retain(|call| !away.contains(call));
        }
        for call in calls {
            let Some(item) = self.calls.get_mut(call.key()) else { continue };
            let Some(ask) = item.ask().cloned() else { continue };
            let (waits, mode) = (ask.patience != Patience::Try, ask.mode);
            (item.kind, item.entry) = (CallKind::Acquire(ask), None);
            if waits || self.reads_already(now, call) {
                self.open_seat(now, call);
            } else if let Some(call) = self.withdraw(now, call) {
                self.complete(call.call, Outcome::Failed(contended(mode)));
            }
        }
    }
}
