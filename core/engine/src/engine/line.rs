//! Who waits in a client for permits: in the order of arrival, the first of them with a seat at the store.
//! A seat belongs to nobody: whoever is first and asks for so many takes what it is granted.

use std::collections::BTreeSet;

use crate::engine::call::{Call, CallKind};
use crate::engine::entry::{After, At, Entry, Parting};
use crate::engine::slab::Key;
use crate::engine::{Acquired, Engine};
use crate::error::Error;
use crate::hold::{Ask, CallKey, Patience};
use crate::options::Keeping;
use crate::request::Mode;
use crate::time::Time;

/// How many seats of a client wait at the store for a name.
const SEATS: usize = 8;

/// Those who wait for permits of one name, and their seats.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Line {
    /// By age.
    waiting: BTreeSet<((Time, u32), CallKey)>,
    /// The seats at the store, in the order of those they are for; the last ones may be to spare.
    pub seats: Vec<Key>,
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn first(&self) -> Option<CallKey> {
        self.waiting.first().map(|&(_, call)| call)
    }

    /// Those who have a seat, or are about to.
    fn seated(&self) -> impl Iterator<Item = CallKey> + '_ {
        self.waiting.iter().take(SEATS).map(|&(_, call)| call)
    }

    /// How many wait without a seat.
    pub fn unseated(&self) -> usize {
        self.waiting.len().saturating_sub(SEATS)
    }

    /// A call waits no longer.
    pub fn leave(&mut self, age: (Time, u32), call: CallKey) {
        self.waiting.remove(&(age, call));
    }
}

impl<C: Clone> Engine<C> {
    /// Asks for permits: at the end of the line, or, for who does not wait, at once.
    pub(super) fn acquire_permits(
        &mut self,
        now: Time,
        lock: u32,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        // Who follows the store's number of permits asks for itself.
        if ask.patience == Patience::Try || ask.adopt {
            // Those who have no seat yet came before.
            let late = self.lock_ref(lock).is_some_and(|lock| lock.line.unseated() > 0);
            if late && ask.patience == Patience::Try {
                return Err(super::words::contended(ask.mode));
            }
            return self.acquire_single(now, lock, ask, call);
        }
        if let Some(error) = self.refuses(self.lane_of_lock(lock)) {
            return Err(error);
        }
        let key = self.wait(now, lock, ask, None, call)?;
        let age = self.calls.get(key.key()).map(Call::age);
        if let (Some(age), Some(lock)) = (age, self.lock_mut(lock)) {
            lock.line.waiting.insert((age, key));
        }
        self.reseat(now, lock, false);
        Ok(Acquired::Pending(key))
    }

    fn wanted_by(&self, call: CallKey) -> Option<Mode> {
        Some(self.calls.get(call.key())?.ask()?.mode)
    }

    /// Who in the line gets what an entry has: the first, if the entry was somebody's before and it wants
    /// as many; the first of those who want as many, if it comes from the store, which has passed nobody.
    pub(super) fn next_in_line(&self, entry: &Entry<C>) -> Option<CallKey> {
        let line = &self.lock_ref(entry.lock)?.line;
        let fits = |call: &CallKey| {
            self.wanted_by(*call) == Some(entry.mode) || entry.told && planted!(AnyCountHandedOn)
        };
        if entry.told && !planted!(LocalHeadPassed) {
            line.first().filter(fits)
        } else {
            line.seated().find(fits)
        }
    }

    /// Whose lease an entry asks for: of who is likely to get it, and once it is granted, of who does.
    pub(super) fn seated_at(&self, key: Key) -> Option<CallKey> {
        let entry = self.entries.get(key)?;
        let line = &self.lock_ref(entry.lock)?.line;
        let waits = entry.at != At::Held;
        let at = line.seats.iter().position(|seat| *seat == key).filter(|_| waits);
        at.and_then(|at| line.seated().nth(at)).or_else(|| self.next_in_line(entry))
    }

    /// Whether an entry waits at the store for those in the line.
    pub(super) fn is_seat(&self, key: Key) -> bool {
        let lock = self.entries.get(key).and_then(|entry| self.lock_ref(entry.lock));
        lock.is_some_and(|lock| lock.line.seats.contains(&key))
    }

    /// Whether an entry waits at the store for nobody.
    pub(super) fn is_to_spare(&self, key: Key) -> bool {
        self.entries.get(key).is_some_and(|entry| entry.spare_until.is_some()) && self.is_seat(key)
    }

    /// Those who ask for what a seat is for, from the one on whose it is. The seats of those before stand.
    pub(super) fn seat_and_after(&self, key: Key) -> Vec<CallKey> {
        let Some(entry) = self.entries.get(key) else { return Vec::new() };
        let Some(line) = self.lock_ref(entry.lock).map(|lock| &lock.line) else {
            return Vec::new();
        };
        let at = line.seats.iter().position(|seat| *seat == key).unwrap_or(0);
        let calls = line.waiting.iter().skip(at).map(|&(_, call)| call);
        calls.filter(|call| self.wanted_by(*call) == Some(entry.mode)).collect()
    }

