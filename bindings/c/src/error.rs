//! Errors as objects.

use std::ffi::c_char;

use fencelock_support::errors;

use crate::boundary::call;
use crate::kinds::{Kind, fencelock_error};
use crate::sized::{Growing, fill};
use crate::status::{FENCELOCK_INTERNAL, FENCELOCK_OK, fencelock_status};
use crate::string::fencelock_string;

/// What an error says; see fencelock_error_get().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_error_info {
    /// sizeof(fencelock_error_info); to be set by the caller.
    pub size: usize,
    /// The number that the call returned.
    pub code: fencelock_status,
    /// Whether the same call may succeed later without anybody changing anything.
    pub retryable: bool,
    /// The error's name in every language, such as "timed_out". Never freed.
    pub name: fencelock_string,
    /// What happened and what to do, for a person. Valid until the error is freed.
    pub message: fencelock_string,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_error_info {}

/// Reads an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_error_get(
    error: *const fencelock_error,
    info: *mut fencelock_error_info,
) -> fencelock_status {
    call!({
        let object = fencelock_error::get(error)?;
        let mut full = fencelock_error_info::empty();
        full.code = object.status;
        full.retryable =
            errors::table().any(|row| i32::from(row.code) == object.status && row.retryable);
        full.name = fencelock_string::of(name(object.status));
        full.message = object.message.borrow();
        fill(info, full)?;
    })
}

/// The message of an error, for printing: never NULL, empty when it is no error. Valid until the
/// error is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_error_message(error: *const fencelock_error) -> *const c_char {
    match fencelock_error::get(error) {
        Ok(object) => object.message.borrow().data,
        Err(_) => c"".as_ptr(),
    }
}

/// Frees an error. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_error_free(error: *mut fencelock_error) -> fencelock_status {
    call!({
        fencelock_error::free(error)?;
    })
}

/// The name of a status, such as "timed_out": never NULL, never freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_status_name(status: fencelock_status) -> *const c_char {
    name(status).as_ptr()
}

/// The same names as in every language, each with its NUL.
fn name(status: fencelock_status) -> &'static std::ffi::CStr {
    match status {
        FENCELOCK_OK => c"ok",
        1 => c"contended",
        2 => c"timed_out",
        3 => c"cancelled",
        4 => c"unavailable",
        5 => c"lost",
        6 => c"not_held",
        7 => c"misconfigured",
        8 => c"invalid_argument",
        9 => c"unsupported",
        10 => c"closed",
        11 => c"would_deadlock",
        FENCELOCK_INTERNAL => c"internal",
        _ => c"unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_and_names_are_those_of_every_language() {
        for row in errors::table() {
            assert_eq!(name(row.code.into()).to_str(), Ok(row.name));
        }
        assert_eq!(name(errors::table().count() as i32 + 1), c"unknown", "a name is missing");
    }
}
