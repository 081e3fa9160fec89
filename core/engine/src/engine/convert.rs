//! Holding a lock in another mode from now on.

use std::time::Duration;

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::entry::{At, Conversion};
use crate::engine::flight::{Flight, Purpose};
use crate::engine::slab::Key;
use crate::engine::words::unconfirmed;
use crate::error::{Error, ErrorKind};
use crate::event::{Converted, Outcome};
use crate::hold::{CallKey, HoldKey, LockKey, LossReason};
use crate::reply::{Failure, Refusal, RefusalKind, Standing, State};
use crate::request::{Convert, Mode, Op};
use crate::time::{Time, micros_up};
use crate::token::Token;

/// How late a conversion may take effect: half of what stores allow.
const SLACK: Duration = Duration::from_secs(3);
/// The least pause before one is repeated.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// A conversion that was sent.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Sent {
    pub entry: Key,
    pub to: Mode,
    pub lease: Duration,
    pub not_after: u64,
}

impl<C: Clone> Engine<C> {
    /// Makes an exclusive hold shared: its holder does not write from now on, and others may read once
    /// the store has answered. `None` when it is shared already; otherwise a completion follows:
    /// `Converted`, or `Failed` with `Lost`, or with `Unavailable` when the store did not answer in time,
    /// which then goes on being asked.
    ///
    /// # Errors
    /// `Lost` when the hold has ended, `NotHeld` when it was released, `InvalidArgument` for permits,
    /// `Contended` when the local owner has other exclusive holds of the lock.
    pub fn downgrade(
        &mut self,
        now: Time,
        hold: HoldKey,
        call: C,
    ) -> Result<Option<CallKey>, Error> {
        let now = self.at(now);
        let key = self.live_entry(now, hold)?;
        match self.mode_of(hold) {
            Mode::Permits { .. } => return Err(no_mode()),
            Mode::Shared => return Ok(None),
            Mode::Exclusive => {}
        }
        if self.writes(key) > 1 {
            return Err(other_levels("has the lock to write by another hold, too"));
        }
        let key_of_call = self.add_conversion(now, key, hold, Mode::Shared, call);
        self.set_mode(hold, Mode::Shared);
        self.share(now, key, Conversion::new(Mode::Shared, Some(key_of_call)));
        self.send_due_beats(now);
        Ok(Some(key_of_call))
    }

    /// Makes a hold shared again of whose upgrade nobody took delivery: as if it had been given up before
    /// it was answered. Nobody was told of a predecessor.
    pub fn undo_upgrade(&mut self, now: Time, hold: HoldKey) {
        let now = self.at(now);
        let Ok(key) = self.live_entry(now, hold) else { return };
        if self.mode_of(hold) != Mode::Exclusive {
            return;
        }
        self.set_mode(hold, Mode::Shared);
        // Unless its owner writes by another hold meanwhile, which has been told.
        if self.writes(key) == 0 {
            self.share(now, key, Conversion::undoing());
        }
        self.send_due_beats(now);
    }

