//! How long a holder may trust its hold by its own clock.

use std::time::Duration;

use crate::time::Time;

/// The fixed part of the drift that is taken off every validity.
pub const DRIFT_FIXED: Duration = Duration::from_millis(10);
/// The proportional part: one in so many.
pub const DRIFT_RATE: u32 = 100;

/// What is taken off every lease: 1 % and 10 ms, and the slack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Drift {
    /// How far apart the clocks of servers may be that take over from each other.
    pub slack: Duration,
}

impl Drift {
    fn fixed(self) -> Duration {
        DRIFT_FIXED + self.slack
    }

    /// What is left of a lease; never below zero.
    pub fn margin(self, lease: Duration) -> Duration {
        lease.saturating_sub(lease / DRIFT_RATE).saturating_sub(self.fixed())
    }

    /// The instant until which a hold is valid whose answered request left at `sent` asking `lease`.
    pub fn until(self, sent: Time, lease: Duration) -> Time {
        sent + self.margin(lease)
    }

    /// The lease of which `span` is left.
    pub fn lease_for(self, span: Duration) -> Duration {
        let grown = span.saturating_add(self.fixed());
        grown.saturating_add(grown / (DRIFT_RATE - 1)).saturating_add(Duration::from_micros(1))
    }
}

/// What is left of a lease where one server alone keeps it.
pub fn margin(lease: Duration) -> Duration {
    Drift::default().margin(lease)
}

/// Until when a hold is valid that one server alone keeps.
pub fn valid_until(sent: Time, lease: Duration) -> Time {
    Drift::default().until(sent, lease)
}
