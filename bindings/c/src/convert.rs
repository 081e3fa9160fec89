//! A hold that reads, and then writes; or the other way round.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::boundary::{call, give};
use crate::callback::{fencelock_callback, start};
use crate::completion::{Outcome, fencelock_completion};
use crate::kinds::{Kind, fencelock_error, fencelock_hold};
use crate::status::{fencelock_mode, fencelock_status, mode};

/// How the hold shares the lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_mode(
    hold: *const fencelock_hold,
    mode_of_hold: *mut fencelock_mode,
) -> fencelock_status {
    call!({
        let hold = fencelock_hold::get(hold)?;
        give(mode_of_hold, "mode_of_hold", mode(hold.hold.mode()))?;
    })
}

/// Makes a hold that writes one that reads, without letting another writer in between: readers that
/// wait come in. The handle stays the same; its token is another one from now on, above what was written
/// under the old one and below every later writer's. A hold that reads already is left as it is.
///
/// CONTENDED when the owner writes by another hold, too; LOST when the hold has ended, NOT_HELD when it was
/// released, INVALID_ARGUMENT for a hold of permits, UNSUPPORTED on ZooKeeper for a hold of a plain lock,
/// UNAVAILABLE when the store did not answer (the hold reads then all the same).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_downgrade(
    hold: *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        fencelock_hold::get(hold)?.hold.downgrade()?;
    })
}

/// As fencelock_hold_downgrade(), without blocking.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_downgrade_async(
    hold: *mut fencelock_hold,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        start(now, callback, user_data, null_mut(), |done| {
            let converted = move |result: Result<(), _>| done(result.map(|()| Outcome::Nothing));
            Ok(Some(hold.hold.downgrade_async(converted)))
        })?;
    })
}

/// Makes a hold that reads one that writes, if nobody else reads: past those who wait, since it is in
/// already. It does not wait for others: two readers that waited for each other would wait for ever. The
/// handle stays the same; its token is another one from now on. A hold that writes already is left as it is.
///
/// CONTENDED when others read, or its owner has more holds than this one; then the hold still reads.
/// Otherwise as fencelock_hold_downgrade().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_try_upgrade(
    hold: *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        fencelock_hold::get(hold)?.hold.try_upgrade()?;
    })
}

/// As fencelock_hold_try_upgrade(), without blocking.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_try_upgrade_async(
    hold: *mut fencelock_hold,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        start(now, callback, user_data, null_mut(), |done| {
            let converted = move |result: Result<(), _>| done(result.map(|()| Outcome::Nothing));
            Ok(Some(hold.hold.try_upgrade_async(converted)))
        })?;
    })
}
