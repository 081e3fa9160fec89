//! The store's time.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The store's time in microseconds: a clock that counts suspension and never steps, moved once
/// per process to the magnitude of the wall clock, so that tokens look like those of other stores.
pub(crate) fn now() -> u64 {
    static AHEAD: OnceLock<u64> = OnceLock::new();
    let steady = steady();
    let ahead = *AHEAD.get_or_init(|| {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(wall.as_micros()).unwrap_or(0).saturating_sub(steady)
    });
    steady + ahead
}

#[cfg(unix)]
fn steady() -> u64 {
    // On Apple's systems CLOCK_MONOTONIC goes on while the machine sleeps; on Linux it does not.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
    let read = rustix::time::clock_gettime(CLOCK);
    let micros = read.tv_sec as i128 * 1_000_000 + read.tv_nsec as i128 / 1_000;
    u64::try_from(micros).unwrap_or(0)
}

#[cfg(not(unix))]
fn steady() -> u64 {
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_micros()).unwrap_or(u64::MAX)
}