    /// Makes a shared hold exclusive, if nobody else holds the lock, past whoever waits. `None` when
    /// it is exclusive already; otherwise a completion follows: `Converted`, or `Failed` with `Contended`,
    /// `Lost` or `Unavailable`. It can be cancelled until then, which leaves the hold shared.
    ///
    /// # Errors
    /// `Lost` when the hold has ended, `NotHeld` when it was released, `InvalidArgument` for permits,
    /// `Contended` when the local owner has other holds of the lock, or another conversion of this one
    /// is under way, `Unavailable` while one that was not answered may yet take effect.
    pub fn try_upgrade(
        &mut self,
        now: Time,
        hold: HoldKey,
        call: C,
    ) -> Result<Option<CallKey>, Error> {
        let now = self.at(now);
        let key = self.live_entry(now, hold)?;
        match self.mode_of(hold) {
            Mode::Permits { .. } => return Err(no_mode()),
            Mode::Exclusive => return Ok(None),
            Mode::Shared => {}
        }
        let store = self.lanes[self.lane_of_entry(key)].link.clock.estimate(now);
        let Some(entry) = self.entries.get(key) else { return Err(super::release::not_held()) };
        if entry.levels() > 1 {
            return Err(other_levels("has other holds of the lock, or others read with it"));
        }
        if entry.conversion.is_some() {
            return Err(other_levels("has another conversion of this hold under way"));
        }
        if entry.copies.is_live(store, now) {
            let text = "an earlier conversion of this hold was not answered, and may yet take effect: \
                        try again in a few seconds";
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        if let Some(error) = self.refuses(entry.lane) {
            return Err(error);
        }
        let key_of_call = self.add_conversion(now, key, hold, Mode::Exclusive, call);
        self.convert(now, key, Conversion::new(Mode::Exclusive, Some(key_of_call)));
        self.send_due_beats(now);
        Ok(Some(key_of_call))
    }

    /// Of the holds that [`Engine::count`] counts, those to write: nobody else's are beside them.
    pub fn count_writes(&self, now: Time, lock: LockKey, owner: u64) -> usize {
        let Some(found) = self.lock_ref(lock.0) else { return 0 };
        let reads = found.readers.get(&owner).and_then(|reader| reader.held);
        let writes = found.entry.into_iter().chain(reads).map(|entry| self.writes(entry)).sum();
        if self.count(now, lock, owner) == 0 { 0 } else { writes }
    }

    /// How a hold shares the lock within others of its owner; exclusive when it is not known.
    pub fn mode_of(&self, hold: HoldKey) -> Mode {
        self.holds.get(hold.key()).map_or(Mode::Exclusive, |hold| hold.mode)
    }

    fn set_mode(&mut self, hold: HoldKey, mode: Mode) {
        if let Some(hold) = self.holds.get_mut(hold.key()) {
            hold.mode = mode;
        }
    }

    /// How many of the entry's holds are exclusive.
    fn writes(&self, key: Key) -> usize {
        let Some(entry) = self.entries.get(key) else { return 0 };
        let holds = entry.tenants.iter().flat_map(|holder| &holder.holds);
        holds.filter(|hold| self.mode_of(**hold) == Mode::Exclusive).count()
    }

    fn add_conversion(&mut self, now: Time, key: Key, hold: HoldKey, to: Mode, call: C) -> CallKey {
        let deadline = Some(now + self.options.request_timeout);
        let lock = self.entries.get(key).map_or(0, |entry| entry.lock);
        let call = self.add_call(call, CallKind::Convert { hold, to }, lock, Some(key), deadline);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.companions.push(call);
        }
        call
    }

    /// A local owner's last exclusive hold has ended, and it reads on: so may others.
    pub(super) fn share_if_read(&mut self, now: Time, key: Key) -> bool {
        let Some(entry) = self.entries.get(key) else { return false };
        let reads = entry.mode == Mode::Exclusive && entry.owner.is_none() && entry.levels() > 0;
        if !reads || self.writes(key) > 0 || planted!(OuterWriteStays) {
            return false;
        }
        self.share(now, key, Conversion::new(Mode::Shared, None));
        true
    }

