//! What operators ask of a store.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

use crate::boundary::{call, give, want};
use crate::callback::{fencelock_callback, start};
use crate::completion::Outcome;
use crate::inspection::Inspection;
use crate::kinds::{
    Kind, fencelock_client, fencelock_error, fencelock_inspection, fencelock_names,
};
use crate::span::nanos;
use crate::status::fencelock_status;
use crate::string::Text;
use crate::text;

/// Asks the store for its time, and gives the nanoseconds since 1970 that it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_ping(
    client: *mut fencelock_client,
    store_time_ns: *mut i64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(store_time_ns, "store_time_ns", 0)?;
        let time = fencelock_client::get(client)?.ping()?;
        give(store_time_ns, "store_time_ns", nanos(time))?;
    })
}

/// As fencelock_client_ping(), without blocking. The completion's number is the time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_ping_async(
    client: *mut fencelock_client,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        start(null_mut(), callback, user_data, null_mut(), |done| {
            Ok(Some(client.ping_async(move |time| {
                done(time.map(|time| Outcome::Number(nanos(time).cast_unsigned())));
            })))
        })?;
    })
}

/// Ends the holds on a lock that were seen under `token`, whoever has them: the token of
/// fencelock_client_inspect(), or of a hold. Gives how many there were. When the lock has changed hands
/// since, nothing is ended, and `changed_hands` is the token under which somebody else holds it now;
/// otherwise 0. So a break may be repeated. The holders are told, but one that does not listen goes on
/// believing in its hold until its validity ends: only fencing keeps its writes out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_break(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    token: u64,
    ended: *mut u64,
    changed_hands: *mut u64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(ended, "ended", 0)?;
        give(changed_hands, "changed_hands", 0)?;
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?;
        let broken = client.break_lock(name, token)?;
        give(ended, "ended", broken.ended as u64)?;
        give(changed_hands, "changed_hands", broken.changed_hands.unwrap_or(0))?;
    })
}

/// As fencelock_client_break(), without blocking. The completion's number is how many there were; it has
/// changed_hands as well.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_break_async(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    token: u64,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?.to_owned();
        start(null_mut(), callback, user_data, null_mut(), |done| {
            let broken = move |broken: Result<_, _>| done(broken.map(Outcome::Broken));
            Ok(Some(client.break_lock_async(name, token, broken)))
        })?;
    })
}

/// Ends one hold on a lock, by the id and the token that fencelock_inspection_hold() shows: one reader of
/// several, or one who has permits. The others stay. Otherwise as fencelock_client_break().
///
/// INVALID_ARGUMENT for what is no hold's id.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_break_hold(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    token: u64,
    hold: *const c_char,
    hold_length: usize,
    ended: *mut u64,
    changed_hands: *mut u64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        give(ended, "ended", 0)?;
        give(changed_hands, "changed_hands", 0)?;
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?;
        let broken = client.break_hold(name, token, text::need(hold, hold_length, "hold")?)?;
        give(ended, "ended", broken.ended as u64)?;
        give(changed_hands, "changed_hands", broken.changed_hands.unwrap_or(0))?;
    })
}

/// As fencelock_client_break_hold(), without blocking. The completion is as that of
/// fencelock_client_break_async().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_break_hold_async(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    token: u64,
    hold: *const c_char,
    hold_length: usize,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?.to_owned();
        let hold = text::need(hold, hold_length, "hold")?;
        start(null_mut(), callback, user_data, null_mut(), |done| {
            let broken = move |broken: Result<_, _>| done(broken.map(Outcome::Broken));
            Ok(Some(client.break_hold_async(name, token, hold, broken)?))
        })?;
    })
}

/// The names of at most `limit` locks that begin with `prefix` (which may be NULL: all), in the
/// store's order. A lock that was used lately may be listed although nobody holds it. A limit of 0 is
/// INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_list(
    client: *mut fencelock_client,
    prefix: *const c_char,
    prefix_length: usize,
    limit: usize,
    names: *mut *mut fencelock_names,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(names, "names")?;
        let client = fencelock_client::get(client)?;
        let prefix = text::read(prefix, prefix_length, "prefix")?.unwrap_or_default();
        let listed = client.list(prefix, limit)?;
        let listed = listed.iter().map(|name| Text::new(name)).collect();
        give(names, "names", fencelock_names::make(listed)?)?;
    })
}

/// As fencelock_client_list(), without blocking. The completion has the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_list_async(
    client: *mut fencelock_client,
    prefix: *const c_char,
    prefix_length: usize,
    limit: usize,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        let prefix = text::read(prefix, prefix_length, "prefix")?.unwrap_or_default().to_owned();
        start(null_mut(), callback, user_data, null_mut(), |done| {
            let listed = move |names: Result<_, _>| done(names.map(Outcome::Names));
            Ok(Some(client.list_async(prefix, limit, listed)))
        })?;
    })
}

/// The state of a lock: its holds and who waits. NULL, and FENCELOCK_OK, when the store knows nothing
/// of it. Changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_inspect(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    inspection: *mut *mut fencelock_inspection,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(inspection, "inspection")?;
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?;
        if let Some(info) = client.inspect(name)? {
            let made = fencelock_inspection::make(Inspection::new(&info))?;
            give(inspection, "inspection", made)?;
        }
    })
}

/// As fencelock_client_inspect(), without blocking. The completion has the inspection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_inspect_async(
    client: *mut fencelock_client,
    name: *const c_char,
    name_length: usize,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        let name = text::need(name, name_length, "name")?.to_owned();
        start(null_mut(), callback, user_data, null_mut(), |done| {
            Ok(Some(client.inspect_async(name, move |info| {
                done(info.map(|info| Outcome::Inspection(info.map(Box::new))));
            })))
        })?;
    })
}
