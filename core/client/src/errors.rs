//! Errors that the client itself gives, each said in one place.

use fencelock_engine::Outcome;

use crate::{Error, ErrorKind};

pub(crate) fn forked() -> Error {
    Error::new(
        ErrorKind::Closed,
        "this client belongs to the parent process: after a fork, connect a new one",
    )
}

pub(crate) fn draining() -> Error {
    Error::new(
        ErrorKind::Closed,
        "this client is closing: it lets go on what holds or waits, and takes nothing new",
    )
}

/// What a cancelled wait ends with.
pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the wait was cancelled")
}

pub(crate) fn no_runtime() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "the async client must be connected in a tokio runtime; without one, use \
         fencelock::blocking",
    )
}

pub(crate) fn unexpected(outcome: &Outcome) -> Error {
    debug_assert!(false, "a call ended as {outcome:?}");
    Error::new(ErrorKind::Unavailable, "the call ended in an unexpected way; please report this")
}
