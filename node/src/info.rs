//! What a store knows of a lock.

use std::time::Duration;

use fencelock_support::{Abandoned, Mode};
use napi_derive::napi;

/// A lock, for people.
#[napi(object, object_from_js = false)]
pub struct LockInfo {
    /// The lock.
    pub name: String,
    /// The explicit owner of the present exclusive holds.
    pub owner: Option<String>,
    /// The present holds.
    pub holds: Vec<HoldInfo>,
    /// The token of the present holds, or 0.
    pub token: u64,
    /// The highest token reserved so far.
    pub last_token: u64,
    /// What the next holder will be told of its predecessor: `no`, `yes` or `unknown`.
    pub abandoned: String,
    /// Who waits, first come first; an entry for each client, 256 at the most.
    pub waiters: Vec<WaiterInfo>,
    /// How many wait in all, within clients too.
    pub waiting: f64,
}

/// A hold, for people.
#[napi(object, object_from_js = false)]
pub struct HoldInfo {
    /// Its id.
    pub id: String,
    /// The client's id.
    pub client_id: String,
    /// The client's label.
    pub label: String,
    /// What is left of the lease, in milliseconds.
    pub expires_in: f64,
    /// The lease that counts, in milliseconds.
    pub lease: f64,
    /// How it shares the lock: `exclusive`, `shared` or `permits`.
    pub mode: String,
    /// How many permits it takes, if it takes any.
    pub permits: Option<u32>,
    /// Its token.
    pub token: u64,
    /// Its explicit owner, if it has one.
    pub owner: Option<String>,
    /// Given by hand-off, and its holder not heard from yet.
    pub claim: bool,
    /// How many wait within its client, if that is known.
    pub local_waiters: Option<u32>,
}

/// A waiter, for people.
#[napi(object, object_from_js = false)]
pub struct WaiterInfo {
    /// Its hold's id.
    pub id: String,
    /// The client's id.
    pub client_id: String,
    /// The client's label.
    pub label: String,
    /// The explicit owner, if it has one.
    pub owner: Option<String>,
    /// How long ago it was heard from, in milliseconds.
    pub heard_ago: f64,
    /// Whether it would be passed over now.
    pub silent: bool,
    /// How it wants to share the lock, as of a hold.
    pub mode: String,
    /// How many permits it wants, if it wants any.
    pub permits: Option<u32>,
    /// How many more wait within its client, if that is known.
    pub local_waiters: Option<u32>,
}

impl From<fencelock_support::LockInfo> for LockInfo {
    fn from(info: fencelock_support::LockInfo) -> LockInfo {
        LockInfo {
            name: info.name.as_str().to_owned(),
            owner: info.owner,
            holds: info.holds.into_iter().map(HoldInfo::from).collect(),
            token: info.token,
            last_token: info.last_token,
            abandoned: abandoned(info.abandoned).to_owned(),
            waiters: info.waiters.into_iter().map(WaiterInfo::from).collect(),
            waiting: info.waiting as f64,
        }
    }
}

impl From<fencelock_support::HoldInfo> for HoldInfo {
    fn from(hold: fencelock_support::HoldInfo) -> HoldInfo {
        HoldInfo {
            id: hold.hold.to_string(),
            client_id: hold.client,
            label: hold.label,
            expires_in: milliseconds(hold.expires_in),
            lease: milliseconds(hold.lease),
            mode: mode(hold.mode).to_owned(),
            permits: hold.mode.permits(),
            token: hold.token,
            owner: hold.owner,
            claim: hold.claim,
            local_waiters: hold.local_waiters,
        }
    }
}

impl From<fencelock_support::WaiterInfo> for WaiterInfo {
    fn from(waiter: fencelock_support::WaiterInfo) -> WaiterInfo {
        WaiterInfo {
            id: waiter.hold.to_string(),
            client_id: waiter.client,
            label: waiter.label,
            owner: waiter.owner,
            heard_ago: milliseconds(waiter.heard_ago),
            silent: waiter.silent,
            mode: mode(waiter.mode).to_owned(),
            permits: waiter.mode.permits(),
            local_waiters: waiter.local_waiters,
        }
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
    }
}

pub(crate) fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

pub(crate) fn abandoned(abandoned: Abandoned) -> &'static str {
    match abandoned {
        Abandoned::No => "no",
        Abandoned::Yes => "yes",
        Abandoned::Unknown => "unknown",
    }
}
