//! The machine's clock, which every process of the demo reads alike.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the machine started.
pub fn micros() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000;
    whole + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000
}
