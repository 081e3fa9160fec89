//! The holder's clock: monotonic, and counting the time during which the host was suspended.

use fencelock_engine::Time;

/// Reads the clock.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn now() -> Time {
    unix(rustix::time::ClockId::Boottime)
}

/// Reads the clock. On Apple's systems the monotonic clock goes on while the machine sleeps.
#[cfg(target_vendor = "apple")]
pub(crate) fn now() -> Time {
    unix(rustix::time::ClockId::Monotonic)
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn unix(clock: rustix::time::ClockId) -> Time {
    let read = rustix::time::clock_gettime(clock);
    Time::from_nanos(read.tv_sec as u64 * 1_000_000_000 + read.tv_nsec as u64)
}

/// Reads the clock. On Windows the performance counter behind [`std::time::Instant`] goes on while
/// the machine sleeps; elsewhere this is the best there is.
#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
pub(crate) fn now() -> Time {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    let passed = ORIGIN.get_or_init(Instant::now).elapsed();
    Time::from_nanos(u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX))
}
