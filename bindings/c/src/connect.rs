//! Connecting.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_void};

use fencelock_support::{Client, ConnectOptions, Dispatcher};

use crate::boundary::{call, give, want};
use crate::callback::{Reply, fencelock_callback};
use crate::completion::Outcome;
use crate::failure::{Failure, invalid};
use crate::kinds::{Kind, fencelock_client, fencelock_error};
use crate::sized::{Growing, read};
use crate::span::span;
use crate::status::fencelock_status;
use crate::text;

/// Options of a client, to be initialised with FENCELOCK_CONNECT_OPTIONS_INIT. What is 0 or NULL is
/// as the URL says, or else the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_connect_options {
    /// sizeof(fencelock_connect_options).
    pub size: usize,
    /// The lease of holds without an explicit one, renewed at a third of it: 100 ms to 7 days, 30 s
    /// by default. Shorter: a crashed holder's lock is free earlier. Longer: a holder survives a
    /// longer outage of the store.
    pub lease_ns: i64,
    /// The lease of a hold that was handed to a waiter, until the waiter is heard from: 100 ms to
    /// 60 s, 3 s by default. It bounds how long a waiter that died delays the ones behind it.
    pub claim_ns: i64,
    /// How long a request may go unanswered; also the bound of a try, a release and every other call
    /// that has no bound of its own. At least 10 ms, 3 s by default.
    pub request_timeout_ns: i64,
    /// How long connecting may take: 5 s by default.
    pub connect_timeout_ns: i64,
    /// For how long a released lock may pass to waiters of this client without asking the store
    /// while another client waits: 10 ms by default.
    pub local_run_time_ns: i64,
    /// How many times in a row it may: 64 by default. -1: never.
    pub local_run_grants: i64,
    /// How many acquires may wait at a time in this client: 1,000,000 by default.
    pub max_waiters: i64,
    /// A label for people, shown beside the client's id wherever holders are listed: at most 128
    /// bytes.
    pub label: *const c_char,
    /// Its length in bytes, or FENCELOCK_NTS.
    pub label_length: usize,
    /// Redis: what every key begins with, "fl:" by default. Clients must agree on it to share locks.
    pub key_prefix: *const c_char,
    /// Its length in bytes, or FENCELOCK_NTS.
    pub key_prefix_length: usize,
}

// SAFETY: it begins with its size, and all zeros are a value of it.
unsafe impl Growing for fencelock_connect_options {}

/// # Safety
/// As the header asks.
unsafe fn options(from: *const fencelock_connect_options) -> Result<ConnectOptions, Failure> {
    // SAFETY: the caller's word.
    let Some(from) = (unsafe { read(from)? }) else { return Ok(ConnectOptions::default()) };
    // SAFETY: as above.
    let label = unsafe { text::read(from.label, from.label_length, "label")? };
    // SAFETY: as above.
    let prefix = unsafe { text::read(from.key_prefix, from.key_prefix_length, "key prefix")? };
    let grants = match from.local_run_grants {
        0 => None,
        -1 => Some(0),
        grants => Some(count(grants, "local_run_grants")?),
    };
    Ok(ConnectOptions {
        lease: span(from.lease_ns, "lease_ns")?,
        claim: span(from.claim_ns, "claim_ns")?,
        request_timeout: span(from.request_timeout_ns, "request_timeout_ns")?,
        connect_timeout: span(from.connect_timeout_ns, "connect_timeout_ns")?,
        label: label.map(str::to_owned),
        key_prefix: prefix.map(str::to_owned),
        local_run_grants: grants,
        local_run_time: span(from.local_run_time_ns, "local_run_time_ns")?,
        max_waiters: match from.max_waiters {
            0 => None,
            waiters => Some(count(waiters, "max_waiters")?),
        },
    })
}

fn count<N: TryFrom<i64>>(count: i64, what: &str) -> Result<N, Failure> {
    N::try_from(count).map_err(|_| invalid(format!("{what} is out of its range: {count}")).into())
}

/// Connects, and waits until the store has answered. `url` names the store: "memory:" (this
/// process), "sqlite:path" (this machine), "redis://host" (see docs). Connect anew in a forked
/// child.
///
/// INVALID_ARGUMENT for a URL that cannot be read, UNSUPPORTED for a store that this build lacks,
/// MISCONFIGURED at once for a wrong password and the like, UNAVAILABLE when the store did not answer
/// within the connect timeout.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_connect(
    url: *const c_char,
    url_length: usize,
    options: *const fencelock_connect_options,
    client: *mut *mut fencelock_client,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        want(client, "client")?;
        let url = text::need(url, url_length, "URL")?;
        let connected = Client::connect(url, self::options(options)?)?;
        give(client, "client", fencelock_client::make(connected)?)?;
    })
}

/// As fencelock_connect(), without blocking: on a thread of its own, since it may ask for addresses.
/// The completion has the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_connect_async(
    url: *const c_char,
    url_length: usize,
    options: *const fencelock_connect_options,
    callback: fencelock_callback,
    user_data: *mut c_void,
    error: *mut *mut fencelock_error,
) -> fencelock_status {
    call!(error, {
        let url = text::need(url, url_length, "URL")?.to_owned();
        let options = self::options(options)?;
        Dispatcher::current()?;
        let reply = Reply::new(callback, user_data)?;
        Client::connect_async(url, options, move |client| reply.send(client.map(Outcome::Client)))?;
    })
}
