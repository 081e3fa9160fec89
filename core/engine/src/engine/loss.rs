//! A hold ends before its release, and its holder is told.

use crate::engine::Engine;
use crate::engine::call::Wish;
use crate::engine::seat::At;
use crate::engine::slab::Key;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Note, Outcome};
use crate::hold::{CallKey, LossReason};
use crate::time::Time;
use crate::token::Token;

impl<C: Clone> Engine<C> {
    /// The seat's time is over by our own clock: tell the holders, and release what the store may
    /// still keep.
    pub(super) fn expire(&mut self, now: Time, key: Key) {
        let Some(seat) = self.seats.get(key) else { return };
        let reason = seat.ended(now).unwrap_or(LossReason::NotRenewed);
        self.lose(now, key, reason);
    }

    /// The store no longer has the seat's hold. That may be news of a hold whose time was over
    /// before, as of a process that was paused: then that is what its holders hear.
    pub(super) fn vanish(&mut self, now: Time, key: Key, reason: LossReason) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        let ended = seat.ended(now).filter(|_| !planted!(EndedIsBroken));
        seat.at = if seat.exposed_until > 0 { At::Unclear } else { At::Nowhere };
        self.lose(now, key, ended.unwrap_or(reason));
    }

    /// Tells every holder of the seat that it is lost, gives the seat up, and queues again for
    /// those who wait.
    pub(super) fn lose(&mut self, now: Time, key: Key, reason: LossReason) {
        let Some(seat) = self.seats.get_mut(key) else { return };
        let (lock, name) = (seat.lock, seat.name.clone());
        let tenant = seat.tenant.take();
        let pending = seat.call.take();
        if let Some(tenant) = tenant {
            let token = Token(tenant.token);
            for hold in tenant.holds {
                if let Some(hold) = self.holds.get_mut(hold.key()) {
                    hold.lost = Some(reason);
                    self.effects.push_back(Effect::Lost(hold.call.clone(), reason));
                }
            }
            let note = Note::Lost { lock: name, token, reason };
            self.effects.push_back(Effect::Note(note));
        }
        self.release_companions(key, reason);
        self.part(now, key, None, true);
        if let Some(call) = pending
            && self.calls.get(call.key()).is_some()
        {
            self.open_explicit(now, call);
        }
        self.reopen(now, lock);
    }

    /// What waited for the lost hold: an extend fails; a re-entry becomes a wait like any other.
    fn release_companions(&mut self, key: Key, reason: LossReason) {
        for call in self.companions(key) {
            let Some(entry) = self.calls.get_mut(call.key()) else { continue };
            match &entry.wish {
                Wish::Extend { .. } => {
                    if let Some(entry) = self.remove_call(call) {
                        self.complete(entry.call, Outcome::Failed(lost(reason)));
                    }
                }
                Wish::Join(ask) => {
                    let ask = ask.clone();
                    let lock = entry.lock;
                    entry.wish = Wish::Acquire(ask);
                    entry.seat = None;
                    let age = entry.age();
                    self.queue_by_age(lock, call, age);
                }
                Wish::Acquire(_) => {}
            }
        }
    }

    /// Puts a call into the local queue at the place that its age gives it.
    fn queue_by_age(&mut self, lock: u32, call: CallKey, age: (Time, u32)) {
        let calls = &self.calls;
        let Some((index, _)) = self.locks.at(lock) else { return };
        let Some(lock) = self.locks.get_mut(index) else { return };
        let younger = |other: &CallKey| calls.get(other.key()).is_some_and(|c| c.age() > age);
        let at = lock.waiting.iter().position(younger).unwrap_or(lock.waiting.len());
        lock.waiting.insert(at, call);
        lock.live += 1;
    }

    /// The extends and re-entries that wait for the seat's next renewal.
    pub(super) fn companions(&mut self, key: Key) -> Vec<CallKey> {
        let calls = &self.calls;
        let Some(seat) = self.seats.get_mut(key) else { return Vec::new() };
        seat.companions.retain(|call| calls.get(call.key()).is_some());
        seat.companions.clone()
    }
}

pub(super) fn lost(reason: LossReason) -> Error {
    Error::new(
        ErrorKind::Lost,
        format!("the hold was lost before its release: {}", reason.describe()),
    )
}
