//! What stands between a caller and the code here: no panic passes, and every failure becomes a
//! status and, when it is wanted, an error object.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error_object::object;
use crate::failure::{Failure, null};
use crate::kinds::fencelock_error;
use crate::status::{FENCELOCK_OK, fencelock_status};

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
        && let Ok(object) = catch_unwind(AssertUnwindSafe(|| object(failure)))
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
