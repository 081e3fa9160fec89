//! What stands between a caller and the code here: no panic passes, and every failure becomes a
//! status and, when it is wanted, an error object.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fencelock_support::{Error, ErrorKind};

use crate::error::ErrorObject;
use crate::kinds::{Kind, fencelock_error};
use crate::status::{FENCELOCK_INTERNAL, FENCELOCK_OK, fencelock_status};

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

    /// The handle of an error object; NULL when there is no room for it.
    pub(crate) fn object(self) -> *mut fencelock_error {
        fencelock_error::make(ErrorObject::new(self)).unwrap_or(std::ptr::null_mut())
    }
}

/// An argument that cannot be.
pub(crate) fn invalid(message: impl Into<std::sync::Arc<str>>) -> Error {
    Error::new(ErrorKind::InvalidArgument, message)
}

/// Runs the body of an export. Clears `*error`, and sets it when the body fails.
///
/// # Safety
/// `error` is NULL, or a handle may be written there.
pub(crate) unsafe fn run(
    error: *mut *mut fencelock_error,
    body: impl FnOnce() -> Result<(), Failure>,
) -> fencelock_status {
    if !error.is_null() {
        // SAFETY: the caller's word.
        unsafe { error.write_unaligned(std::ptr::null_mut()) };
    }
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return FENCELOCK_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => Failure::Internal(words(&*panic)),
    };
    let status = failure.status();
    if !error.is_null()
        && let Ok(object) = catch_unwind(AssertUnwindSafe(|| failure.object()))
    {
        // SAFETY: the caller's word.
        unsafe { error.write_unaligned(object) };
    }
    status
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().copied();
    let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a bug in fencelock, please report it: {}", words.unwrap_or("a panic without words"))
}

/// Gives a value through an out parameter.
///
/// # Safety
/// `place` is NULL, or a `T` may be written there.
pub(crate) unsafe fn give<T>(place: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's word.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Clears an out parameter that is needed, before the work is done.
///
/// # Safety
/// As [`give`].
pub(crate) unsafe fn want<T>(place: *mut *mut T, what: &str) -> Result<(), Failure> {
    // SAFETY: the caller's word.
    unsafe { give(place, what, std::ptr::null_mut()) }
}

pub(crate) fn null(what: &str) -> Failure {
    invalid(format!("{what} is NULL: a place for the result is needed")).into()
}

/// The body of an export: `call!(error, { … })`, or without an error object `call!({ … })`.
macro_rules! call {
    ($error:expr, $body:block) => {{
        // SAFETY: callers keep to the header: a pointer is NULL, or points to what its type says and
        // stays there during the call.
        unsafe {
            crate::boundary::run($error, || {
                #[allow(unused_unsafe)]
                $body
                #[allow(unreachable_code)]
                Ok(())
            })
        }
    }};
    ($body:block) => {
        call!(std::ptr::null_mut(), $body)
    };
}
pub(crate) use call;

#[cfg(test)]
mod tests;
