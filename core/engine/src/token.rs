//! Fencing tokens.

use std::fmt;

/// A fencing token: strictly greater than that of every earlier grant of the same lock.
///
/// Send it along with every write to the protected resource, and let the resource refuse a token
/// below the highest that it has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Token(pub u64);

impl Token {
    /// The token as a number; below 2^53 on stores that allow it.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The largest store time, in microseconds, at which tokens still leave room below 2^53.
pub const MAX_STORE_TIME: u64 = (1 << 53) - (1 << 40);
