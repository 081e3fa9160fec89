//! One client's state machine.

mod adopting;
mod beat;
mod call;
mod clock;
mod close;
mod convert;
mod entry;
mod fingerprint;
mod flight;
mod lanes;
mod lent;
mod line;
mod link;
mod local;
mod lock;
mod loss;
mod query;
mod release;
mod reply;
mod seat;
mod shared;
mod slab;
mod tenants;
mod timer;
mod words;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::engine::call::{Call, CallKind, Hold};
use crate::engine::entry::Entry;
use crate::engine::flight::Flight;
use crate::engine::lanes::Lanes;
use crate::engine::lock::Lock;
use crate::engine::query::Query;
use crate::engine::slab::{Key, Slab};
use crate::engine::timer::{Due, Timers};
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Event, Outcome};
use crate::hold::{Ask, CallKey, Grant, HoldKey, LockKey, Owner, Patience};
use crate::id::HoldId;
use crate::lane::LaneId;
use crate::name::Name;
use crate::options::Options;
use crate::reply::RefusalKind;
use crate::request::{Mode, Op, Request};
use crate::time::Time;
use crate::validity::Drift;

/// What an acquire gives at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// The lock is held; no completion follows.
    Granted(Grant),
    /// [`Effect::Complete`] follows, with the handle that was given.
    Pending(CallKey),
}

/// What a release gives at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It is released; no completion follows.
    Done,
    /// [`Effect::Complete`] follows, when a handle was given.
    Pending,
}

/// One client's state machine. `C` is the caller's handle for completions and for what happens to
/// a hold: a cheap clone, such as an `Arc`.
///
/// Each call is one mutation; afterwards drain [`Engine::poll_effect`] and look at
/// [`Engine::next_wake`].
#[derive(Clone, Debug)]
pub struct Engine<C> {
    options: Options,
    random: ChaCha8Rng,
    /// The latest reading that was passed in: time never goes back here.
    now: Time,
    /// How many calls came at that instant.
    arrived: u32,
    locks: Slab<Lock>,
    names: BTreeMap<Name, Key>,
    entries: Slab<Entry<C>>,
    holds: Slab<Hold<C>>,
    calls: Slab<Call<C>>,
    queries: Slab<Query<C>>,
    /// One for each server; of one server, one.
    lanes: Lanes,
    timers: Timers,
    closing: Option<close::Closing<C>>,
    effects: VecDeque<Effect<C>>,
}

impl<C: Clone> Engine<C> {
    /// A client that has no connection yet. `seed` must be fresh from the operating system, and
    /// afresh after a fork: hold ids are made of it.
    ///
    /// # Errors
    /// When an option is out of its range.
    pub fn new(options: Options, seed: [u8; 32]) -> Result<Engine<C>, Error> {
        options.check()?;
        Ok(Engine {
            options,
            random: ChaCha8Rng::from_seed(seed),
            now: Time::ZERO,
            arrived: 0,
            locks: Slab::new(),
            names: BTreeMap::new(),
            entries: Slab::new(),
            holds: Slab::new(),
            calls: Slab::new(),
            queries: Slab::new(),
            lanes: Lanes::new(),
            timers: Timers::new(),
            closing: None,
            effects: VecDeque::new(),
        })
    }

    /// The key of the lock `name`, valid until as many calls of [`Engine::forget`].
    pub fn lock(&mut self, name: &Name) -> LockKey {
        let key = match self.names.get(name) {
            Some(&key) => key,
            None => {
                let key = self.locks.insert(Lock::new(name.clone()));
                self.names.insert(name.clone(), key);
                key
            }
        };
        if let Some(lock) = self.locks.get_mut(key) {
            lock.pins += 1;
        }
        LockKey(key.index)
    }

    /// The lock is had as a read-write lock from now on; see [`Acquire::read_write`].
    ///
    /// [`Acquire::read_write`]: crate::request::Acquire::read_write
    pub fn set_read_write(&mut self, lock: LockKey) {
        if let Some(lock) = self.lock_mut(lock.0) {
            lock.read_write = true;
        }
    }

    /// Gives back a key.
    pub fn forget(&mut self, lock: LockKey) {
        if let Some(item) = self.lock_mut(lock.0) {
            item.pins = item.pins.saturating_sub(1);
        }
        self.retire_lock(lock.0);
    }

