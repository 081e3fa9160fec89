//! Names of locks.

use crate::boundary::{call, give};
use crate::failure::invalid;
use crate::kinds::{Kind, fencelock_names};
use crate::status::fencelock_status;
use crate::string::fencelock_string;

/// How many names there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_names_count(
    names: *const fencelock_names,
    count: *mut usize,
) -> fencelock_status {
    call!({
        give(count, "count", fencelock_names::get(names)?.len())?;
    })
}

/// One of the names, counted from 0. Valid until they are freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_names_get(
    names: *const fencelock_names,
    index: usize,
    name: *mut fencelock_string,
) -> fencelock_status {
    call!({
        give(name, "name", fencelock_string::NONE)?;
        let names = fencelock_names::get(names)?;
        let Some(found) = names.get(index) else {
            return Err(invalid(format!("there is no name {index}, but {}", names.len())).into());
        };
        give(name, "name", found.borrow())?;
    })
}

/// Frees names. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_names_free(names: *mut fencelock_names) -> fencelock_status {
    call!({
        fencelock_names::free(names)?;
    })
}
