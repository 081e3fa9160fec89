//! Locks.

use std::ffi::{c_char, c_void};
use std::sync::Arc;

use fencelock_support::{Entries, Lock};

use crate::boundary::{call, give, want};
use crate::callback::{fencelock_callback, start};
use crate::completion::Outcome;
use crate::kinds::{Kind, Number, fencelock_client, fencelock_error, fencelock_lock, kind};
use crate::status::fencelock_status;
use crate::string::{Text, fencelock_string};
use crate::text;

/// What a handle of a lock names.
pub struct LockObject {
    pub(crate) lock: Lock,
    pub(crate) entries: Arc<Entries>,
    name: Text,
}

kind!(fencelock_lock: Number::Lock, "lock", LockObject);

impl LockObject {
    pub(crate) fn new(lock: Lock) -> LockObject {
        LockObject { name: Text::new(lock.name()), lock, entries: Arc::new(Entries::new()) }
    }
}

/// The lock `name` of a client's store. Asks the store nothing.
///
/// INVALID_ARGUMENT unless the name has 1 to 512 bytes of UTF-8 without NUL. On ZooKeeper names are
/// paths (see fencelock_capabilities): one with an empty part, or a part `.` or `..`, is refused, too;
/// and when a lock lies below another, acquiring it is MISCONFIGURED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_lock(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    lock: *mut *mut fencelock_lock,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(lock, "lock")?;
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?;
        give(lock, "lock", fencelock_lock::make(LockObject::new(client.lock(name)?))?)?;
    })
}

/// The name of a lock. Valid until the lock is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_name(
    lock: *const fencelock_lock,
    name: *mut fencelock_string,
) -> fencelock_status {
    call!({
        give(name, "name", fencelock_lock::get(lock)?.name.borrow())?;
    })
}

/// Whether anybody holds the lock, a reader too, by the store's word at the time of asking: good for
/// display, never for a decision.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_is_locked(
    lock: *mut fencelock_lock,
    locked: *mut bool,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(locked, "locked", false)?;
        let lock = fencelock_lock::get(lock)?;
        give(locked, "locked", lock.lock.is_locked()?)?;
    })
}

/// As fencelock_lock_is_locked(), without blocking. The completion's number is 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_is_locked_async(
    lock: *mut fencelock_lock,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = fencelock_lock::get(lock)?;
        let none = std::ptr::null_mut();
        start(none, callback, user_data, std::ptr::null_mut(), |done| {
            let locked = |locked: bool| Outcome::Number(locked.into());
            Ok(Some(lock.lock.is_locked_async(move |result| done(result.map(locked)))))
        })?;
    })
}

/// Frees a lock's handle. Holds go on; what was entered and not left is released in the background,
/// and who still waits to enter ends with CANCELLED at once. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_free(lock: *mut fencelock_lock) -> fencelock_status {
    call!({
        // Who waits to enter keeps the entries, and may wait for one of them.
        if let Ok(lock) = fencelock_lock::get(lock) {
            lock.entries.end();
        }
        fencelock_lock::free(lock)?;
    })
}
