//! Read-write locks.

use std::ffi::{c_char, c_void};

use fencelock_support::{Lock, RwLock};

use crate::acquire::{acquire, acquire_async, fencelock_acquire_options};
use crate::boundary::{call, give, want};
use crate::callback::fencelock_callback;
use crate::completion::fencelock_completion;
use crate::kinds::{
    Kind, Number, fencelock_client, fencelock_error, fencelock_hold, fencelock_lock,
    fencelock_operation, fencelock_rwlock, kind,
};
use crate::lock::LockObject;
use crate::status::fencelock_status;
use crate::string::{Text, fencelock_string};
use crate::text;

/// What a handle of a read-write lock names.
pub struct RwLockObject {
    reader: Lock,
    writer: Lock,
    name: Text,
}

kind!(fencelock_rwlock: Number::RwLock, "read-write lock", RwLockObject);

impl RwLockObject {
    fn new(lock: &RwLock) -> RwLockObject {
        RwLockObject { reader: lock.reader(), writer: lock.writer(), name: Text::new(lock.name()) }
    }
}

/// The read-write lock `name` of a client's store, which any number of readers hold together, or one
/// writer alone. Asks the store nothing. Writing is holding the lock that fencelock_client_lock() gives
/// for this name: there is one queue for both, first come, first served. So a reader that comes while a
/// writer waits stands behind it, and one that does not want to wait is CONTENDED then.
///
/// An explicit lease ends its reader alone; readers of one client share a hold at the store, and each is told of
/// its loss. A reader's token is greater than every earlier writer's and smaller than every later one's; two
/// readers' tokens say nothing of each other. What the lock protects keeps the greatest token of a writer, w,
/// and of anybody, m: it refuses a write whose token is below m, and a read whose token is below w.
///
/// An owner that reads may read again, past writers that wait. One that writes may write and read
/// again; when its last write has ended, what it reads goes on beside other readers. One that reads and asks
/// to write would wait for its own hold: WOULD_DEADLOCK at once, also for a try; see
/// fencelock_hold_try_upgrade().
///
/// INVALID_ARGUMENT for a name as fencelock_client_lock() says; UNSUPPORTED where the store has none (see
/// fencelock_capabilities).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_rwlock(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    rwlock: *mut *mut fencelock_rwlock,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(rwlock, "rwlock")?;
        let client = fencelock_client::get(client)?;
        let lock = client.rw_lock(text::need(name, name_length, "name")?)?;
        give(rwlock, "rwlock", fencelock_rwlock::make(RwLockObject::new(&lock))?)?;
    })
}

/// The name of a read-write lock. Valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_name(
    rwlock: *const fencelock_rwlock,
    name: *mut fencelock_string,
) -> fencelock_status {
    call!({
        give(name, "name", fencelock_rwlock::get(rwlock)?.name.borrow())?;
    })
}

/// Acquires a read-write lock to read; `options` may be NULL. The hold is released like any other.
///
/// CONTENDED when it did not want to wait, and another writes or waits; otherwise as
/// fencelock_lock_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_acquire_read(
    rwlock: *mut fencelock_rwlock,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        acquire(&fencelock_rwlock::get(rwlock)?.reader, options, hold)?;
    })
}

/// As fencelock_rwlock_acquire_read(), without blocking for longer than block_ns says. The completion has
/// the hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_acquire_read_async(
    rwlock: *mut fencelock_rwlock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = &fencelock_rwlock::get(rwlock)?.reader;
        acquire_async(lock, options, now, callback, user_data, operation)?;
    })
}

/// Acquires a read-write lock to write; `options` may be NULL.
///
/// WOULD_DEADLOCK, at once, when the owner reads, or is let in to read while this waits; otherwise as
/// fencelock_lock_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_acquire_write(
    rwlock: *mut fencelock_rwlock,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        acquire(&fencelock_rwlock::get(rwlock)?.writer, options, hold)?;
    })
}

/// As fencelock_rwlock_acquire_write(), without blocking for longer than block_ns says. The completion has
/// the hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_acquire_write_async(
    rwlock: *mut fencelock_rwlock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = &fencelock_rwlock::get(rwlock)?.writer;
        acquire_async(lock, options, now, callback, user_data, operation)?;
    })
}

/// The side of a read-write lock that reads, as a lock: for fencelock_lock_enter(), and for code that takes
/// any lock. A handle of its own, freed by fencelock_lock_free(); entries belong to it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_reader(
    rwlock: *mut fencelock_rwlock,
    lock: *mut *mut fencelock_lock,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(lock, "lock")?;
        let reader = fencelock_rwlock::get(rwlock)?.reader.clone();
        give(lock, "lock", fencelock_lock::make(LockObject::new(reader))?)?;
    })
}

/// The side of a read-write lock that writes, as fencelock_client_lock() gives it. A handle of its own,
/// freed by fencelock_lock_free().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_writer(
    rwlock: *mut fencelock_rwlock,
    lock: *mut *mut fencelock_lock,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(lock, "lock")?;
        let writer = fencelock_rwlock::get(rwlock)?.writer.clone();
        give(lock, "lock", fencelock_lock::make(LockObject::new(writer))?)?;
    })
}

/// Frees a read-write lock's handle. Holds go on, and so do the handles of its sides. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_rwlock_free(rwlock: *mut fencelock_rwlock) -> fencelock_status {
    call!({
        fencelock_rwlock::free(rwlock)?;
    })
}
