//! A hold ends before its release, and its holder is told.

use std::collections::BTreeSet;

use crate::engine::Engine;
use crate::engine::call::{Call, CallKind};
use crate::engine::entry::At;
use crate::engine::slab::Key;
use crate::engine::words::contended;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Note, Outcome};
use crate::hold::{CallKey, HoldKey, LossReason, Patience};
use crate::request::Mode;
use crate::time::Time;
use crate::token::Token;

impl<C: Clone> Engine<C> {
    /// The entry's time is over by our own clock: tell the holders, and release what the store may
    /// still keep.
    pub(super) fn expire(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        if entry.ended(now).is_none() && entry.tenants.len() > 1 && !planted!(TenantEndsSeat) {
            return self.end_tenants(now, key);
        }
        let reason = entry.ended(now).unwrap_or(LossReason::NotRenewed);
        self.lose(now, key, reason);
    }

    /// Those of an entry's holders whose holds are over by themselves are told; the others stay.
    fn end_tenants(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        for owner in entry.tenants.over(now) {
            let strays = self.end_tenant(now, key, owner, LossReason::Ended);
            self.open_strays(now, strays);
        }
        self.plan_renewal(now, key);
        self.arm(key);
    }

    /// One of an entry's holders is told that its holds are lost.
    fn end_tenant(
        &mut self,
        now: Time,
        key: Key,
        owner: Option<u64>,
        reason: LossReason,
    ) -> Vec<CallKey> {
        let Some(holder) = self.end_tenure(now, key, owner) else { return Vec::new() };
        let name = self.entries.get(key).map(|entry| entry.name.clone());
        for hold in holder.holds {
            if let Some(hold) = self.holds.get_mut(hold.key()) {
                hold.lost = Some(reason);
                self.effects.push_back(Effect::Lost(hold.call.clone(), reason));
            }
        }
        if let Some(lock) = name {
            let note = Note::Lost { lock, token: Token(holder.token), reason };
            self.effects.push_back(Effect::Note(note));
        }
        self.release_companions(now, key, &lost(reason), Some(owner))
    }

