//! How long a holder may trust its hold by its own clock.

use std::time::Duration;

use crate::time::Time;

/// The fixed part of the drift that is taken off every validity.
pub const DRIFT_FIXED: Duration = Duration::from_millis(10);
/// The proportional part: one in so many.
pub const DRIFT_RATE: u32 = 100;

/// What is left of a lease after drift: 1 % and 10 ms less, never below zero.
pub fn margin(lease: Duration) -> Duration {
    lease.saturating_sub(lease / DRIFT_RATE).saturating_sub(DRIFT_FIXED)
}

/// The instant until which a hold is valid whose answered request left at `sent` asking `lease`.
pub fn valid_until(sent: Time, lease: Duration) -> Time {
    sent + margin(lease)
}
