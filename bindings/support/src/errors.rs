//! The table of errors, the same in every language.

use crate::ErrorKind;

/// What a host's documentation and tests say of a kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kind.
    pub kind: ErrorKind,
    /// Its fixed number; 0 is no error's.
    pub code: u8,
    /// Its fixed name, in snake case.
    pub name: &'static str,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    /// What it means.
    pub meaning: &'static str,
}

/// Every kind, in the order of its number.
pub fn table() -> impl Iterator<Item = Row> {
    ErrorKind::ALL.into_iter().map(|kind| Row {
        kind,
        code: kind.code(),
        name: kind.name(),
        retryable: kind.is_retryable(),
        meaning: meaning(kind),
    })
}

/// What a kind of error means, in one sentence.
pub fn meaning(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Contended => {
            "others have the lock or its permits, or wait for them, and the call did not want to wait"
        }
        ErrorKind::TimedOut => {
            "others had the lock or its permits until the wait's bound had passed"
        }
        ErrorKind::Cancelled => "the wait was cancelled by its caller",
        ErrorKind::Unavailable => "the store could not be reached, or did not answer in time",
        ErrorKind::Lost => "the hold ended before its release: its lease ran out, or it was broken",
        ErrorKind::NotHeld => {
            "the caller does not hold the lock or permits, or has released them before"
        }
        ErrorKind::Misconfigured => {
            "the store refuses until somebody mends something: a permission, a name used in two ways, numbers of permits that differ"
        }
        ErrorKind::InvalidArgument => "an argument is out of its range",
        ErrorKind::Unsupported => "the store, or this version, cannot do what was asked",
        ErrorKind::Closed => "the client is closed, or belongs to the process that forked this one",
        ErrorKind::WouldDeadlock => {
            "the owner has the lock shared already and wants it for itself: it would wait for its own hold"
        }
        _ => "an error that this version's table does not know",
    }
}
