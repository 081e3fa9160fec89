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

    /// The longest lease of which no more than `span` is left.
    pub fn lease_within(self, span: Duration) -> Duration {
        let grown = span.saturating_add(self.fixed());
        let lease = grown.saturating_add(grown / (DRIFT_RATE - 1));
        lease.saturating_sub(Duration::from_nanos(2))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_within_a_span_leaves_all_of_it_and_no_more() {
        for slack in [Duration::ZERO, Duration::from_millis(100)] {
            let drift = Drift { slack };
            for nanos in [0, 1, 98, 99, 100, 12_345_678, 29_690_000_001, 60_000_000_000_017] {
                let span = Duration::from_nanos(nanos);
                let left = drift.margin(drift.lease_within(span));
                assert!(
                    left <= span && span - left < Duration::from_nanos(5),
                    "{span:?}: {left:?}"
                );
            }
        }
    }
}
