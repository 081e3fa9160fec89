//! What goes wrong, as the host's exceptions.

use std::fmt;

use fencelock_support::errors::meaning;
use fencelock_support::{Error, ErrorKind as Kind};

/// One list for the exceptions and for the kinds, so that neither has one more than the other.
macro_rules! errors {
    ($($(#[doc = $doc:literal])+ $name:ident = $code:tt,)+) => {
        /// What went wrong. The message says what happened and what to do; the numbers are the same
        /// in every language.
        #[derive(Clone, Debug, PartialEq, Eq, uniffi::Error)]
        #[uniffi(flat_error)]
        pub enum FencelockError {
            $($(#[doc = $doc])+ $name(String),)+
        }

        /// The kinds of errors, with their fixed numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
        #[repr(u8)]
        pub enum ErrorKind {
            $($(#[doc = $doc])+ $name = $code,)+
        }

        impl FencelockError {
            /// Its kind, and its message.
            pub fn parts(&self) -> (ErrorKind, &str) {
                match self {
                    $(FencelockError::$name(message) => (ErrorKind::$name, message),)+
                }
            }

            fn new(kind: ErrorKind, message: String) -> FencelockError {
                match kind {
                    $(ErrorKind::$name => FencelockError::$name(message),)+
                }
            }
        }
    };
}

errors! {
    /// 1: others have the lock or its permits, or wait for them, and the call did not want to wait. The
    /// same call may succeed later.
    Contended = 1,
    /// 2: others had the lock or its permits until the wait's bound had passed. The same call may succeed
    /// later.
    TimedOut = 2,
    /// 3: the wait was cancelled by its caller; nothing is held, and nobody queued.
    Cancelled = 3,
    /// 4: the store could not be reached, or did not answer in time. The same call may succeed later.
    Unavailable = 4,
    /// 5: the hold ended before its release: what was done under it may have overlapped.
    Lost = 5,
    /// 6: the caller does not hold the lock or permits, or has released them before.
    NotHeld = 6,
    /// 7: the store refuses until somebody mends something: password, permission, a key of another type,
    /// a name used in two ways, numbers of permits that differ.
    Misconfigured = 7,
    /// 8: an argument is out of its range.
    InvalidArgument = 8,
    /// 9: the store, or this version, cannot do what was asked.
    Unsupported = 9,
    /// 10: the client is closed, or belongs to the process that forked this one.
    Closed = 10,
    /// 11: the owner has the lock shared already and wants it for itself: it would wait for its own
    /// hold.
    WouldDeadlock = 11,
    /// 100: a defect of Fencelock's own; please report it.
    Internal = 100,
}

/// What is fixed about a kind of error.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct ErrorFacts {
    /// Its number, the same in every language.
    pub code: u8,
    /// Its name in snake case.
    pub name: String,
    /// Whether the same call may succeed later without anybody changing anything.
    pub retryable: bool,
    /// What it means, in a sentence.
    pub meaning: String,
}

/// What is fixed about a kind of error.
#[uniffi::export]
pub fn error_facts(kind: ErrorKind) -> ErrorFacts {
    let known = Kind::ALL.into_iter().find(|known| known.code() == kind as u8);
    let (name, retryable, meaning) = match known {
        Some(known) => (known.name(), known.is_retryable(), meaning(known)),
        None => ("internal", false, "a defect of Fencelock's own; please report it"),
    };
    ErrorFacts { code: kind as u8, name: name.to_owned(), retryable, meaning: meaning.to_owned() }
}

impl fmt::Display for FencelockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.parts().1)
    }
}

impl std::error::Error for FencelockError {}

impl From<Error> for FencelockError {
    fn from(error: Error) -> FencelockError {
        let kind = match error.kind() {
            Kind::Contended => ErrorKind::Contended,
            Kind::TimedOut => ErrorKind::TimedOut,
            Kind::Cancelled => ErrorKind::Cancelled,
            Kind::Unavailable => ErrorKind::Unavailable,
            Kind::Lost => ErrorKind::Lost,
            Kind::NotHeld => ErrorKind::NotHeld,
            Kind::Misconfigured => ErrorKind::Misconfigured,
            Kind::InvalidArgument => ErrorKind::InvalidArgument,
            Kind::Unsupported => ErrorKind::Unsupported,
            Kind::Closed => ErrorKind::Closed,
            Kind::WouldDeadlock => ErrorKind::WouldDeadlock,
            // A kind that is newer than this crate.
            _ => ErrorKind::Internal,
        };
        FencelockError::new(kind, error.message().to_owned())
    }
}

/// What an exported call gives.
pub(crate) type Result<T> = std::result::Result<T, FencelockError>;

pub(crate) fn invalid(message: impl Into<String>) -> FencelockError {
    FencelockError::InvalidArgument(message.into())
}
