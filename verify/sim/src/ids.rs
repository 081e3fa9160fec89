//! Sets and maps by hold id. They are looked into and never walked, so that their order, which is
//! that of their making, does not matter.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use fencelock_engine::HoldId;

/// A set of holds.
pub(crate) type HoldSet = HashSet<HoldId, BuildHasherDefault<Mixed>>;
/// What is known of holds.
pub(crate) type HoldMap<T> = HashMap<HoldId, T, BuildHasherDefault<Mixed>>;

/// Ids are random already: both halves, mixed, will do.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn write_u128(&mut self, id: u128) {
        self.0 = (id as u64 ^ (id >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