    /// Whether somebody is known to wait at the store, in this client or elsewhere.
    pub(super) fn others_wait(&self, entry: &Entry<C>) -> bool {
        let waits = |key: &Key| self.entries.get(*key).is_some_and(|it| it.at == At::Queued);
        let queued =
            || self.lock_ref(entry.lock).is_some_and(|lock| lock.line.seats.iter().any(waits));
        entry.others > 0 || matches!(entry.mode, Mode::Permits { .. }) && queued()
    }

    /// Somebody in the line is about to have an entry. Where that is a seat that was meant for a later
    /// one, the seat of the former is for that one now.
    pub(super) fn leave_line(&mut self, key: Key, call: CallKey) {
        let Some(lock) = self.entries.get(key).map(|entry| entry.lock) else { return };
        let Some(lock) = self.lock_mut(lock) else { return };
        let Some(granted) = lock.line.seats.iter().position(|seat| *seat == key) else { return };
        let meant = lock.line.seated().position(|other| other == call);
        let meant = meant.filter(|at| *at < lock.line.seats.len()).unwrap_or(granted);
        lock.line.seats.swap(granted, meant);
        lock.line.seats.remove(meant);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.spare_until = None;
        }
    }

    /// Sees to it that the first of the line have seats for so many as they want, in this order, and
    /// gives up those that nobody wants. `keep`: those to spare stay for as long as a local run while
    /// somebody here has permits, since who has released may be back at once. After the last of them
    /// they go with what that one gives back: a caller that runs no more must leave nothing in the queue.
    pub(super) fn reseat(&mut self, now: Time, lock: u32, keep: bool) {
        let Some(line) = self.lock_ref(lock).map(|lock| &lock.line) else { return };
        if line.is_empty() && line.seats.is_empty() {
            return;
        }
        let (seats, first) = (line.seats.clone(), line.seated());
        let wanted: Vec<Mode> = first.filter_map(|call| self.wanted_by(call)).collect();
        let span = self.options.local_run_time;
        let used = self.lock_ref(lock).is_some_and(|lock| !lock.permits.is_empty());
        let keep = keep && self.options.local_run_grants > 0 && self.closing.is_none();
        let (mut kept, mut spare, mut given_up) = (Vec::new(), Vec::new(), Vec::new());
        for seat in seats {
            let Some(entry) = self.entries.get_mut(seat) else { continue };
            let before = entry.spare_until.take();
            if let Some(mode) = wanted.get(kept.len()) {
                let list = if entry.mode == *mode { &mut kept } else { &mut given_up };
                list.push(seat);
            } else if let Some(until) = before.or(keep.then_some(now + span))
                && until > now
                && used
            {
                entry.spare_until = Some(until);
                spare.push(seat);
            } else {
                given_up.push(seat);
            }
        }
        let missing = wanted.len() - kept.len();
        if let Some(lock) = self.lock_mut(lock) {
            let list = kept.iter().chain(&spare).copied();
            lock.line.seats = list.collect();
        }
        for seat in spare {
            // What is due already comes first, and plans what is next.
            let planned = self.entries.get(seat).and_then(|seat| seat.timer);
            if planned.is_none_or(|planned| planned > now) {
                self.arm(seat);
            }
        }
        for seat in given_up {
            self.part(now, seat, None, false);
        }
        if self.closing.is_some() || missing == 0 {
            return;
        }
        for mode in wanted.into_iter().skip(kept.len()) {
            let key = self.new_entry(lock, None, mode);
            if let Some(lock) = self.lock_mut(lock) {
                lock.line.seats.push(key);
            }
            self.advance(now, key);
        }
    }

    /// A seat that was kept to spare is wanted by nobody.
    pub(super) fn end_spare(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.spare_until.is_some_and(|until| until <= now) {
            self.reseat(now, entry.lock, false);
        }
    }

    /// Gives an entry's permits back where others wait; the first seat learns with the same request
    /// whether it is granted.
    pub(super) fn requeue_permits(&mut self, now: Time, key: Key, call: Option<C>) {
        let Some(entry) = self.entries.get(key) else { return };
        let lock = entry.lock;
        let seats = self.lock_ref(lock).map_or(&[][..], |lock| &lock.line.seats);
        let can_ask = |seat: &&Key| {
            self.entries.get(**seat).is_some_and(|seat| {
                seat.at == At::Queued && seat.flight.is_none() && seat.exposed_until == 0
            })
        };
        let alone = entry.flight.is_none()
            && entry.exposed_until == 0
            && self.lanes[entry.lane].link.takes_work()
            && self.options.keeping == Keeping::Leases;
        let Some(seat) = seats.first().filter(can_ask).copied().filter(|_| alone) else {
            return self.part(now, key, call, false);
        };
        let deadline = now + self.options.request_timeout;
        let parting = Parting { call, deadline, told: true, lost: false, tries: 1, in_time: true };
        let release = entry.release(true, false, self.retention(entry));
        self.drop_entry(key);
        if let Some(seat) = self.entries.get_mut(seat) {
            seat.after = Some(After { release, parting });
            // Until this is answered a push may be older, or younger.
            seat.at = At::Unclear;
        }
        self.advance(now, seat);
        self.arm(seat);
    }

    /// Whether a call stands in line, and if so, its place.
    pub(super) fn is_in_line(call: &Call<C>) -> bool {
        call.entry.is_none()
            && matches!(&call.kind, CallKind::Acquire(ask) if matches!(ask.mode, Mode::Permits { .. }))
    }
}