    /// Whoever has the entry only reads from now on. The local queue gets another one.
    fn share(&mut self, now: Time, key: Key, conversion: Conversion) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.mode = Mode::Shared;
        let lock = entry.lock;
        let owner = entry.tenants.first().and_then(|holder| holder.owner);
        let mut handed = false;
        if let Some(lock) = self.lock_mut(lock)
            && lock.entry == Some(key)
        {
            (lock.entry, handed) = (None, true);
        }
        if let Some(owner) = owner {
            self.set_reader(lock, owner, Some(key));
        }
        self.end_joins_to_write(key);
        self.convert(now, key, conversion);
        if handed {
            self.reopen(now, lock);
        }
    }

    /// What waited to write once more within a write, as a longer one, would wait for its own owner.
    fn end_joins_to_write(&mut self, key: Key) {
        for call in self.companions(key) {
            let kind = self.calls.get(call.key()).map(|call| &call.kind);
            if matches!(kind, Some(CallKind::Join(ask)) if ask.mode == Mode::Exclusive)
                && let Some(call) = self.remove_call(call)
            {
                self.complete(call.call, Outcome::Failed(super::reply::would_deadlock()));
            }
        }
    }

    fn convert(&mut self, now: Time, key: Key, conversion: Conversion) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.conversion = Some(conversion);
            entry.tries = 0;
            entry.retry_at = Time::ZERO;
        }
        self.advance(now, key);
    }

    /// Sends what the entry has to convert, if it may.
    pub(super) fn send_conversion(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        let Some(conversion) = entry.conversion else { return };
        let idle = entry.at == At::Held && entry.parting.is_none() && entry.flight.is_none();
        if !idle || !self.lanes[entry.lane].link.up || now < entry.retry_at {
            return self.arm(key);
        }
        let Some(lease) = self.renewal(now, key) else { return };
        let not_after = self.lanes[self.lane_of_entry(key)]
            .link
            .clock
            .estimate(now)
            .saturating_add(micros_up(SLACK));
        let drift = self.options.drift();
        let Some(entry) = self.entries.get_mut(key) else { return };
        let to = conversion.to;
        if let Some(conversion) = &mut entry.conversion {
            conversion.sent = true;
        }
        entry.news = false;
        entry.lent = entry.lent.max(drift.until(now, lease));
        let ask = Convert {
            floor: 0,
            used: entry.used,
            told: entry.told && conversion.told,
            losses: entry.losses,
            ..Convert::new(entry.name.clone(), entry.id, to, lease, not_after)
        };
        let index = entry.lock;
        let floor = self.lock_ref(index).map_or(0, |lock| lock.floor);
        let purpose = Purpose::Convert(Sent { entry: key, to, lease, not_after });
        let op = Op::Convert(Convert { floor, ..ask });
        let id = self.send(self.lane_of_entry(key), Flight { sent: now, purpose }, op);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.flight = Some(id);
        }
        self.arm(key);
    }

    pub(super) fn conversion_answered(
        &mut self,
        now: Time,
        left: Time,
        sent: Sent,
        store: u64,
        state: State,
    ) {
        let key = sent.entry;
        self.note_publish(&state);
        self.conversion_landed(now, key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.parting.is_some() || entry.conversion.is_none() {
            return self.advance(now, key);
        }
        entry.trouble = None;
        match state.standing {
            Standing::Granted => self.converted(now, left, sent, store, state),
            Standing::Contended => {
                entry.hear_others(state.others_waiting, left);
                self.not_converted(now, key, store, &contended());
            }
            Standing::Late => {
                entry.tries += 1;
                if entry.tries > 2 {
                    self.convert_later(now, key);
                }
                self.advance(now, key);
            }
            // As one that was not answered.
            Standing::Unconfirmed { by, of } => {
                entry.trouble = Some(unconfirmed(by, of));
                entry.copies.expose(sent.to, sent.not_after, now);
                self.convert_later(now, key);
                self.advance(now, key);
            }
            _ => self.vanish(now, key, LossReason::Gone),
        }
    }

    /// What was to be renewed meanwhile is now.
    fn conversion_landed(&mut self, now: Time, key: Key) {
        self.land(key);
        if self.entries.get_mut(key).is_some_and(|entry| std::mem::take(&mut entry.beat_missed)) {
            self.beat_by(key, now);
        }
    }

    /// The store has the hold in the mode that was asked for: the one that is wanted, unless whoever
    /// asked has given up since.
    fn converted(&mut self, now: Time, left: Time, sent: Sent, store: u64, state: State) {
        let key = sent.entry;
        let Some(entry) = self.entries.get_mut(key) else { return };
        if entry.ends_at() <= now {
            // Too late, as with a renewal.
            return self.expire(now, key);
        }
        let Some(conversion) = entry.conversion else { return };
        let given = sent.lease.min(state.lease);
        let drift = self.options.drift();
        let until = drift.until(left, given);
        if until > entry.valid_until {
            (entry.valid_until, entry.asked) = (until, given);
        }
        entry.lent = entry.lent.max(drift.until(left, state.lease));
        entry.contact = entry.contact.max(left);
        entry.claim = false;
        entry.tries = 0;
        entry.hear_others(state.others_waiting, left);
        entry.stored = sent.to;
        entry.token = state.token;
        entry.end = state.end.max(state.token);
        if sent.to != conversion.to {
            return self.advance(now, key);
        }
        let lock = entry.lock;
        if conversion.told {
            entry.used = state.token;
            if let Some(holder) = entry.tenants.only_mut() {
                holder.token = state.token;
            }
        }
        if sent.to == Mode::Exclusive {
            entry.mode = Mode::Exclusive;
            entry.lone = true;
            (entry.abandoned, entry.losses) = (state.abandoned, state.losses);
            if let Some(holder) = entry.tenants.only_mut() {
                holder.abandoned = state.abandoned;
            }
        }
        if let Some(lock) = self.lock_mut(lock) {
            lock.floor = lock.floor.max(state.token);
        }
        self.beat_by(key, left + given / 3);
        self.conversion_over(now, key, store);
        if let Some(call) = conversion.call.and_then(|call| self.remove_call(call))
            && let CallKind::Convert { hold, to } = call.kind
        {
            self.set_mode(hold, to);
            let (token, abandoned) = (Token(state.token), state.abandoned);
            let outcome = Outcome::Converted(Converted { hold, mode: to, token, abandoned });
            self.complete(call.call, outcome);
        }
        if self.has_companions(key) {
            self.beat_by(key, now);
        }
        if state.others_waiting > 0 {
            self.tell_wanted(now, key);
        }
        // What is shared is never shortened; what is exclusive is kept for its present holds.
        self.shorten(now, key);
    }

    /// Nothing is to be converted any more, unless a copy of what was not answered may make the hold
    /// exclusive yet: until that is past, it is made shared again each time that it is renewed.
    fn conversion_over(&mut self, now: Time, key: Key, store: u64) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let live = entry.copies.is_live(store, now) && entry.mode == Mode::Shared;
        if !live || entry.copies.to == Mode::Shared {
            entry.conversion = None;
            return;
        }
        let wait = Duration::from_micros(entry.copies.until.saturating_sub(store));
        entry.conversion = Some(Conversion::undoing());
        // It renews the hold as well, which nothing else does meanwhile.
        let renewal = entry.valid_until.since(now) / 3;
        entry.retry_at = now + wait.min(SLACK * 2).min(renewal) + Duration::from_millis(1);
    }

    fn not_converted(&mut self, now: Time, key: Key, store: u64, error: &Error) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.tries = 0;
        let call = entry.conversion.and_then(|conversion| conversion.call);
        self.conversion_over(now, key, store);
        if let Some(call) = call.and_then(|call| self.remove_call(call)) {
            self.complete(call.call, Outcome::Failed(error.clone()));
        }
        self.advance(now, key);
    }

    pub(super) fn conversion_failed(&mut self, now: Time, sent: Sent, failure: Failure) {
        let key = sent.entry;
        self.conversion_landed(now, key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        match failure {
            Failure::Unknown => entry.copies.expose(sent.to, sent.not_after, now),
            Failure::NotSent => {}
            Failure::Refused(refusal) => return self.conversion_refused(now, key, refusal),
        }
        self.convert_later(now, key);
        self.advance(now, key);
    }

    fn conversion_refused(&mut self, now: Time, key: Key, refusal: Refusal) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        match refusal.kind {
            RefusalKind::Again if entry.tries < 3 => entry.tries += 1,
            RefusalKind::Again | RefusalKind::Apart | RefusalKind::Retry => {
                entry.trouble = Some(refusal.message);
                self.convert_later(now, key);
            }
            kind => {
                // The store will not have it so: whoever asked is told, and it stays as it is there.
                let error = Error::new(super::kind_of(kind), refusal.message);
                let store = self.lanes[self.lane_of_entry(key)].link.clock.estimate(now);
                return self.not_converted(now, key, store, &error);
            }
        }
        self.advance(now, key);
    }

    /// Again soon, as long as the hold lasts: nothing else renews it meanwhile.
    fn convert_later(&mut self, now: Time, key: Key) {
        let tries = self.entries.get(key).map_or(0, |entry| entry.tries);
        let delay = self.backoff(tries);
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.tries += 1;
        let left = entry.valid_until.since(now) / 4;
        entry.retry_at = now + delay.min(left.max(SHORTEST_PAUSE));
    }

    /// Nobody waits for the conversion any more. One to write is undone; one to read goes on.
    pub(super) fn leave_conversion(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(conversion) = &mut entry.conversion else { return };
        conversion.call = None;
        if conversion.to == Mode::Shared || planted!(UpgradeNotUndone) {
            return;
        }
        if conversion.sent {
            self.convert(now, key, Conversion::undoing());
        } else {
            entry.conversion = None;
        }
    }
}

fn no_mode() -> Error {
    let text = "permits are neither shared nor exclusive: only a hold of a lock is converted";
    Error::new(ErrorKind::InvalidArgument, text)
}

fn other_levels(what: &str) -> Error {
    Error::new(ErrorKind::Contended, format!("the hold stays as it is: its owner {what}"))
}

fn contended() -> Error {
    let text = "others read, or the owner has other holds: the hold stays shared";
    Error::new(ErrorKind::Contended, text)
}
