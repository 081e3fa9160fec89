//! A hold ends before its release, and its holder is told.

use crate::engine::Engine;
use crate::engine::call::{Call, CallKind};
use crate::engine::entry::At;
use crate::engine::slab::Key;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Note, Outcome};
use crate::hold::{CallKey, HoldKey, LossReason, Patience};
use crate::time::Time;
use crate::token::Token;

impl<C: Clone> Engine<C> {
    /// The entry's time is over by our own clock: tell the holders, and release what the store may
    /// still keep.
    pub(super) fn expire(&mut self, now: Time, key: Key) {
        let Some(entry) = self.entries.get(key) else { return };
        let reason = entry.ended(now).unwrap_or(LossReason::NotRenewed);
        self.lose(now, key, reason);
    }

    /// The store no longer has the entry's hold. That may be news of a hold whose time was over
    /// before, as of a process that was paused: then that is what its holders hear.
    pub(super) fn vanish(&mut self, now: Time, key: Key, reason: LossReason) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let ended = entry.ended(now).filter(|_| !planted!(EndedIsBroken));
        entry.at = if entry.exposed_until > 0 { At::Unclear } else { At::Nowhere };
        self.lose(now, key, ended.unwrap_or(reason));
    }

    /// Tells every holder of the entry that it is lost, gives the entry up, and queues again for
    /// those who wait.
    pub(super) fn lose(&mut self, now: Time, key: Key, reason: LossReason) {
        let holder = self.end_tenure(now, key);
        let Some(entry) = self.entries.get_mut(key) else { return };
        let (lock, name) = (entry.lock, entry.name.clone());
        let pending = entry.call.take();
        if let Some(holder) = holder {
            let token = Token(holder.token);
            for hold in holder.holds {
                if let Some(hold) = self.holds.get_mut(hold.key()) {
                    hold.lost = Some(reason);
                    self.effects.push_back(Effect::Lost(hold.call.clone(), reason));
                }
            }
            let note = Note::Lost { lock: name, token, reason };
            self.effects.push_back(Effect::Note(note));
        }
        let strays = self.release_companions(now, key, &lost(reason));
        self.part(now, key, None, true);
        if let Some(call) = pending
            && self.calls.get(call.key()).is_some()
        {
            self.open_single(now, call);
        }
        self.open_strays(now, strays);
        self.reopen(now, lock);
    }

    /// What waited for a renewal of holds that have ended: an extend fails; a re-entry belongs to
    /// its owner, and becomes a wait like any other, at the place that its age gives it. Those that
    /// want an entry of their own are given back, to be opened when this one is on its way.
    pub(super) fn release_companions(
        &mut self,
        now: Time,
        key: Key,
        error: &Error,
    ) -> Vec<CallKey> {
        let mut strays = Vec::new();
        let companions = self.companions(key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.companions.clear();
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
        let is_try = asks.is_some_and(|ask| ask.patience == Patience::Try);
        if is_try
            && self.first_waiter(lock) != Some(call)
            && let Some(call) = self.withdraw(now, call)
        {
            self.complete(call.call, Outcome::Failed(super::local::contended()));
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
