//! What the machine must be told once.

use core::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::options::{MAX_LEASE, MIN_LEASE, Options};
use crate::validity::Drift;

/// The most servers: a vote of each is asked for at every acquire.
const MOST: usize = 31;

/// What the machine must be told once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The servers, in the order that all clients have them in; what they are called in messages. It is
    /// the list of the URL, sorted, whether or not they answer.
    pub servers: Vec<String>,
    /// The longest lease, and how long a server whose memory is new gives no vote.
    pub max_lease: Duration,
    /// The engine's option.
    pub request_timeout: Duration,
    /// The engine's option.
    pub claim: Duration,
    /// How long a record is kept that has nothing to tell.
    pub retention: Duration,
    /// The engine's option. Of servers that do not take over from each other nothing is to be taken off.
    pub clock_slack: Duration,
}

impl Config {
    /// For the servers, and the engine's options.
    pub fn new(servers: Vec<String>, options: &Options) -> Config {
        Config {
            servers,
            max_lease: options.max_lease,
            request_timeout: options.request_timeout,
            claim: options.claim,
            retention: options.retention,
            clock_slack: options.clock_slack,
        }
    }

    /// How many votes a hold takes.
    pub fn quorum(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    /// What is taken off the validity of a vote.
    pub fn drift(&self) -> Drift {
        Drift { slack: self.clock_slack }
    }

    /// Checks the list and the numbers.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] says what is wrong.
    pub fn check(&self) -> Result<(), Error> {
        let all = self.servers.len();
        let mut names = self.servers.clone();
        names.sort();
        names.dedup();
        let wrong = if all < 3 {
            format!("a quorum has at least 3 servers, not {all}: two outvote nobody")
        } else if all > MOST {
            format!("a quorum has at most {MOST} servers, not {all}")
        } else if names.len() < all {
            "a server is in the list twice: it would have two votes".to_owned()
        } else if self.max_lease < MIN_LEASE || self.max_lease > MAX_LEASE {
            "max_lease must lie between 100 ms and 7 days".to_owned()
        } else if self.claim > self.max_lease {
            "claim must not be above max_lease".to_owned()
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, wrong))
    }
}
