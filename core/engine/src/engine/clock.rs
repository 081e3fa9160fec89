//! What the client knows of the store's time.

use crate::time::Time;

/// An estimate of the store's clock, from the last reply. It serves only to bound how late a
/// request may take effect, and how fast tokens may be given out; never a hold's validity.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct StoreClock {
    read: u64,
    at: Time,
}

impl StoreClock {
    /// The store said `read` microseconds in a reply that arrived at `at`.
    pub fn learn(&mut self, read: u64, at: Time) {
        *self = StoreClock { read, at };
    }

    /// What the store's clock reads about now, in microseconds.
    pub fn estimate(&self, now: Time) -> u64 {
        let passed = now.since(self.at).as_nanos() / 1_000;
        self.read.saturating_add(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// What it reads at the least, drift allowed for.
    pub fn at_least(&self, now: Time) -> u64 {
        let passed = now.since(self.at).as_nanos() / 1_000;
        let slow = passed - passed / u128::from(crate::validity::DRIFT_RATE);
        self.read.saturating_add(u64::try_from(slow).unwrap_or(u64::MAX))
    }
}
