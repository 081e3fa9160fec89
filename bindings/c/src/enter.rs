//! Entering and leaving a lock like a mutex.

use std::ffi::c_void;

use crate::acquire::{Request, fencelock_acquire_options};
use crate::boundary::{call, give, want};
use crate::callback::{fencelock_callback, start};
use crate::completion::{Outcome, fencelock_completion};
use crate::hold_object::HoldObject;
use crate::kinds::{Kind, fencelock_error, fencelock_hold, fencelock_lock, fencelock_operation};
use crate::status::fencelock_status;

/// Enters a lock for the calling thread, or for the FENCELOCK_OWNER_LOCAL of `options` (which may be
/// NULL); other owners are refused. `token` may be NULL. Who is in enters again at once: that looks
/// at the clock and counts, the other options are not looked at. Entries belong to this handle of the
/// lock.
///
/// A hold that was lost is not counted on: entering again acquires anew, with a new token, and what
/// was entered before gives LOST when it leaves. Otherwise as fencelock_lock_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_enter(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    token: *mut u64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        let key = request.key()?;
        let entered = match lock.entries.again(key) {
            Some(token) => token,
            None => {
                let cancel = request.cancel()?;
                let cancel = cancel.as_ref().map(|cancel| cancel.token());
                lock.entries.enter(&request.on(&lock.lock), key, request.patience, cancel)?
            }
        };
        if !token.is_null() {
            give(token, "token", entered)?;
        }
    })
}

/// As fencelock_lock_enter(), without blocking. The completion's number is the token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_enter_async(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        request.refuse_cancel()?;
        start(now, callback, user_data, operation, |done| {
            let entered = move |token: Result<_, _>| done(token.map(Outcome::Number));
            let key = request.key()?;
            Ok(lock.entries.enter_async(&request.on(&lock.lock), key, request.patience, entered))
        })?;
    })
}

/// Leaves a lock once; the last time releases, and waits for the store. Of `options` only the owner
/// counts.
///
/// NOT_HELD when the owner is not in, LOST when its hold had ended before, UNAVAILABLE when the store
/// did not answer within the request timeout (the release goes on in the background).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_leave(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        lock.entries.leave(request.key()?)?;
    })
}

/// As fencelock_lock_leave(), without blocking. NOT_HELD is returned, and the callback not called; a
/// leave that was counted tells of LOST through its completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_leave_async(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        start(now, callback, user_data, std::ptr::null_mut(), |done| {
            let left = move |left: Result<(), _>| done(left.map(|()| Outcome::Nothing));
            lock.entries.leave_async(request.key()?, left)?;
            Ok(None)
        })?;
    })
}

/// How often the owner is in: the owner of `options`, or the calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_depth(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    depth: *mut u64,
) -> fencelock_status {
    call!({
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        give(depth, "depth", lock.entries.depth(request.key()?))?;
    })
}

/// The hold that the owner entered with last, as a handle of its own, to be freed: for its token, its
/// validity, its callbacks. Freeing it does not leave the lock; releasing it ends the hold, and the
/// leave will say so. NOT_HELD when the owner is not in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_lock_entered(
    lock: *mut fencelock_lock,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        let lock = fencelock_lock::get(lock)?;
        let request = Request::read(options)?;
        let entered = lock.entries.hold(request.key()?)?;
        give(hold, "hold", fencelock_hold::make(HoldObject::new(entered))?)?;
    })
}
