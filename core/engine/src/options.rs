//! The numbers of the protocol, all of them options.

use std::time::Duration;

use crate::error::{Error, ErrorKind};

/// The shortest lease that leaves room for renewal on a busy machine.
pub const MIN_LEASE: Duration = Duration::from_millis(100);
/// The longest lease.
pub const MAX_LEASE: Duration = Duration::from_secs(7 * 24 * 3600);
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
    /// How many local hand-offs in a row while another client waits. Default 64; 0 turns local
    /// hand-off off.
    pub local_run_grants: u32,
    /// How long a local run may last while another client waits. Default 10 ms.
    pub local_run_time: Duration,
    /// How long a request may go unanswered before the connection is given up; also the bound of
    /// a try and of a release, which have no other. Default 3 s.
    pub request_timeout: Duration,
    /// How many waiters one client may have. More are refused. Default 1,000,000.
    pub max_waiters: usize,
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
            local_run_grants: 64,
            local_run_time: Duration::from_millis(10),
            request_timeout: Duration::from_secs(3),
            max_waiters: 1_000_000,
            keeping: Keeping::Leases,
        }
    }
}

impl Options {
    /// How often a client that waits shows itself: a third of the claim.
    pub fn heartbeat(&self) -> Duration {
        self.claim / 3
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] names the first option that is out of its range.
    pub fn check(&self) -> Result<(), Error> {
        check_lease(self.lease)?;
        let wrong = if self.claim < MIN_LEASE || self.claim > Duration::from_secs(60) {
            "claim must lie between 100 ms and 60 s"
        } else if self.request_timeout < Duration::from_millis(10) {
            "request_timeout must be at least 10 ms"
        } else if self.max_waiters == 0 {
            "max_waiters must be at least 1"
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, wrong))
    }
}

/// Checks that a lease lies within its range.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when it does not.
pub fn check_lease(lease: Duration) -> Result<(), Error> {
    if lease < MIN_LEASE || lease > MAX_LEASE {
        return Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("a lease must lie between 100 ms and 7 days; this one is {lease:?}"),
        ));
    }
    Ok(())
}
