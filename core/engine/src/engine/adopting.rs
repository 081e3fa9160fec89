//! Permits whose number is the store's word, not the caller's.

use crate::engine::Engine;
use crate::engine::call::CallKind;
use crate::engine::slab::Key;
use crate::request::Mode;
use crate::time::Time;

impl<C: Clone> Engine<C> {
    /// Whether who waits for the entry takes the store's number of permits for its own.
    pub(super) fn adopts(&self, key: Key) -> bool {
        let Some(entry) = self.entries.get(key).filter(|entry| entry.parting.is_none()) else {
            return false;
        };
        let mut calls = entry.calls.iter().filter_map(|call| self.calls.get(call.key()));
        calls.any(|call| matches!(&call.kind, CallKind::Acquire(ask) if ask.adopt))
    }

    /// Others hold or wait, of so many permits: asks again with their number. Somebody may set it ever
    /// anew, so that this is a try like any other.
    pub(super) fn adopt_permits(&mut self, now: Time, key: Key, number: u32) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Mode::Permits { count, .. } = entry.mode else { return };
        if count > number {
            return self.doomed(now, key, number);
        }
        entry.mode = Mode::Permits { count, of: number };
        entry.stored = entry.mode;
        if entry.tries < 3 {
            entry.tries += 1;
        } else {
            self.retry_later(now, key);
        }
        self.advance(now, key);
    }
}
