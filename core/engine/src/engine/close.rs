//! The end of a client.

use crate::engine::Engine;
use crate::engine::entry::At;
use crate::engine::slab::Key;
use crate::engine::timer::Due;
use crate::event::{Effect, Outcome};
use crate::hold::{CallKey, LossReason};
use crate::id::HoldId;
use crate::time::Time;

/// A close until its end.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Closing<C> {
    calls: Vec<C>,
    deadline: Time,
    over: bool,
}

impl<C: Clone> Engine<C> {
    /// Closes: new calls fail, waits are cancelled, holds are told that they are lost and are
    /// released at the store. Completes with [`Outcome::Closed`] when the store has confirmed it
    /// all, or after the request timeout.
    pub fn close(&mut self, now: Time, call: C) {
        let now = self.at(now);
        if let Some(closing) = &mut self.closing {
            if closing.over {
                self.effects.push_back(Effect::Complete(call, Outcome::Closed));
            } else {
                closing.calls.push(call);
            }
            return;
        }
        let deadline = now + self.options.request_timeout;
        self.closing = Some(Closing { calls: vec![call], deadline, over: false });
        self.timers.insert((deadline, Due::Close));
        let error = self.closed();
        for key in self.calls.keys() {
            if let Some(call) = self.withdraw(now, CallKey::of(key)) {
                self.complete(call.call, Outcome::Failed(error.clone()));
            }
        }
        self.fail_queries(None, &error);
        for key in self.entries.keys() {
            let Some(entry) = self.entries.get(key) else { continue };
            if entry.at == At::Held && entry.parting.is_none() {
                self.lose(now, key, LossReason::Closed);
            } else {
                self.part(now, key, None, false);
            }
        }
        self.check_closed();
        self.send_due_beats(now);
    }

    /// Whether the client is closed and nothing of it is left at the store, or its bound passed.
    pub fn is_closed(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.over)
    }

    /// Whether nothing is at the store, as far as is known: after the end of a close, whether the store
    /// has confirmed every release.
    pub fn has_left_nothing(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn check_closed(&mut self) {
        if self.entries.is_empty() {
            self.end_close();
        }
    }

    pub(super) fn close_expired(&mut self) {
        self.end_close();
    }

    fn end_close(&mut self) {
        let Some(closing) = &mut self.closing else { return };
        closing.over = true;
        let deadline = closing.deadline;
        let calls = core::mem::take(&mut closing.calls);
        self.timers.remove(&(deadline, Due::Close));
        for call in calls {
            self.complete(call, Outcome::Closed);
        }
    }

    /// An entry for a hold that the store gave us and that we know nothing of, to be released.
    pub(super) fn adopt(&mut self, lock: u32, hold: HoldId) -> Key {
        let key = self.leaving_entry(lock, hold, 0);
        self.arm(key);
        key
    }
}
