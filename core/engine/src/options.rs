//! The numbers of the protocol, all of them options.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::validity::Drift;

/// The shortest lease that leaves room for renewal on a busy machine.
pub const MIN_LEASE: Duration = Duration::from_millis(100);
/// The longest lease.
pub const MAX_LEASE: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long an idle record is kept unless asked otherwise.
pub const RETENTION: Duration = Duration::from_secs(60);
/// The longest retention; what has something to tell is kept for so long.
pub const MAX_RETENTION: Duration = Duration::from_secs(24 * 3600);
/// Tokens reserved with a grant. The script constant of the same value is in the layout.
pub const TOKEN_BLOCK: u64 = 1024;

/// What a client counts with. The defaults suit a store in the same region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Of a hold without an explicit lease; renewed at a third of it. Default 30 s.
    pub lease: Duration,
    /// Of a hold given by hand-off, until its holder is heard from; never above the hold's own
    /// lease. Waiters show themselves each third of it. Default 3 s.
    pub claim: Duration,
    /// With so many waiters ahead of it at the store, a waiter shows itself half as often, with twice
    /// as many a third as often, and so on; it may be silent for longer in the same measure. So
    /// those who only wait cost the store little, however many they are. Default 128, at least 1.
    pub crowd: u32,
    /// How many local hand-offs in a row while another client waits. Default 64; 0 turns local
    /// hand-off off.
    pub local_run_grants: u32,
    /// How long a local run may last while another client waits: grants begin only within it, and
    /// callers that came later than that client's have a part in it only while holds are so short
    /// that it can be expected to end in time. Default 10 ms.
    pub local_run_time: Duration,
    /// How long the store may be silent, while it owes an answer, before the connection is doubted:
    /// the transport then looks whether another one is answered. A connection that was slow of late
    /// is given longer. Also the bound of a try and of a release, which have no other. Default 3 s.
    pub request_timeout: Duration,
    /// How long a store keeps the record of a lock that was released and has nothing to tell: the
    /// next holder after it is told that it is unknown how the one before ended. At least twice the
    /// claim, and more than the store's clock may ever be set back, or the clocks of the servers that
    /// take over from each other differ: tokens stay in order by it. Up to a day, default 60 s.
    pub retention: Duration,
    /// How many waiters one client may have. More are refused. Default 1,000,000.
    pub max_waiters: usize,
    /// Taken off every validity beside drift, where another server may take over whose clock is ahead by
    /// so much. Leases are at least ten times it. Default 0: one server keeps the lock.
    pub clock_slack: Duration,
    /// The longest lease. Default 7 days, which is the most; 60 s on a quorum, whose servers give no vote
    /// for so long when their memory is new.
    pub max_lease: Duration,
    /// A grant that the store tells of unasked counts only once it has been asked for: the store may
    /// forget what its replicas have not confirmed, and confirms what it answers. Default false.
    pub confirm_grants: bool,
    /// How the store keeps holds. Follows from the store, not from taste.
    pub keeping: Keeping,
}

/// How a store keeps a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Keeping {
    /// For a lease of its own. Tokens keep pace with the store's clock, and holders are told when
    /// another client queues.
    #[default]
    Leases,
    /// For as long as the client's session lives, whatever lease was asked for. A block of tokens
    /// is never extended, and nobody tells a holder of waiters: it looks before each local run.
    Session,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            lease: Duration::from_secs(30),
            claim: Duration::from_secs(3),
            crowd: 128,
            local_run_grants: 64,
            local_run_time: Duration::from_millis(10),
            request_timeout: Duration::from_secs(3),
            retention: RETENTION,
            max_waiters: 1_000_000,
            clock_slack: Duration::ZERO,
            max_lease: MAX_LEASE,
            confirm_grants: false,
            keeping: Keeping::Leases,
        }
    }
}

impl Options {
    /// How often a client that waits shows itself when nobody is ahead of it: a third of the claim.
    pub fn heartbeat(&self) -> Duration {
        self.claim / 3
    }

