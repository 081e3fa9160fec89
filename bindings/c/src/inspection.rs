//! The state of a lock, for people.

#![allow(non_camel_case_types)]

use std::time::Duration;

use fencelock_support::{HoldInfo, LockInfo, Mode, WaiterInfo};

use crate::boundary::call;
use crate::failure::{Failure, invalid};
use crate::kinds::{Kind, Number, fencelock_inspection, kind};
use crate::sized::{Growing, fill};
use crate::span::nanos;
use crate::status::{abandoned, fencelock_abandoned, fencelock_mode, fencelock_status, mode};
use crate::string::{Text, fencelock_string};

/// A lock at one moment. What it refers to is valid until the inspection is freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_lock_info {
    /// sizeof(fencelock_lock_info); to be set by the caller.
    pub size: usize,
    /// The lock's name.
    pub name: fencelock_string,
    /// The explicit owner of the holds; data is NULL when they have none, and while readers have the
    /// lock.
    pub owner: fencelock_string,
    /// The token of the holds, the highest of them where each has its own; or 0.
    pub token: u64,
    /// The highest token reserved so far.
    pub last_token: u64,
    /// What the next holder will be told of its predecessor.
    pub abandoned: fencelock_abandoned,
    /// How many holds there are: none when the lock is free, several when an explicit owner has
    /// re-entered, and of readers and of a semaphore.
    pub hold_count: usize,
    /// How many waiters may be read: who stands in the queue, an entry for each client, 256 at the
    /// most.
    pub waiter_count: usize,
    /// How many wait in all: the whole queue, and who waits within the clients of the holds and
    /// waiters that are shown, as far as that is known.
    pub waiting: usize,
}

/// A hold at one moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_hold_info {
    /// sizeof(fencelock_hold_info); to be set by the caller.
    pub size: usize,
    /// Its id.
    pub id: fencelock_string,
    /// Its client's id.
    pub client: fencelock_string,
    /// Its client's label.
    pub label: fencelock_string,
    /// What is left of the lease.
    pub expires_in_ns: i64,
    /// The lease that this counts from.
    pub lease_ns: i64,
    /// It was handed over, and its holder was not heard from yet.
    pub claim: bool,
    /// How many wait within its client, which hands the lock on among them, as that said with its
    /// latest acquire or renewal: up to a third of a lease old, and 65,535 at the most; exact for the
    /// client that asks. -1 where it is unknown (ZooKeeper).
    pub local_waiters: i64,
    /// Its token.
    pub token: u64,
    /// Its explicit owner; data is NULL when it has none.
    pub owner: fencelock_string,
    /// How it shares the lock.
    pub mode: fencelock_mode,
    /// How many permits it has; 0 of a lock.
    pub permits: u32,
    /// How many permits there are, as it was said when it was acquired; 0 of a lock.
    pub of: u32,
}

/// A waiter at one moment.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct fencelock_waiter_info {
    /// sizeof(fencelock_waiter_info); to be set by the caller.
    pub size: usize,
    /// The id that its hold will have.
    pub id: fencelock_string,
    /// Its client's id.
    pub client: fencelock_string,
    /// Its client's label.
    pub label: fencelock_string,
    /// Its explicit owner; data is NULL when it has none.
    pub owner: fencelock_string,
    /// How long ago it was heard from.
    pub heard_ago_ns: i64,
    /// Whether it would be passed over now.
    pub silent: bool,
    /// How many more wait within its client, as for a hold.
    pub local_waiters: i64,
    /// How it wants to share the lock.
    pub mode: fencelock_mode,
    /// How many permits it wants; 0 of a lock.
    pub permits: u32,
}

// SAFETY: they begin with their size, and all zeros are a value of them.
unsafe impl Growing for fencelock_lock_info {}
// SAFETY: as above.
unsafe impl Growing for fencelock_hold_info {}
// SAFETY: as above.
unsafe impl Growing for fencelock_waiter_info {}

/// What a handle of an inspection names.
pub struct Inspection {
    name: Text,
    owner: Option<Text>,
    token: u64,
    last_token: u64,
    abandoned: fencelock_abandoned,
    holds: Vec<Held>,
    waiters: Vec<Waiting>,
    waiting: usize,
}

kind!(fencelock_inspection: Number::Inspection, "inspection", Inspection);

struct Held {
    id: Text,
    client: Text,
    label: Text,
    expires_in: Duration,
    lease: Duration,
    claim: bool,
    local_waiters: i64,
    token: u64,
    owner: Option<Text>,
    mode: Mode,
}

struct Waiting {
    id: Text,
    client: Text,
    label: Text,
    owner: Option<Text>,
    heard_ago: Duration,
    silent: bool,
    local_waiters: i64,
    mode: Mode,
}

