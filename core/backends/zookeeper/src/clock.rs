//! The clock that the machine is told.

use std::time::{SystemTime, UNIX_EPOCH};

use fencelock_engine::Time;

/// A clock that counts the time during which the host was suspended: a session goes on meanwhile.
#[cfg(unix)]
pub(crate) fn now() -> Time {
    // On Apple's systems CLOCK_MONOTONIC goes on while the machine sleeps; on Linux it does not.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let read = rustix::time::clock_gettime(CLOCK);
    let nanos = i128::from(read.tv_sec) * 1_000_000_000 + i128::from(read.tv_nsec);
    Time::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// A clock that counts the time during which the host was suspended: a session goes on meanwhile.
#[cfg(not(unix))]
pub(crate) fn now() -> Time {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}

/// Microseconds since 1970, for people.
pub(crate) fn wall() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_micros()).unwrap_or(u64::MAX)
}
