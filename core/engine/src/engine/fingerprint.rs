//! An engine's whole state as a hash, for model checkers: engines that hash alike behave alike.

use core::hash::{Hash, Hasher};

use crate::engine::Engine;

impl<C: Hash> Hash for Engine<C> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Engine {
            options,
            random,
            now,
            arrived,
            locks,
            names: _,
            entries,
            holds,
            calls,
            queries,
            flights,
            timers,
            beats,
            link,
            closing,
            effects,
        } = self;
        // Options and seed stay what they were; names say the same as the locks.
        random.get_word_pos().hash(state);
        (now, arrived, locks, entries, holds, calls, queries).hash(state);
        (flights, timers, beats, closing).hash(state);
        link.fingerprint(flights.oldest(), options, state);
        debug_assert!(effects.is_empty(), "drain the effects first: they are not hashed");
    }
}
