//! What the library is.

use std::ffi::c_char;

use crate::kinds::{
    Kind, fencelock_cancel, fencelock_client, fencelock_error, fencelock_hold,
    fencelock_inspection, fencelock_lock, fencelock_names, fencelock_operation, fencelock_rwlock,
    fencelock_semaphore, fencelock_text,
};

/// The version of the ABI that this header describes: it changes when a program must be compiled
/// anew.
pub const FENCELOCK_ABI_VERSION: u32 = 1;

/// The library's version, such as "0.1.0". Never freed.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// FENCELOCK_ABI_VERSION as the library has it.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_abi_version() -> u32 {
    FENCELOCK_ABI_VERSION
}

/// How many handles of all kinds were made and not freed: for tests that look for leaks.
#[unsafe(no_mangle)]
pub extern "C" fn fencelock_live_handles() -> u64 {
    fn live<K: Kind>() -> u64 {
        K::table().live()
    }
    live::<fencelock_client>()
        + live::<fencelock_lock>()
        + live::<fencelock_rwlock>()
        + live::<fencelock_semaphore>()
        + live::<fencelock_hold>()
        + live::<fencelock_cancel>()
        + live::<fencelock_operation>()
        + live::<fencelock_error>()
        + live::<fencelock_text>()
        + live::<fencelock_names>()
        + live::<fencelock_inspection>()
}
