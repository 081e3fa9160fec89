//! Asynchronous calls under way.

use crate::boundary::call;
use crate::kinds::{Kind, fencelock_operation};
use crate::status::fencelock_status;

/// Cancels an asynchronous call, from any thread. The callback is called all the same: with
/// CANCELLED, and then nothing is held and nobody waits, or, when this came too late, with what came
/// of the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_operation_cancel(
    operation: *mut fencelock_operation,
) -> fencelock_status {
    call!({
        fencelock_operation::get(operation)?.cancel();
    })
}

/// Frees the handle of a call; the call goes on. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_operation_free(
    operation: *mut fencelock_operation,
) -> fencelock_status {
    call!({
        fencelock_operation::free(operation)?;
    })
}