    /// Acquires. `call` hears of the completion (if pending), and later of the hold's loss.
    ///
    /// # Errors
    /// At once when the ask is invalid, or a try finds the lock taken locally, or the client is
    /// closed, or the store needs an operator.
    pub fn acquire(
        &mut self,
        now: Time,
        lock: LockKey,
        mut ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        let now = self.at(now);
        check(&ask, &self.options)?;
        if matches!(ask.patience, Patience::Until(bound) if bound <= now) {
            ask.patience = Patience::Try;
        }
        if self.closing.is_some() {
            return Err(self.closed());
        }
        let acquired = match (&ask.owner, ask.mode) {
            (&Owner::Local(owner), Mode::Exclusive) => {
                self.acquire_local(now, lock.0, owner, ask, call)
            }
            (&Owner::Local(owner), Mode::Shared) => {
                self.acquire_shared(now, lock.0, owner, ask, call)
            }
            (Owner::Local(_), Mode::Permits { .. }) => self.acquire_permits(now, lock.0, ask, call),
            (Owner::Explicit(_), _) => self.acquire_single(now, lock.0, ask, call),
        };
        self.send_due_beats(now);
        acquired
    }

    /// Ends a pending acquire; false when it has ended already (then its completion was or will
    /// be drained, and a hold in it is the caller's to release). When true, no completion follows.
    pub fn cancel(&mut self, now: Time, call: CallKey) -> bool {
        let now = self.at(now);
        let there = self.withdraw(now, call).is_some();
        self.send_due_beats(now);
        there
    }

    /// Sets the hold's lease from now; never shortens it. A completion follows: `Extended`, or
    /// `Failed` with `Lost`, or with `Unavailable` when the store did not answer in time.
    ///
    /// # Errors
    /// `Lost` when the hold has ended, `NotHeld` when it was released, `InvalidArgument`.
    pub fn extend(
        &mut self,
        now: Time,
        hold: HoldKey,
        lease: Duration,
        call: C,
    ) -> Result<(), Error> {
        let now = self.at(now);
        self.options.check_lease(lease)?;
        let entry = self.live_entry(now, hold)?;
        let lock = self.entries.get(entry).map_or(0, |entry| entry.lock);
        let deadline = now + self.options.request_timeout;
        let kind = CallKind::Extend { hold, lease };
        let deadline = Some(deadline);
        let key = self.add_call(call, kind, lock, Some(entry), deadline);
        if let Some(entry) = self.entries.get_mut(entry) {
            entry.companions.push(key);
        }
        self.beat_by(entry, now);
        self.send_due_beats(now);
        Ok(())
    }

    /// How long the hold may still be trusted; `None` when it has ended.
    pub fn remaining(&self, now: Time, hold: HoldKey) -> Option<Duration> {
        let now = self.now.max(now);
        let hold = self.holds.get(hold.key())?;
        let entry = self.entries.get(hold.entry)?;
        let end = entry.ends_for(hold.owner);
        if hold.lost.is_some() || end <= now { None } else { Some(end.since(now)) }
    }

    /// How much of that is certain while nobody is told of a loss, of a hold that the watchdog keeps: what
    /// was asked for another hold of its owner is taken back when that one ends.
    pub fn certain(&self, now: Time, hold: HoldKey) -> Option<Duration> {
        Some(self.remaining(now, hold)?.min(self.options.drift().margin(self.options.lease)))
    }

    /// How many holds the local `owner` has on the lock, for itself or shared. Permits have no owner.
    pub fn count(&self, now: Time, lock: LockKey, owner: u64) -> usize {
        let Some(lock) = self.lock_ref(lock.0) else { return 0 };
        let reads = lock.readers.get(&owner).and_then(|reader| reader.held);
        let entries = lock.entry.into_iter().chain(reads);
        entries.map(|entry| self.levels(now, entry, Some(owner))).sum()
    }

    /// Whether anybody but an explicit owner holds the lock, for itself or shared, or permits of it.
    pub fn is_held(&self, now: Time, lock: LockKey) -> bool {
        let Some(lock) = self.lock_ref(lock.0) else { return false };
        let reads = lock.readers.values().filter_map(|reader| reader.held);
        let mut entries = lock.entry.into_iter().chain(reads).chain(lock.permits.iter().copied());
        let now = self.now.max(now);
        let held = |entry: &Entry<C>| !entry.tenants.is_empty() && now < entry.ends_at();
        entries.any(|entry| self.entries.get(entry).is_some_and(held))
    }

    /// How many holds an owner has by an entry now.
    fn levels(&self, now: Time, entry: Key, owner: Option<u64>) -> usize {
        let now = self.now.max(now);
        let entry = self.entries.get(entry).filter(|entry| now < entry.ends_for(owner));
        let holder = entry.and_then(|entry| entry.tenants.get(owner));
        holder.map_or(0, |holder| holder.holds.len())
    }

