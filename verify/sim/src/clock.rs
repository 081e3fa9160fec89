//! True time, and what the clocks of clients and of the store make of it.

use fencelock_engine::Time;

/// An instant of true time, in nanoseconds since the beginning of the run.
pub type Instant = u64;
/// A microsecond.
pub const US: u64 = 1_000;
/// A millisecond.
pub const MS: u64 = 1_000_000;
/// A second.
pub const SEC: u64 = 1_000_000_000;

/// A client's monotonic clock: it counts suspended time, at a rate of its own.
#[derive(Clone, Debug)]
pub struct ClientClock {
    offset: u64,
    ppm: i64,
}

impl ClientClock {
    /// A clock that reads `offset` at the beginning and gains `ppm` microseconds a second.
    pub fn new(offset: u64, ppm: i64) -> ClientClock {
        ClientClock { offset, ppm }
    }

    /// What the clock reads at `at`.
    pub fn read(&self, at: Instant) -> Time {
        Time::from_nanos(self.offset + at.wrapping_add_signed(gain(at, self.ppm)))
    }

    /// The first true instant at which the clock reads `local` or more.
    pub fn when(&self, local: Time) -> Instant {
        let span = i128::from(local.as_nanos()) - i128::from(self.offset);
        if span <= 0 {
            return 0;
        }
        let mut at = (span * 1_000_000 / i128::from(1_000_000 + self.ppm)) as u64;
        at = at.saturating_sub(2);
        while self.read(at) < local {
            at += 1;
        }
        at
    }

    /// Makes the clock jump forward by so many nanoseconds.
    pub fn jump(&mut self, by: u64) {
        self.offset += by;
    }
}

/// The store's clock, in microseconds; it may be stepped.
#[derive(Clone, Debug)]
pub struct StoreClock {
    base: u64,
    ppm: i64,
}

impl StoreClock {
    /// A clock that reads `base` at the beginning.
    pub fn new(base: u64, ppm: i64) -> StoreClock {
        StoreClock { base, ppm }
    }

    /// What the clock reads at `at`.
    pub fn read(&self, at: Instant) -> u64 {
        self.base + at.wrapping_add_signed(gain(at, self.ppm)) / US
    }

    /// Steps the clock.
    pub fn step(&mut self, micros: i64) {
        self.base = self.base.saturating_add_signed(micros);
    }
}

fn gain(at: Instant, ppm: i64) -> i64 {
    // Runs last minutes, so the product stays far below 2^63.
    at as i64 * ppm / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_read_back() {
        for ppm in [-5_000, -17, 0, 4_999] {
            let clock = ClientClock::new(77 * SEC, ppm);
            for at in [0, 1, 999, 12_345_678, 60 * SEC + 7] {
                let local = clock.read(at);
                let back = clock.when(local);
                assert!(back <= at && clock.read(back) >= local, "{ppm} {at} {back}");
            }
        }
    }
}
