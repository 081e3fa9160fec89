//! Clients.

#![allow(non_camel_case_types)]

use std::ffi::{CStr, c_void};
use std::time::Duration;

use fencelock_support::{Client, Error, ErrorKind};

use crate::boundary::{call, give, want};
use crate::callback::{Reply, fencelock_callback, start};
use crate::completion::Outcome;
use crate::kinds::{Kind, fencelock_client, fencelock_error, fencelock_text};
use crate::sized::{Growing, fill};
use crate::span::limit;
use crate::status::fencelock_status;
use crate::string::{Text, fencelock_string};

/// What a store can and cannot do; see fencelock_client_capabilities().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_capabilities {
    /// sizeof(fencelock_capabilities); to be set by the caller.
    pub size: usize,
    /// The store's name, such as "redis". Never freed.
    pub store: fencelock_string,
    /// Several processes may share it.
    pub processes: bool,
    /// Locks survive the end of every client.
    pub durable: bool,
    /// Explicit owners re-enter from another client.
    pub owners: bool,
    /// Explicit leases end at the store by themselves.
    pub leases: bool,
    /// fencelock_hold_previous_abandoned() is known.
    pub abandoned: bool,
    /// Names of locks are paths: slashes separate, no part is empty, and a lock does not lie below
    /// another.
    pub paths: bool,
    /// It has read-write locks; see fencelock_client_rwlock().
    pub shared: bool,
    /// It has semaphores; see fencelock_client_semaphore().
    pub permits: bool,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_capabilities {}

/// Counters of a client since it was made; see fencelock_client_counters().
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_counters {
    /// sizeof(fencelock_counters); to be set by the caller.
    pub size: usize,
    /// Holds granted.
    pub grants: u64,
    /// Of these, as re-entries; entering again is not among them.
    pub grants_reentry: u64,
    /// Of these, passed from another holder in this client without asking the store.
    pub grants_local: u64,
    /// Holds that ended before their release.
    pub losses: u64,
    /// Holds renewed, each renewal of each hold counted.
    pub renewals: u64,
    /// Renewals that failed and were tried again.
    pub renewal_failures: u64,
    /// Connections that were lost.
    pub reconnects: u64,
    /// Acquires that wait at this moment.
    pub waiting: u64,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_counters {}

/// Closes a client: cancels what waits, tells every hold that it is lost (FENCELOCK_LOSS_CLOSED), and
/// releases it at the store. Safe while other threads' calls are under way, and to repeat: they end
/// with CLOSED. The handle stays valid until it is freed.
///
/// With drain_ns above 0 (or FENCELOCK_FOREVER) it first refuses new owners and waits so long for
/// what is held and waited for to be released; TIMED_OUT when something was left, and is lost now: the
/// client is closed all the same. Without a drain it is OK, whatever is lost. Nothing closes a client at
/// the end of the process: what is held then stays locked until its lease is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_close(
    client: *mut fencelock_client,
    drain_ns: i64,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client = fencelock_client::get(client)?;
        match limit(drain_ns, "drain_ns")? {
            Some(Duration::ZERO) => _ = client.close(),
            limit => drained(client.drain(limit.unwrap_or(Duration::MAX)))?,
        }
    })
}

/// As fencelock_client_close(), without blocking.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_close_async(
    client: *mut fencelock_client,
    drain_ns: i64,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let client: Client = fencelock_client::get(client)?.clone();
        match limit(drain_ns, "drain_ns")? {
            Some(Duration::ZERO) => {
                let none = std::ptr::null_mut();
                start(none, callback, user_data, std::ptr::null_mut(), |done| {
                    let closed = move |result: Result<bool, _>| {
                        done(result.map(|_| Outcome::Nothing));
                    };
                    Ok(Some(client.close_async(closed)))
                })?;
            }
            limit => {
                let reply = Reply::new(callback, user_data)?;
                client.drain_async(limit.unwrap_or(Duration::MAX), move |all| {
                    reply.send(drained(all).map(|()| Outcome::Nothing));
                })?;
            }
        }
    })
}

fn drained(all: bool) -> Result<(), Error> {
    match all {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::TimedOut,
            "the client is closed, but not everything was released in time: what was held is lost",
        )),
    }
}

/// Whether a client is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_is_closed(
    client: *const fencelock_client,
    closed: *mut bool,
) -> fencelock_status {
    call!({
        give(closed, "closed", fencelock_client::get(client)?.is_closed())?;
    })
}

/// Whether nothing is held, waited for or being released in the client: for how long to let a process
/// live that is to end. Turns nobody away, as fencelock_client_close() with a drain does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_is_idle(
    client: *const fencelock_client,
    idle: *mut bool,
) -> fencelock_status {
    call!({
        give(idle, "idle", fencelock_client::get(client)?.is_idle())?;
    })
}

/// Frees a client's handle. The client itself is closed, in the background, when its locks and holds
/// are freed too. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_free(client: *mut fencelock_client) -> fencelock_status {
    call!({
        fencelock_client::free(client)?;
    })
}

/// The 16 hexadecimal digits under which the store knows a client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_id(
    client: *const fencelock_client,
    id: *mut *mut fencelock_text,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(id, "id")?;
        let text = Text::new(fencelock_client::get(client)?.id());
        give(id, "id", fencelock_text::make(text)?)?;
    })
}

/// What a client has counted since it was made, in Prometheus' text format.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_metrics(
    client: *const fencelock_client,
    metrics: *mut *mut fencelock_text,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(metrics, "metrics")?;
        let text = Text::new(&fencelock_client::get(client)?.metrics().to_prometheus());
        give(metrics, "metrics", fencelock_text::make(text)?)?;
    })
}

/// The most telling of these counters, as numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_counters(
    client: *const fencelock_client,
    counters: *mut fencelock_counters,
) -> fencelock_status {
    call!({
        let metrics = fencelock_client::get(client)?.metrics();
        let counted = fencelock_counters {
            size: 0,
            grants: metrics.grants(),
            grants_reentry: metrics.grants_reentry(),
            grants_local: metrics.grants_local(),
            losses: metrics.losses(),
            renewals: metrics.renewals,
            renewal_failures: metrics.renewal_failures,
            reconnects: metrics.reconnects,
            waiting: metrics.waiting,
        };
        fill(counters, counted)?;
    })
}

/// What a client's store can and cannot do.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_client_capabilities(
    client: *const fencelock_client,
    capabilities: *mut fencelock_capabilities,
) -> fencelock_status {
    call!({
        let known = fencelock_client::get(client)?.capabilities();
        let mut full = fencelock_capabilities::empty();
        full.store = fencelock_string::of(store(known.store));
        full.processes = known.processes;
        full.durable = known.durable;
        full.owners = known.owners;
        full.leases = known.leases;
        full.abandoned = known.abandoned;
        full.paths = known.paths;
        full.shared = known.shared;
        full.permits = known.permits;
        fill(capabilities, full)?;
    })
}

/// A store's name with a NUL behind it, made once for each store.
fn store(name: &'static str) -> &'static CStr {
    use std::collections::BTreeMap;
    use std::sync::{Mutex, PoisonError};
    static NAMES: Mutex<BTreeMap<&str, &CStr>> = Mutex::new(BTreeMap::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.entry(name).or_insert_with(|| {
        let name = std::ffi::CString::new(name).unwrap_or_default();
        Box::leak(name.into_boxed_c_str())
    })
}
