//! Text on its way in and out.

use std::ffi::{CStr, c_char};

use crate::boundary::{call, give};
use crate::failure::{Failure, invalid};
use crate::kinds::{Kind, fencelock_text};
use crate::status::fencelock_status;
use crate::string::fencelock_string;

/// Says that a text ends with NUL.
const NTS: usize = usize::MAX;

/// No text that is passed in may be longer, in bytes: a length beyond it was never meant.
const LIMIT: usize = 1 << 20;

/// Reads a text; `None` for NULL.
///
/// # Safety
/// `data` is NULL, or points to `length` bytes, or to a text that ends with NUL if `length` says so.
/// They stay as they are as long as the result is used.
pub(crate) unsafe fn read<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<Option<&'a str>, Failure> {
    if data.is_null() {
        return match length {
            0 | NTS => Ok(None),
            _ => Err(invalid(format!("the {what} is NULL, but its length is {length}")).into()),
        };
    }
    let bytes = if length == NTS {
        // SAFETY: the caller's word.
        unsafe { CStr::from_ptr(data) }.to_bytes()
    } else if length > LIMIT {
        return Err(invalid(format!("the {what} has {length} bytes: that cannot be")).into());
    } else {
        // SAFETY: the caller's word.
        unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) }
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Some(text)),
        Err(error) => Err(invalid(format!("the {what} is not UTF-8: {error}")).into()),
    }
}

/// Reads a text that must be there.
///
/// # Safety
/// As [`read`].
pub(crate) unsafe fn need<'a>(
    data: *const c_char,
    length: usize,
    what: &str,
) -> Result<&'a str, Failure> {
    // SAFETY: the caller's word.
    match unsafe { read(data, length, what)? } {
        Some(text) => Ok(text),
        None => Err(invalid(format!("the {what} is NULL")).into()),
    }
}

/// Reads a text. Valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_text_get(
    text: *const fencelock_text,
    string: *mut fencelock_string,
) -> fencelock_status {
    call!({
        let text = fencelock_text::get(text)?;
        give(string, "string", text.borrow())?;
    })
}

/// Frees a text. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_text_free(text: *mut fencelock_text) -> fencelock_status {
    call!({
        fencelock_text::free(text)?;
    })
}

#[cfg(test)]
mod tests;
