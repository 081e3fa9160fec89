//! Waits and rates of a scene.

use std::time::Duration;

use crate::demo::wire::Visit;

/// How long workers waited and how fast the lock went round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Half of the waits were no longer.
    pub p50: Duration,
    /// All but one in a hundred were no longer.
    pub p99: Duration,
    /// Grants in a second, from the first asked to the last left.
    pub rate: f64,
}

impl Stats {
    /// The figures of these visits; none when there are none.
    pub fn of<'a>(visits: impl Iterator<Item = &'a Visit> + Clone) -> Option<Stats> {
        let mut waits: Vec<u64> =
            visits.clone().map(|visit| visit.got.saturating_sub(visit.asked)).collect();
        waits.sort_unstable();
        let from = visits.clone().map(|visit| visit.asked).min()?;
        let to = visits.map(|visit| visit.left).max()?;
        let seconds = to.saturating_sub(from).max(1) as f64 / 1e6;
        Some(Stats {
            p50: Duration::from_micros(rank(&waits, 50)),
            p99: Duration::from_micros(rank(&waits, 99)),
            rate: waits.len() as f64 / seconds,
        })
    }
}

/// The smallest value that `percent` of the sorted values do not exceed.
fn rank(sorted: &[u64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
mod tests;
