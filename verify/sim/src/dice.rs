//! The only source of chance: one seeded generator.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A seeded generator with the few draws that a run needs.
#[derive(Clone, Debug)]
pub struct Dice {
    rng: ChaCha8Rng,
}

impl Dice {
    /// The generator of `seed`.
    pub fn new(seed: u64) -> Dice {
        Dice { rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.rng.next_u64()
    }

    /// A number below `bound`; 0 when `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The high half of a product: no division, and the bias is far below what matters here.
        ((u128::from(self.rng.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// True in so many of a thousand.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1000) < per_mille
    }

    /// One of `from`.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A seed for an engine.
    pub fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.rng.fill_bytes(&mut seed);
        seed
    }
}
