//! What can go wrong, with numbers that never change.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::text;

/// The kind of an error. The numbers are the same in every language and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum ErrorKind {
    /// Others have the lock or its permits, or wait for them, and the caller did not want to wait.
    Contended = 1,
    /// The wait's bound passed while others held the lock, or before a store that can be reached could
    /// answer: a bound shorter than a round trip.
    TimedOut = 2,
    /// The wait was cancelled by its caller.
    Cancelled = 3,
    /// The store could not be reached, or did not answer, within the call's bound, which left it the
    /// time to.
    Unavailable = 4,
    /// The hold ended before its holder released it: its lease ran out, or it was broken.
    Lost = 5,
    /// The caller does not hold the lock, or released it already.
    NotHeld = 6,
    /// The store refuses until somebody mends something: a password, a permission, a key of another
    /// type, a newer layout, a clock that is far off, a name used as a lock and as a semaphore, numbers of
    /// permits that differ.
    Misconfigured = 7,
    /// An argument is out of its range.
    InvalidArgument = 8,
    /// The store, or this version, cannot do what was asked.
    Unsupported = 9,
    /// The client was closed.
    Closed = 10,
    /// The owner has the lock shared and wants it for itself: it would wait for its own hold.
    WouldDeadlock = 11,
}

impl ErrorKind {
    /// Every kind, in the order of its number.
    pub const ALL: [ErrorKind; 11] = [
        ErrorKind::Contended,
        ErrorKind::TimedOut,
        ErrorKind::Cancelled,
        ErrorKind::Unavailable,
        ErrorKind::Lost,
        ErrorKind::NotHeld,
        ErrorKind::Misconfigured,
        ErrorKind::InvalidArgument,
        ErrorKind::Unsupported,
        ErrorKind::Closed,
        ErrorKind::WouldDeadlock,
    ];

    /// The fixed number of this kind.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The fixed name of this kind, in snake case.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::Contended => "contended",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Lost => "lost",
            ErrorKind::NotHeld => "not_held",
            ErrorKind::Misconfigured => "misconfigured",
            ErrorKind::InvalidArgument => "invalid_argument",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Closed => "closed",
            ErrorKind::WouldDeadlock => "would_deadlock",
        }
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub const fn is_retryable(self) -> bool {
        matches!(self, ErrorKind::Contended | ErrorKind::TimedOut | ErrorKind::Unavailable)
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An error: its kind, and a message that says what happened and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: Arc<str>,
}

impl Error {
    /// An error of `kind` with a message for a person. What would move a terminal's cursor or turn the
    /// line around is escaped ([`text::visible`]): messages name locks, and say what servers said.
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Error {
        let message = message.into();
        let message = match text::visible(&message) {
            Cow::Borrowed(_) => message,
            Cow::Owned(visible) => visible.into(),
        };
        Error { kind, message }
    }

    /// Which kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, and what to do.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later; see [`ErrorKind::is_retryable`].
    pub fn is_retryable(&self) -> bool {
        self.kind.is_retryable()
    }
}
