//! Semaphores.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

use fencelock_support::Semaphore;

use crate::acquire::{acquire, acquire_async, fencelock_acquire_options};
use crate::boundary::{call, give, want};
use crate::callback::{fencelock_callback, start};
use crate::completion::{Outcome, fencelock_completion};
use crate::kinds::{
    Kind, Number, fencelock_client, fencelock_error, fencelock_hold, fencelock_operation,
    fencelock_semaphore, kind,
};
use crate::status::fencelock_status;
use crate::string::{Text, fencelock_string};
use crate::text;

/// What a handle of a semaphore names.
pub struct SemaphoreObject {
    semaphore: Semaphore,
    name: Text,
}

kind!(fencelock_semaphore: Number::Semaphore, "semaphore", SemaphoreObject);

/// The semaphore `name` of a client's store, of so many permits: 1 to 1,000,000. Asks the store nothing.
/// Everybody who holds or waits must say the same number, and the name must not be a lock's; what does not
/// agree is MISCONFIGURED when it is acquired, with both numbers in the message.
///
/// Who wants permits waits in one queue, first come, first served: a small request never passes a larger
/// one that waits. Those of a process that died are free again when their lease is over.
///
/// INVALID_ARGUMENT for the number, and for a name as fencelock_client_lock() says; UNSUPPORTED where the
/// store has none (see fencelock_capabilities).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_semaphore(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    permits: u32,
    semaphore: *mut *mut fencelock_semaphore,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(semaphore, "semaphore")?;
        let client = fencelock_client::get(client)?;
        let made = client.semaphore(text::need(name, name_length, "name")?, permits)?;
        let made = SemaphoreObject { name: Text::new(made.name()), semaphore: made };
        give(semaphore, "semaphore", fencelock_semaphore::make(made)?)?;
    })
}

/// The name of a semaphore. Valid until it is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_name(
    semaphore: *const fencelock_semaphore,
    name: *mut fencelock_string,
) -> fencelock_status {
    call!({
        give(name, "name", fencelock_semaphore::get(semaphore)?.name.borrow())?;
    })
}

/// How many permits a semaphore has, as its handle was told.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_permits(
    semaphore: *const fencelock_semaphore,
    permits: *mut u32,
) -> fencelock_status {
    call!({
        give(permits, "permits", fencelock_semaphore::get(semaphore)?.semaphore.permits())?;
    })
}

/// Takes `count` permits together, waiting for all of them; `options` may be NULL. They are one hold, and
/// are given back together when that is released; one that was LOST had come back before.
///
/// Permits have no owner: who acquires again takes more, and may wait for its own. The owner in `options`
/// means nothing, and an explicit one is INVALID_ARGUMENT. The hold's token names the grant: no
/// other one has it. It is no fence: several are valid at once. To fence, take one of several locks.
///
/// CONTENDED when it did not want to wait, and too few are free or others wait; INVALID_ARGUMENT unless
/// count is 1 to the number of permits; MISCONFIGURED also while the name is a lock's, or while others
/// hold or wait who said another number; otherwise as fencelock_lock_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_acquire(
    semaphore: *mut fencelock_semaphore,
    count: u32,
    options: *const fencelock_acquire_options,
    hold: *mut *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(hold, "hold")?;
        let taking = fencelock_semaphore::get(semaphore)?.semaphore.taking(count);
        acquire(&taking, options, hold)?;
    })
}

/// As fencelock_semaphore_acquire(), without blocking for longer than block_ns says. The completion has the
/// hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_acquire_async(
    semaphore: *mut fencelock_semaphore,
    count: u32,
    options: *const fencelock_acquire_options,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    operation: *mut *mut fencelock_operation,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let taking = fencelock_semaphore::get(semaphore)?.semaphore.taking(count);
        acquire_async(&taking, options, now, callback, user_data, operation)?;
    })
}

/// How many permits the store's holds leave of the number that this handle was told, or follows, at the time
/// of asking: good for display, never for a decision. Who waits comes first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_available_permits(
    semaphore: *mut fencelock_semaphore,
    available: *mut u32,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(available, "available", 0)?;
        let semaphore = fencelock_semaphore::get(semaphore)?;
        give(available, "available", semaphore.semaphore.available_permits()?)?;
    })
}

/// As fencelock_semaphore_available_permits(), without blocking. The completion's number is how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_available_permits_async(
    semaphore: *mut fencelock_semaphore,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let semaphore = fencelock_semaphore::get(semaphore)?;
        start(null_mut(), callback, user_data, null_mut(), |done| {
            let free = |free: u32| Outcome::Number(free.into());
            let told = move |result: Result<u32, _>| done(result.map(free));
            Ok(Some(semaphore.semaphore.available_permits_async(told)))
        })?;
    })
}

/// Another handle of a semaphore, to be freed, which follows the number of permits of those who hold or
/// wait, where that is not its own: for who cannot know of a resize. Its own number counts when nobody
/// does, and is the most that one acquire takes; more than there are is INVALID_ARGUMENT then, as after a
/// resize.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_adopting(
    semaphore: *mut fencelock_semaphore,
    adopting: *mut *mut fencelock_semaphore,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(adopting, "adopting")?;
        let made = fencelock_semaphore::get(semaphore)?.semaphore.clone().adopting();
        let made = SemaphoreObject { name: Text::new(made.name()), semaphore: made };
        give(adopting, "adopting", fencelock_semaphore::make(made)?)?;
    })
}

/// Gives a semaphore another number of permits, 1 to 1,000,000, until nobody holds or waits; `resized` is
/// false when nobody does, and whoever comes next says how many there are. Of more, whoever fits now enters
/// at once. Of fewer, nobody loses a permit, and nobody enters until enough have come back; who waits for
/// more than there are ends with INVALID_ARGUMENT. Everybody who comes later must say the new number, or
/// follow it (see fencelock_semaphore_adopting()): this handle keeps the one that it was told.
///
/// INVALID_ARGUMENT for the number, MISCONFIGURED while the name is a lock's, UNSUPPORTED, UNAVAILABLE,
/// CLOSED.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_resize(
    semaphore: *mut fencelock_semaphore,
    permits: u32,
    resized: *mut bool,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(resized, "resized", false)?;
        let semaphore = fencelock_semaphore::get(semaphore)?;
        give(resized, "resized", semaphore.semaphore.resize(permits)?)?;
    })
}

/// As fencelock_semaphore_resize(), without blocking. The completion's number is 0 or 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_resize_async(
    semaphore: *mut fencelock_semaphore,
    permits: u32,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let semaphore = fencelock_semaphore::get(semaphore)?;
        start(null_mut(), callback, user_data, null_mut(), |done| {
            let resized = |resized: bool| Outcome::Number(resized.into());
            let told = move |result: Result<bool, _>| done(result.map(resized));
            Ok(Some(semaphore.semaphore.resize_async(permits, told)))
        })?;
    })
}

/// Frees a semaphore's handle. Holds go on. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_semaphore_free(
    semaphore: *mut fencelock_semaphore,
) -> fencelock_status {
    call!({
        fencelock_semaphore::free(semaphore)?;
    })
}