    /// The store no longer has the entry's hold. That may be news of a hold whose time was over
    /// before, as of a process that was paused: then that is what its holders hear.
    pub(super) fn vanish(&mut self, now: Time, key: Key, reason: LossReason) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let ended = entry.ended(now).filter(|_| !planted!(EndedIsBroken));
        entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
        self.lose(now, key, ended.unwrap_or(reason));
    }

    /// What the store has granted proves that it forgot other holds of this client, beside which it
    /// would not have: as after its data was lost.
    pub(super) fn end_forgotten(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        let (mode, token) = (entry.mode, entry.token);
        let Some(lock) = self.lock_ref(entry.lock).filter(|_| entry.owner.is_none()) else {
            return;
        };
        let alone = lock.entry.filter(|_| mode == Mode::Shared);
        let readers = lock.readers.values().filter_map(|reader| reader.held);
        let mut forgotten: Vec<Key> = readers.chain(alone).filter(|other| *other != key).collect();
        forgotten.dedup();
        for other in forgotten {
            let is_gone = self.entries.get(other).is_some_and(|other| {
                let apart = mode == Mode::Exclusive || other.mode == Mode::Exclusive;
                apart && other.at == At::Held && other.parting.is_none() && other.token < token
            });
            if is_gone && !planted!(ForgottenStays) {
                self.vanish(now, other, LossReason::Gone);
            }
        }
    }

    /// Tells every holder of the entry that it is lost, gives the entry up, and queues again for
    /// those who wait.
    pub(super) fn lose(&mut self, now: Time, key: Key, reason: LossReason) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let lock = entry.lock;
        let mut waiting: Vec<CallKey> = std::mem::take(&mut entry.calls).into();
        for call in &waiting {
            if let Some(call) = self.calls.get_mut(call.key()) {
                call.entry = None;
            }
        }
        let several = entry.tenants.len() > 1;
        let tenants = entry.tenants.iter().map(|holder| (holder.owner, holder.end));
        let tenants: Vec<(Option<u64>, Time)> = tenants.collect();
        let told = if planted!(OneTenantTold) { 1 } else { tenants.len() };
        for &(owner, end) in &tenants[..told.min(tenants.len())] {
            let reason = if several && end <= now { LossReason::Ended } else { reason };
            waiting.extend(self.end_tenant(now, key, owner, reason));
        }
        waiting.extend(self.release_companions(now, key, &lost(reason), None));
        self.part(now, key, None, true);
        self.open_strays(now, waiting);
        self.reopen(now, lock);
    }

    /// What waited for a renewal of holds that have ended: an extend fails; a re-entry belongs to
    /// its owner, and becomes a wait like any other, at the place that its age gives it. Those that
    /// want another entry are given back, to be opened when this one is on its way. `only`: those of
    /// one of the entry's holders, while others stay.
    pub(super) fn release_companions(
        &mut self,
        now: Time,
        key: Key,
        error: &Error,
        only: Option<Option<u64>>,
    ) -> Vec<CallKey> {
        let mut strays = Vec::new();
        let mut companions = self.companions(key);
        if let Some(only) = only {
            companions.retain(|call| self.companion_of(*call) == Some(only));
        }
        if let Some(entry) = self.entries.get_mut(key) {
            let away: BTreeSet<CallKey> = companions.iter().copied().collect();
            entry.companions.retain(|call| !away.contains(call));
        }
        for call in companions {
            let Some(item) = self.calls.get_mut(call.key()) else { continue };
            match &item.kind {
                CallKind::Extend { .. } | CallKind::Convert { .. } => {
                    if let Some(item) = self.remove_call(call) {
                        self.complete(item.call, Outcome::Failed(error.clone()));
                    }
                }
                CallKind::Join(ask) => {
                    let ask = ask.clone();
                    let lock = item.lock;
                    let local = ask.queues_locally();
                    item.kind = CallKind::Acquire(ask);
                    item.entry = None;
                    if !local {
                        self.begin_to_read(call);
                        strays.push(call);
                        continue;
                    }
                    let age = item.age();
                    self.queue_by_age(lock, call, age);
                    self.end_late_try(now, lock, call);
                }
                CallKind::Acquire(_) => {}
            }
        }
        strays
    }

    /// Whose renewal an extend or a re-entry waits for.
    fn companion_of(&self, call: CallKey) -> Option<Option<u64>> {
        match &self.calls.get(call.key())?.kind {
            CallKind::Extend { hold, .. } | CallKind::Convert { hold, .. } => {
                self.holds.get(hold.key()).map(|hold| hold.owner)
            }
            CallKind::Join(ask) | CallKind::Acquire(ask) => Some(ask.tenant()),
        }
    }

    /// Puts a call into the local queue at the place that its age gives it.
    fn queue_by_age(&mut self, lock: u32, call: CallKey, age: (Time, u32)) {
        let calls = &self.calls;
        let Some(owner) = calls.get(call.key()).and_then(Call::local_owner) else { return };
        let Some((index, _)) = self.locks.at(lock) else { return };
        let Some(lock) = self.locks.get_mut(index) else { return };
        let younger = |other: &CallKey| calls.get(other.key()).is_some_and(|c| c.age() > age);
        let at = lock.waiting.iter().position(younger).unwrap_or(lock.waiting.len());
        lock.waiting.insert(at, call);
        lock.enter(owner);
    }

    /// A try that is not the next to be served has failed.
    fn end_late_try(&mut self, now: Time, lock: u32, call: CallKey) {
        let asks = self.calls.get(call.key()).and_then(Call::ask);
        let mode = asks.filter(|ask| ask.patience == Patience::Try).map(|ask| ask.mode);
        if let Some(mode) = mode
            && self.first_waiter(lock) != Some(call)
            && let Some(call) = self.withdraw(now, call)
        {
            self.complete(call.call, Outcome::Failed(contended(mode)));
        }
    }

    /// What waited for a longer lease of a hold that was released meanwhile fails.
    pub(super) fn end_extends(&mut self, key: Key, hold: HoldKey) {
        for call in self.companions(key) {
            let mine = match self.calls.get(call.key()).map(|call| &call.kind) {
                Some(CallKind::Extend { hold: of, .. }) => {
                    *of == hold && !planted!(ExtendOutlivesHold)
                }
                Some(CallKind::Convert { hold: of, .. }) => *of == hold,
                _ => false,
            };
            if mine && let Some(call) = self.remove_call(call) {
                self.complete(call.call, Outcome::Failed(super::release::not_held()));
            }
        }
    }

    /// Whether anybody waits for the entry's next renewal.
    pub(super) fn has_companions(&self, key: Key) -> bool {
        let entry = self.entries.get(key);
        entry
            .is_some_and(|it| it.companions.iter().any(|call| self.calls.get(call.key()).is_some()))
    }

    /// The extends and re-entries that wait for the entry's next renewal.
    pub(super) fn companions(&mut self, key: Key) -> Vec<CallKey> {
        let calls = &self.calls;
        let Some(entry) = self.entries.get_mut(key) else { return Vec::new() };
        entry.companions.retain(|call| calls.get(call.key()).is_some());
        entry.companions.clone()
    }
}

pub(super) fn lost(reason: LossReason) -> Error {
    Error::new(
        ErrorKind::Lost,
        format!("the hold was lost before its release: {}", reason.describe()),
    )
}
