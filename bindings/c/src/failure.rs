//! Why a call failed, before it is a status and a handle.

use fencelock_support::{Error, ErrorKind};

use crate::status::{FENCELOCK_INTERNAL, fencelock_status};

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Error(Error),
    Internal(String),
}

/// A bug, in words.
pub(crate) struct Internal(pub(crate) &'static str);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

impl From<Internal> for Failure {
    fn from(bug: Internal) -> Failure {
        Failure::Internal(bug.0.to_owned())
    }
}

impl Failure {
    pub(crate) fn status(&self) -> fencelock_status {
        match self {
            Failure::Error(error) => error.kind().code().into(),
            Failure::Internal(_) => FENCELOCK_INTERNAL,
        }
    }
}

/// An argument that cannot be.
pub(crate) fn invalid(message: impl Into<std::sync::Arc<str>>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// A missing place for a result.
pub(crate) fn null(what: &str) -> Failure {
    invalid(format!("{what} is NULL: a place for the result is needed")).into()
}