    /// How many calls wait in this client.
    pub fn waiting(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing is held and no acquire waits.
    pub fn is_idle(&self) -> bool {
        self.holds.is_empty() && self.calls.is_empty()
    }

    /// Whether nothing is left that the store should hear of: no hold but lost ones, no wait, and no
    /// release on its way.
    pub fn is_settled(&self) -> bool {
        let live = |key: &Key| self.holds.get(*key).is_some_and(|hold| hold.lost.is_none());
        let parting = |key: &Key| {
            let entry = self.entries.get(*key);
            entry.is_some_and(|entry| {
                entry.parting.is_some() || entry.after.is_some() || entry.spare_until.is_some()
            })
        };
        self.calls.is_empty()
            && !self.holds.keys().iter().any(live)
            && !self.entries.keys().iter().any(parting)
    }

    /// Takes what happened at the store's side, of a store that is one server.
    pub fn handle(&mut self, now: Time, event: Event) {
        self.handle_on(now, LaneId::FIRST, event);
    }

    /// Takes what happened at one of the store's servers. A reply belongs to the one that its request
    /// went to.
    pub fn handle_on(&mut self, now: Time, lane: LaneId, event: Event) {
        let now = self.at(now);
        self.lanes.open(lane);
        match event {
            Event::Up { now: store } => self.link_up(now, lane, store),
            Event::Down { reason } => {
                self.lanes[lane].link.down(reason);
                self.ask_elsewhere(now);
            }
            Event::Misconfigured(error) => self.misconfigured(now, lane, error),
            Event::Reply { request, result } => self.replied(now, request, result),
            // A message may reach a client by every server: that of the one which sent it counts.
            Event::Push(push) if self.lanes.of(push.lock()) == lane => self.pushed(now, push),
            Event::Push(_) => {}
            Event::Map(changes) => self.assign_all(now, changes),
            Event::Detour(lock, lane) => self.detour(now, lock, lane),
        }
        self.send_due_beats(now);
    }

    /// The next thing to do; call until `None` after each of the other calls.
    pub fn poll_effect(&mut self) -> Option<Effect<C>> {
        self.effects.pop_front()
    }

    /// Takes a clock reading: two threads may read before they get here in the other order.
    fn at(&mut self, now: Time) -> Time {
        let now = if planted!(ClockGoesBack) { now } else { self.now.max(now) };
        if now != self.now {
            self.arrived = 0;
        }
        self.now = now;
        now
    }

    /// What every call ends with: the beats that are due leave together.
    fn send_due_beats(&mut self, now: Time) {
        for id in self.lanes.ids() {
            let lane = &self.lanes[id];
            if lane.link.up && lane.beats.first().is_some_and(|&(at, _)| at <= now) {
                self.send_beats(now, id);
            }
        }
    }

    fn send(&mut self, lane: LaneId, flight: Flight, op: Op) -> crate::request::RequestId {
        let id = self.lanes[lane].flights.push(flight);
        self.effects.push_back(Effect::Send(Request { id, op }));
        id
    }

    fn complete(&mut self, call: C, outcome: Outcome) {
        self.effects.push_back(Effect::Complete(call, outcome));
    }

    fn add_call(
        &mut self,
        call: C,
        kind: CallKind,
        lock: u32,
        entry: Option<Key>,
        deadline: Option<Time>,
    ) -> CallKey {
        let (since, nth) = (self.now, self.arrived);
        self.arrived += 1;
        let key = self.calls.insert(Call { call, kind, lock, entry, since, nth, deadline });
        if let Some(at) = deadline {
            self.timers.insert((at, Due::Call(key)));
        }
        CallKey::of(key)
    }

    fn remove_call(&mut self, key: CallKey) -> Option<Call<C>> {
        let call = self.calls.remove(key.key())?;
        if let Some(at) = call.deadline {
            self.timers.remove(&(at, Due::Call(key.key())));
        }
        if let Some(owner) = call.reader() {
            self.end_wait_to_read(call.lock, owner, key);
        }
        if Engine::is_in_line(&call)
            && let Some(lock) = self.lock_mut(call.lock)
        {
            lock.line.leave(call.age(), key);
        }
        Some(call)
    }

    /// A fresh hold id. Its low 32 bits say where the entry is, so that a push finds it at once.
    fn mint(&mut self, entry: Key) -> HoldId {
        let high = u128::from(self.random.next_u64()) << 64;
        let low = u128::from(self.random.next_u32()) << 32;
        let (high, low) = if planted!(HoldIdReused) { (1 << 64, 0) } else { (high, low) };
        HoldId(high | low | u128::from(entry.index))
    }

    /// Whether this client has something in hand under a hold id; the simulator asks.
    #[cfg(feature = "plant")]
    pub fn knows(&self, hold: HoldId) -> bool {
        self.entry_of(hold).is_some() || self.is_leaving(hold)
    }

    /// What is left in the client, by kind: nothing when nobody holds, waits or has a handle; the
    /// simulator asks.
    #[cfg(feature = "plant")]
    pub fn leftovers(&self) -> Vec<(&'static str, usize)> {
        let mut left = vec![
            ("locks", self.locks.len()),
            ("names", self.names.len()),
            ("entries", self.entries.len()),
            ("holds", self.holds.len()),
            ("calls", self.calls.len()),
            ("queries", self.queries.len()),
            ("flights", self.lanes.iter().map(|lane| lane.flights.len()).sum()),
            ("timers", self.timers.len()),
            ("beats", self.lanes.iter().map(|lane| lane.beats.len()).sum()),
            ("effects", self.effects.len()),
        ];
        left.retain(|(_, count)| *count > 0);
        left
    }

    /// Whether a release of the hold is on its way, or will be: it says what was used, and may have
    /// an entry elsewhere, or go along with an acquire.
    fn is_leaving(&self, hold: HoldId) -> bool {
        self.entries.keys().into_iter().filter_map(|key| self.entries.get(key)).any(|entry| {
            entry.id == hold || entry.after.as_ref().is_some_and(|it| it.release.hold == hold)
        })
    }

    fn entry_of(&self, hold: HoldId) -> Option<Key> {
        let index = (hold.0 & 0xffff_ffff) as u32;
        self.entries.at(index).filter(|(_, entry)| entry.id == hold).map(|(key, _)| key)
    }

    fn lock_mut(&mut self, index: u32) -> Option<&mut Lock> {
        let (key, _) = self.locks.at(index)?;
        self.locks.get_mut(key)
    }

    fn lock_ref(&self, index: u32) -> Option<&Lock> {
        self.locks.at(index).map(|(_, lock)| lock)
    }

    fn retire_lock(&mut self, index: u32) {
        if let Some((key, lock)) = self.locks.at(index)
            && lock.is_unused()
        {
            self.names.remove(&lock.name.clone());
            self.locks.remove(key);
        }
    }

    /// Why no new work is taken for a server, if so.
    fn refuses(&self, lane: LaneId) -> Option<Error> {
        if self.closing.is_some() {
            return Some(self.closed());
        }
        let link = &self.lanes[lane].link;
        if link.up { None } else { link.misconfigured.clone() }
    }

    fn closed(&self) -> Error {
        Error::new(ErrorKind::Closed, "the client is closed: make a new one")
    }

    fn unavailable(&self, lane: LaneId, what: &str) -> String {
        let link = &self.lanes[lane].link;
        match (&link.reason, link.up) {
            (Some(reason), false) => format!("the store cannot be reached: {reason}"),
            (None, false) => "the store cannot be reached yet".to_owned(),
            _ => format!("{what} within the call's bound"),
        }
    }

    /// A delay before the next try: doubling from 10 ms to 1 s, by half at random.
    fn backoff(&mut self, tries: u32) -> Duration {
        let tries = if planted!(NoBackoff) { 0 } else { tries };
        let full = (10u64 << tries.min(7)).min(1_000) * 1_000;
        let half = full / 2;
        Duration::from_micros(half + self.random.next_u64() % half)
    }
}

fn check(ask: &Ask, options: &Options) -> Result<(), Error> {
    ask.mode.check()?;
    if matches!((&ask.owner, ask.mode), (Owner::Explicit(_), Mode::Permits { .. })) {
        let text = "permits have no owner, who could take them up elsewhere: leave the owner out";
        return Err(Error::new(ErrorKind::InvalidArgument, text));
    }
    if ask.attach.is_some() && matches!(ask.owner, Owner::Local(_)) {
        return Err(Error::new(ErrorKind::InvalidArgument, "only an explicit owner can attach"));
    }
    if let Some(lease) = ask.lease {
        options.check_lease(lease)?;
    }
    if ask.max_hold.is_some_and(|max| max.is_zero()) {
        return Err(Error::new(ErrorKind::InvalidArgument, "max_hold must be above zero"));
    }
    Ok(())
}

/// When a hold that begins now ends by itself.
fn hold_end(ask: &Ask, now: Time, drift: Drift) -> Time {
    let lease = ask.lease.map_or(Time::MAX, |lease| drift.until(now, lease));
    let max = ask.max_hold.map_or(Time::MAX, |max| now + max);
    lease.min(max)
}

/// The error kind that a refusal reaches a caller as.
fn kind_of(kind: RefusalKind) -> ErrorKind {
    match kind {
        RefusalKind::Retry | RefusalKind::Again | RefusalKind::Apart => ErrorKind::Unavailable,
        RefusalKind::Misconfigured | RefusalKind::OtherPermits { .. } => ErrorKind::Misconfigured,
        RefusalKind::Unsupported => ErrorKind::Unsupported,
    }
}
