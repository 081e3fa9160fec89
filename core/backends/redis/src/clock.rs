//! The clock by which votes are valid: it counts the time during which the host was suspended.

use fencelock_engine::time::Time;

/// Reads the clock. On Apple's systems the monotonic clock goes on while the machine sleeps; on Linux it does not.
#[cfg(unix)]
pub(crate) fn now() -> Time {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let read = rustix::time::clock_gettime(CLOCK);
    let nanos = i128::from(read.tv_sec) * 1_000_000_000 + i128::from(read.tv_nsec);
    Time::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// Reads the clock. On Windows the counter behind it goes on while the machine sleeps.
#[cfg(not(unix))]
pub(crate) fn now() -> Time {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    let passed = START.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}
