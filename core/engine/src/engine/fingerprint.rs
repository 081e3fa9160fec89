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
            lanes,
            timers,
            closing,
            effects,
        } = self;
        // Options and seed stay what they were; names say the same as the locks.
        random.get_word_pos().hash(state);
        (now, arrived, locks, entries, holds, calls, queries).hash(state);
        for lane in lanes.iter() {
            (&lane.flights, &lane.beats).hash(state);
            lane.link.fingerprint(lane.flights.oldest(), options, state);
        }
        (lanes.map(), timers, closing).hash(state);
        debug_assert!(effects.is_empty(), "drain the effects first: they are not hashed");
    }
}
