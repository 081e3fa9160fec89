//! The clocks that a history is stamped with.

use fencelock_history::Record;
use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds of the machine's boot clock, which all of its processes share.
pub fn boot() -> u64 {
    read(ClockId::Boottime)
}

/// Nanoseconds since 1970 by the wall clock.
pub fn wall() -> u64 {
    read(ClockId::Realtime)
}

/// Nanoseconds of the monotonic clock, which stands still while the machine is suspended.
pub fn monotonic() -> u64 {
    read(ClockId::Monotonic)
}

/// A record whose times are of the monotonic clock: not every language can read the boot clock.
pub(crate) fn by_boot(mut record: Record) -> Record {
    let ahead = boot().saturating_sub(monotonic());
    record.at += ahead;
    for (key, value) in &mut record.fields {
        if key == "until"
            && let Ok(until) = value.parse::<u64>()
        {
            *value = (until + ahead).to_string();
        }
    }
    record
}

fn read(clock: ClockId) -> u64 {
    let read = clock_gettime(clock);
    (read.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(read.tv_nsec as u64)
}