    /// A waiter's `span`, made longer by the number of waiters ahead of it.
    pub fn stretched(&self, span: Duration, ahead: u32) -> Duration {
        span.saturating_add(span.saturating_mul(ahead) / self.crowd)
    }

    /// What is taken off every lease.
    pub fn drift(&self) -> Drift {
        let slack = if planted!(SlackIgnored) { Duration::ZERO } else { self.clock_slack };
        Drift { slack }
    }

    /// Checks that a lease lies within its range.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it does not.
    pub fn check_lease(&self, lease: Duration) -> Result<(), Error> {
        let least = MIN_LEASE.max(self.clock_slack.saturating_mul(10));
        if lease < least || lease > self.max_lease {
            let why = match self.clock_slack.is_zero() {
                true => String::new(),
                false => format!(" (ten times clock_slack, {:?})", self.clock_slack),
            };
            let least = least.as_millis();
            let most = match self.max_lease {
                MAX_LEASE => "7 days".to_owned(),
                less => format!("max_lease, {less:?}"),
            };
            let text = format!(
                "a lease must lie between {least} ms{why} and {most}; this one is {lease:?}"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, text));
        }
        Ok(())
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] names the first option that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        self.check_lease(self.lease)?;
        let wrong = if self.clock_slack > Duration::from_secs(60) {
            "clock_slack must be at most 60 s"
        } else if self.claim < self.clock_slack * 10 {
            "claim must be at least ten times clock_slack, which is 100 ms where servers take over \
             from each other, unless it is set"
        } else if self.max_lease > MAX_LEASE || self.claim > self.max_lease {
            "max_lease must be at most 7 days, and not below the claim"
        } else if self.claim < MIN_LEASE || self.claim > Duration::from_secs(60) {
            "claim must lie between 100 ms and 60 s"
        } else if self.request_timeout < Duration::from_millis(10) {
            "request_timeout must be at least 10 ms"
        } else if self.retention < self.claim * 2 || self.retention > MAX_RETENTION {
            "retention must be at least twice the claim, and at most 24 h"
        } else if self.crowd == 0 {
            "crowd must be at least 1"
        } else if self.max_waiters == 0 {
            "max_waiters must be at least 1"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, wrong))
    }
}

/// What a client's URL may say of the client itself, on every store: for messages that name a store's own.
pub const CLIENT_PARAMETERS: &str =
    "lease, claim, request_timeout, connect_timeout, retention, clock_slack and label";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_twice_the_claim_at_least_and_a_day_at_most() {
        let claim = Duration::from_secs(3);
        let short = Duration::from_nanos(1);
        let with = |retention| Options { claim, retention, ..Options::default() };
        for retention in [claim * 2, RETENTION, MAX_RETENTION] {
            assert_eq!(with(retention).check(), Ok(()), "{retention:?}");
        }
        for retention in [Duration::ZERO, claim * 2 - short, MAX_RETENTION + short] {
            let error = with(retention).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{retention:?}");
            assert!(error.to_string().contains("retention must be"), "{error}");
        }
    }

    #[test]
    fn a_lease_is_no_longer_than_the_longest() {
        let max_lease = Duration::from_secs(60);
        let options = Options { max_lease, ..Options::default() };
        assert_eq!(options.check_lease(max_lease), Ok(()));
        let error = options.check_lease(max_lease + Duration::from_nanos(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("max_lease, 60s"), "{error}");
        assert!(Options { max_lease: options.claim / 2, ..options }.check().is_err());
    }

    #[test]
    fn those_far_back_show_themselves_seldom() {
        let options = Options { crowd: 4, ..Options::default() };
        let span = options.heartbeat();
        for (ahead, times) in [(0, 1), (4, 2), (8, 3), (400, 101)] {
            assert_eq!(options.stretched(span, ahead), span * times, "{ahead} ahead");
        }
        assert!(Options { crowd: 0, ..Options::default() }.check().is_err());
    }
}
