//! A lock's state, as JSON and as words.

use fencelock::{Abandoned, HoldInfo, LockInfo, WaiterInfo};
use serde::Serialize;

/// A lock.
#[derive(Debug, Serialize)]
pub struct LockReport {
    /// Its name.
    pub name: String,
    /// `held` or `free`.
    pub state: &'static str,
    /// The explicit owner of the holds, if they have one.
    pub owner: Option<String>,
    /// The token of the present holds; null when there are none.
    pub token: Option<u64>,
    /// The highest token reserved so far.
    pub last_token: u64,
    /// What the next holder will be told: `no`, `yes` or `unknown`.
    pub abandoned: &'static str,
    /// The present holds.
    pub holds: Vec<HoldReport>,
    /// Who waits, first come first: an entry for each client.
    pub waiters: Vec<WaiterReport>,
    /// How many wait in all, within clients too.
    pub waiting: usize,
}

/// A hold.
#[derive(Debug, Serialize)]
pub struct HoldReport {
    /// Its id.
    pub hold: String,
    /// The client's id.
    pub client: String,
    /// The client's label.
    pub label: String,
    /// Milliseconds until the deadline, by the store's clock.
    pub expires_in_ms: u64,
    /// The lease it counts from, in milliseconds.
    pub lease_ms: u64,
    /// Handed over, and its holder not heard from yet.
    pub claim: bool,
    /// How many wait within its client; null when that is unknown.
    pub local_waiters: Option<u32>,
}

/// A waiter.
#[derive(Debug, Serialize)]
pub struct WaiterReport {
    /// The id of the hold that it wants.
    pub hold: String,
    /// The client's id.
    pub client: String,
    /// The client's label.
    pub label: String,
    /// The explicit owner, if it has one.
    pub owner: Option<String>,
    /// Milliseconds since it was last heard from.
    pub heard_ago_ms: u64,
    /// It would be passed over now.
    pub silent: bool,
    /// How many more wait within its client; null when that is unknown.
    pub local_waiters: Option<u32>,
}

impl From<&LockInfo> for LockReport {
    fn from(info: &LockInfo) -> LockReport {
        let held = !info.holds.is_empty();
        LockReport {
            name: info.name.as_str().to_owned(),
            state: if held { "held" } else { "free" },
            owner: info.owner.clone(),
            token: held.then_some(info.token),
            last_token: info.last_token,
            abandoned: abandoned(info.abandoned),
            holds: info.holds.iter().map(HoldReport::from).collect(),
            waiters: info.waiters.iter().map(WaiterReport::from).collect(),
            waiting: info.waiting,
        }
    }
}

impl From<&HoldInfo> for HoldReport {
    fn from(info: &HoldInfo) -> HoldReport {
        HoldReport {
            hold: info.hold.to_string(),
            client: info.client.clone(),
            label: info.label.clone(),
            expires_in_ms: millis(info.expires_in),
            lease_ms: millis(info.lease),
            claim: info.claim,
            local_waiters: info.local_waiters,
        }
    }
}

impl From<&WaiterInfo> for WaiterReport {
    fn from(info: &WaiterInfo) -> WaiterReport {
        WaiterReport {
            hold: info.hold.to_string(),
            client: info.client.clone(),
            label: info.label.clone(),
            owner: info.owner.clone(),
            heard_ago_ms: millis(info.heard_ago),
            silent: info.silent,
            local_waiters: info.local_waiters,
        }
    }
}

/// One word.
pub fn abandoned(of: Abandoned) -> &'static str {
    match of {
        Abandoned::No => "no",
        Abandoned::Yes => "yes",
        Abandoned::Unknown => "unknown",
    }
}

fn millis(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