impl Inspection {
    pub(crate) fn new(info: &LockInfo) -> Inspection {
        Inspection {
            name: Text::new(info.name.as_str()),
            owner: info.owner.as_deref().map(Text::new),
            token: info.token,
            last_token: info.last_token,
            abandoned: abandoned(info.abandoned),
            holds: info.holds.iter().map(Held::new).collect(),
            waiters: info.waiters.iter().map(Waiting::new).collect(),
            waiting: info.waiting,
        }
    }
}

impl Held {
    fn new(info: &HoldInfo) -> Held {
        Held {
            id: Text::new(&info.hold.to_string()),
            client: Text::new(&info.client),
            label: Text::new(&info.label),
            expires_in: info.expires_in,
            lease: info.lease,
            claim: info.claim,
            local_waiters: known(info.local_waiters),
            token: info.token,
            owner: info.owner.as_deref().map(Text::new),
            mode: info.mode,
        }
    }
}

impl Waiting {
    fn new(info: &WaiterInfo) -> Waiting {
        Waiting {
            id: Text::new(&info.hold.to_string()),
            client: Text::new(&info.client),
            label: Text::new(&info.label),
            owner: info.owner.as_deref().map(Text::new),
            heard_ago: info.heard_ago,
            silent: info.silent,
            local_waiters: known(info.local_waiters),
            mode: info.mode,
        }
    }
}

fn known(count: Option<u32>) -> i64 {
    count.map_or(-1, i64::from)
}

/// How many of how many.
fn permits(mode: Mode) -> (u32, u32) {
    match mode {
        Mode::Permits { count, of } => (count, of),
        Mode::Exclusive | Mode::Shared => (0, 0),
    }
}

fn borrow(text: &Option<Text>) -> fencelock_string {
    text.as_ref().map_or(fencelock_string::NONE, Text::borrow)
}

fn at<T>(list: &[T], index: usize, what: &str) -> Result<usize, Failure> {
    match list.len() {
        count if index < count => Ok(index),
        count => Err(invalid(format!("there is no {what} {index}, but {count}")).into()),
    }
}

/// Reads what was found of the lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_inspection_lock(
    inspection: *const fencelock_inspection,
    info: *mut fencelock_lock_info,
) -> fencelock_status {
    call!({
        let found = fencelock_inspection::get(inspection)?;
        let full = fencelock_lock_info {
            size: 0,
            name: found.name.borrow(),
            owner: borrow(&found.owner),
            token: found.token,
            last_token: found.last_token,
            abandoned: found.abandoned,
            hold_count: found.holds.len(),
            waiter_count: found.waiters.len(),
            waiting: found.waiting,
        };
        fill(info, full)?;
    })
}

/// Reads one of the holds, counted from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_inspection_hold(
    inspection: *const fencelock_inspection,
    index: usize,
    info: *mut fencelock_hold_info,
) -> fencelock_status {
    call!({
        let found = fencelock_inspection::get(inspection)?;
        let hold = &found.holds[at(&found.holds, index, "hold")?];
        let mut full = fencelock_hold_info::empty();
        full.id = hold.id.borrow();
        full.client = hold.client.borrow();
        full.label = hold.label.borrow();
        full.expires_in_ns = nanos(hold.expires_in);
        full.lease_ns = nanos(hold.lease);
        full.claim = hold.claim;
        full.local_waiters = hold.local_waiters;
        full.token = hold.token;
        full.owner = borrow(&hold.owner);
        full.mode = mode(hold.mode);
        (full.permits, full.of) = permits(hold.mode);
        fill(info, full)?;
    })
}

/// Reads one of the waiters, counted from 0, first come first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_inspection_waiter(
    inspection: *const fencelock_inspection,
    index: usize,
    info: *mut fencelock_waiter_info,
) -> fencelock_status {
    call!({
        let found = fencelock_inspection::get(inspection)?;
        let waiter = &found.waiters[at(&found.waiters, index, "waiter")?];
        let mut full = fencelock_waiter_info::empty();
        full.id = waiter.id.borrow();
        full.client = waiter.client.borrow();
        full.label = waiter.label.borrow();
        full.owner = borrow(&waiter.owner);
        full.heard_ago_ns = nanos(waiter.heard_ago);
        full.silent = waiter.silent;
        full.local_waiters = waiter.local_waiters;
        full.mode = mode(waiter.mode);
        full.permits = permits(waiter.mode).0;
        fill(info, full)?;
    })
}

/// Frees an inspection. NULL is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fencelock_inspection_free(
    inspection: *mut fencelock_inspection,
) -> fencelock_status {
    call!({
        fencelock_inspection::free(inspection)?;
    })
}
