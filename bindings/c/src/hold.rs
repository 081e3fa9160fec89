//! Holds.

#![allow(non_camel_case_types)]

use std::ffi::c_void;

use fencelock_support::{Dispatcher, ErrorKind};

use crate::boundary::{call, give, want};
use crate::callback::{UserData, fencelock_callback, fencelock_destroy, start};
use crate::completion::{Outcome, fencelock_completion};
use crate::failure::{Failure, invalid};
use crate::handle::Pin;
use crate::hold_object::HoldObject;
use crate::kinds::{Kind, fencelock_error, fencelock_hold, fencelock_text};
use crate::span::{nanos, span};
use crate::status::{abandoned, fencelock_abandoned, fencelock_loss, fencelock_status, loss};
use crate::string::{Text, fencelock_string};

/// The name of the hold's lock. Valid until the hold is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_name(
    hold: *const fencelock_hold,
    name: *mut fencelock_string,
) -> fencelock_status {
    call!({
        let hold = fencelock_hold::get(hold)?;
        give(name, "name", hold.name.get_or_init(|| Text::new(hold.hold.name())).borrow())?;
    })
}

/// The fencing token: greater than that of every earlier hold of the lock, and below 2^53. It stays
/// the same number after the hold was lost; fencelock_hold_check() looks at that first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_token(
    hold: *const fencelock_hold,
    token: *mut u64,
) -> fencelock_status {
    call!({
        give(token, "token", fencelock_hold::get(hold)?.hold.token())?;
    })
}

/// The token, if the hold can be trusted at this moment by this machine's clock; LOST otherwise. The
/// hold may end between this and a write: send the token with the write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_check(
    hold: *const fencelock_hold,
    token: *mut u64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(token, "token", 0)?;
        give(token, "token", fencelock_hold::get(hold)?.hold.check()?)?;
    })
}

/// Whether the hold can be trusted at this moment. Reads the clock; asks the store nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_is_valid(
    hold: *const fencelock_hold,
    valid: *mut bool,
) -> fencelock_status {
    call!({
        give(valid, "valid", false)?;
        give(valid, "valid", fencelock_hold::get(hold)?.hold.is_valid())?;
    })
}

/// How long the hold can be trusted from now on if it is not renewed; 0 when it has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_remaining(
    hold: *const fencelock_hold,
    remaining_ns: *mut i64,
) -> fencelock_status {
    call!({
        let remaining = fencelock_hold::get(hold)?.hold.remaining();
        give(remaining_ns, "remaining_ns", nanos(remaining))?;
    })
}

/// Whether the owner had the lock already, in this client, when this hold was granted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_is_reentry(
    hold: *const fencelock_hold,
    reentry: *mut bool,
) -> fencelock_status {
    call!({
        give(reentry, "reentry", fencelock_hold::get(hold)?.hold.is_reentry())?;
    })
}

/// Whether another client waits for the lock, as far as is known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_is_wanted(
    hold: *const fencelock_hold,
    wanted: *mut bool,
) -> fencelock_status {
    call!({
        give(wanted, "wanted", fencelock_hold::get(hold)?.hold.is_wanted())?;
    })
}

/// Whether the previous holder was lost instead of releasing. Stays so until a hold that was told has
/// been released.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_previous_abandoned(
    hold: *const fencelock_hold,
    previous: *mut fencelock_abandoned,
) -> fencelock_status {
    call!({
        let hold = fencelock_hold::get(hold)?;
        give(previous, "previous", abandoned(hold.hold.previous_abandoned()))?;
    })
}

/// Sets the hold's lease from now on; never shortens what is left of it. A hold without an explicit
/// lease goes on being renewed.
///
/// LOST when the hold has ended, INVALID_ARGUMENT for a lease outside 100 ms to 7 days, UNAVAILABLE
/// when the store did not answer (the lease may or may not be longer then).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_extend(
    hold: *mut fencelock_hold,
    lease_ns: i64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        hold.hold.extend(span(lease_ns, "lease_ns")?.unwrap_or_default())?;
    })
}

/// As fencelock_hold_extend(), without blocking.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_extend_async(
    hold: *mut fencelock_hold,
    lease_ns: i64,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        let lease = span(lease_ns, "lease_ns")?.unwrap_or_default();
        start(now, callback, user_data, std::ptr::null_mut(), |done| {
            let extended = move |result: Result<(), _>| done(result.map(|()| Outcome::Nothing));
            Ok(Some(hold.hold.extend_async(lease, extended)))
        })?;
    })
}

