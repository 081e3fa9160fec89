//! The clocks that a history is stamped with.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the machine's boot clock, which all of its processes share.
pub fn boot() -> u64 {
    read(ClockId::Boottime)
}

/// Nanoseconds since 1970 by the wall clock.
pub fn wall() -> u64 {
    read(ClockId::Realtime)
}

fn read(clock: ClockId) -> u64 {
    let read = clock_gettime(clock);
    (read.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(read.tv_nsec as u64)
}
