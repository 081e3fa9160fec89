//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// Exponential backoff with jitter, between two bounds.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    attempt: u32,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration) -> Backoff {
        Backoff { min, max: max.max(min), attempt: 0 }
    }

    /// The next pause: between half of the present step and all of it, so that clients which lost
    /// the same server do not come back together. `random` says where in between.
    pub(crate) fn next(&mut self, random: u64) -> Duration {
        let step = self.min.saturating_mul(1 << self.attempt.min(20)).min(self.max);
        self.attempt = self.attempt.saturating_add(1);
        step.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
    }

    pub(crate) fn reset(&mut self) {
        self.attempt = 0;
    }
}