/// A short text with which another thread, process or language goes on with this hold, through
/// fencelock_client_attach(); fit for a header. It is no secret, but whoever has it can join.
///
/// INVALID_ARGUMENT unless the lock was acquired with FENCELOCK_OWNER_EXPLICIT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_ticket(
    hold: *const fencelock_hold,
    ticket: *mut *mut fencelock_text,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(ticket, "ticket")?;
        let text = Text::new(&fencelock_hold::get(hold)?.hold.ticket()?);
        give(ticket, "ticket", fencelock_text::make(text)?)?;
    })
}

/// Ends the handle of a hold, and keeps what it named.
fn take(hold: *mut fencelock_hold) -> Result<Pin<'static, HoldObject>, Failure> {
    if hold.is_null() {
        return Err(invalid("the hold is NULL").into());
    }
    fencelock_hold::table().take(hold.addr() as u64).ok_or_else(|| {
        let gone = "this hold was released or freed before, or is a handle of another kind";
        fencelock_support::Error::new(ErrorKind::NotHeld, gone).into()
    })
}

/// Releases the lock, waits until the store or the next local holder has it, and frees the handle,
/// whatever it returns. From any thread.
///
/// LOST when the hold had ended before, NOT_HELD when the handle was released or freed before,
/// UNAVAILABLE when the store did not answer within the request timeout (the release goes on in the
/// background).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_release(
    hold: *mut fencelock_hold,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        take(hold)?.hold.release()?;
    })
}

/// As fencelock_hold_release(), without blocking. When it returns FENCELOCK_OK, the handle is freed;
/// a call that did not begin leaves it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_release_async(
    hold: *mut fencelock_hold,
    now: *mut fencelock_completion,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        start(now, callback, user_data, std::ptr::null_mut(), |done| {
            let released = move |result: Result<(), _>| done(result.map(|()| Outcome::Nothing));
            Ok(Some(take(hold)?.hold.release_async(released)))
        })?;
    })
}

/// Frees a hold's handle. If the lock was not released, it is, in the background. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_free(hold: *mut fencelock_hold) -> fencelock_status {
    call!({
        fencelock_hold::free(hold)?;
    })
}

/// Takes the news that a hold was lost, on the callback thread.
pub type fencelock_lost_callback =
    Option<unsafe extern "C" fn(reason: fencelock_loss, user_data: *mut c_void)>;

/// Takes the news that another client waits for a hold's lock, on the callback thread.
pub type fencelock_wanted_callback = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// A host's data, and what frees it on the callback thread.
struct Kept {
    user: UserData,
    destroy: fencelock_destroy,
    dispatcher: &'static Dispatcher,
}

impl Drop for Kept {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            let user = self.user;
            self.dispatcher.post(move || {
                let user = { user };
                // SAFETY: the host's word that this frees it; it is not used after.
                unsafe { destroy(user.0) };
            });
        }
    }
}

impl Kept {
    fn new(user: *mut c_void, destroy: fencelock_destroy) -> Result<Kept, Failure> {
        Ok(Kept { user: UserData(user), destroy, dispatcher: Dispatcher::current()? })
    }

    fn post(self, call: impl FnOnce(*mut c_void) + Send + 'static) {
        self.dispatcher.post(move || {
            // All of it, so that it is dropped after the call.
            let kept = { self };
            call(kept.user.0);
        });
    }
}

/// Calls `callback` once, on the callback thread, when the hold ends before its release; soon, when
/// it has. `destroy` may be NULL; otherwise it is called once, on the callback thread, after the
/// callback or when the hold has ended without it. A call that fails leaves user_data to the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_on_lost(
    hold: *mut fencelock_hold,
    callback: fencelock_lost_callback,
    user_data: *mut c_void,
    destroy: fencelock_destroy,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        let Some(callback) = callback else { return Err(invalid("the callback is NULL").into()) };
        let kept = Kept::new(user_data, destroy)?;
        hold.hold.on_lost(move |reason| {
            // SAFETY: the host's word that it takes this.
            kept.post(move |user| unsafe { callback(loss(reason), user) });
        });
    })
}

/// Calls `callback` once, on the callback thread, when another client waits for the lock; soon, when
/// one does. A holder that can pause its work may release then. Otherwise as
/// fencelock_hold_on_lost().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_hold_on_wanted(
    hold: *mut fencelock_hold,
    callback: fencelock_wanted_callback,
    user_data: *mut c_void,
    destroy: fencelock_destroy,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let hold = fencelock_hold::get(hold)?;
        let Some(callback) = callback else { return Err(invalid("the callback is NULL").into()) };
        let kept = Kept::new(user_data, destroy)?;
        hold.hold.on_wanted(move || {
            // SAFETY: the host's word that it takes this.
            kept.post(move |user| unsafe { callback(user) });
        });
    })
}
