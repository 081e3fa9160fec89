//! Instants of the holder's own clock, and of the store's.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// A reading of the client's monotonic clock, in nanoseconds since an arbitrary origin.
///
/// The engine never reads a clock: whoever drives it passes the reading in. The clock must count
/// the time during which the host was suspended (`CLOCK_BOOTTIME` and its like), otherwise a hold
/// looks valid after a sleep that outlived it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin of the clock.
    pub const ZERO: Time = Time(0);
    /// Later than every instant that can be reached.
    pub const MAX: Time = Time(u64::MAX);

    /// The instant that lies `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time that has passed since `earlier`; zero when `earlier` is the later one.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(nanos(span)))
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(self.0.saturating_sub(nanos(span)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}s", self.0 / 1_000_000_000, self.0 / 1_000 % 1_000_000)
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A span in the stores' unit, whole microseconds, rounded up: a store keeps a lock for at least
/// as long as its holder asked.
pub fn micros_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000)).unwrap_or(u64::MAX)
}
