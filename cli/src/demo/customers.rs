//! Who comes to buy, and in which order.

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// Every arrival of the sale, by number of person. Every other person clicks twice in a row, so
/// that two workers serve the same person at the same time.
pub fn arrivals(people: u32, seed: u64) -> Vec<u32> {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    let mut order: Vec<u32> = (0..people).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, below(&mut chance, last + 1));
    }
    let clicks = |(i, person): (usize, u32)| std::iter::repeat_n(person, 1 + (i + 1) % 2);
    order.into_iter().enumerate().flat_map(clicks).collect()
}

/// The arrivals that one worker serves: every `all`-th, from its own number on.
pub fn served_by(arrivals: &[u32], worker: usize, all: usize) -> impl Iterator<Item = u32> {
    arrivals.iter().copied().skip(worker).step_by(all)
}

/// How long one sale takes, between read and write, in microseconds: 2 to 6 ms.
pub fn moment(chance: &mut ChaCha8Rng) -> u64 {
    2_000 + below(chance, 4_000) as u64
}

fn below(chance: &mut ChaCha8Rng, bound: usize) -> usize {
    // The bias of the remainder is of no account for a few thousand out of 2^64.
    (chance.next_u64() % bound as u64) as usize
}

#[cfg(test)]
mod tests;
