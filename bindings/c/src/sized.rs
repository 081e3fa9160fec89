//! Structures that can grow: each begins with its size as its user's header has it.

use std::mem::{MaybeUninit, size_of};

use crate::failure::{Failure, invalid};

/// No structure will ever be larger: a size beyond it was never set.
const LIMIT: usize = 4096;

/// A structure whose first field is its size.
///
/// # Safety
/// It is `repr(C)`, its first field is a `usize`, and zeros in all bytes are a value of it.
pub(crate) unsafe trait Growing: Copy {
    /// All zeros.
    fn empty() -> Self {
        // SAFETY: such a value may be all zeros.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

/// Reads what a caller filled in. A field that its header did not have yet is zero; one that this
/// library does not know yet must be.
///
/// # Safety
/// `from` is NULL, or points to as many bytes as its first field says.
pub(crate) unsafe fn read<T: Growing>(from: *const T) -> Result<Option<T>, Failure> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's word.
    let size = unsafe { size_at(from)? };
    let mut value = T::empty();
    let known = size.min(size_of::<T>());
    // SAFETY: so many bytes are there on both sides; the fields are such that any bytes will do.
    unsafe {
        std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut value).cast::<u8>(), known);
    }
    for index in known..size {
        // SAFETY: within the bytes that the caller spoke of.
        if unsafe { from.cast::<u8>().add(index).read() } != 0 {
            return Err(invalid(
                "a structure has a field that this version of the library does not know: use the \
                 header that belongs to it, or a newer library",
            )
            .into());
        }
    }
    Ok(Some(value))
}

/// Fills in what the caller's header has of a structure; the size stays as the caller set it.
///
/// # Safety
/// As [`read`], and the bytes may be written.
pub(crate) unsafe fn fill<T: Growing>(place: *mut T, value: T) -> Result<(), Failure> {
    if place.is_null() {
        return Err(crate::failure::null("the structure"));
    }
    // SAFETY: the caller's word.
    let size = unsafe { size_at(place)? };
    let head = size_of::<usize>();
    let known = size.min(size_of::<T>());
    // SAFETY: so many bytes are there on both sides.
    unsafe {
        let (from, to) = ((&raw const value).cast::<u8>(), place.cast::<u8>());
        std::ptr::copy_nonoverlapping(from.add(head), to.add(head), known - head);
        if size > known {
            to.add(known).write_bytes(0, size - known);
        }
    }
    Ok(())
}

/// # Safety
/// `from` points to a size.
unsafe fn size_at<T>(from: *const T) -> Result<usize, Failure> {
    // SAFETY: the caller's word.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    if size < 2 * size_of::<usize>() || size > LIMIT {
        return Err(invalid(format!(
            "the structure's size is {size}: set its first field to its sizeof"
        ))
        .into());
    }
    Ok(size)
}

#[cfg(test)]
mod tests;
