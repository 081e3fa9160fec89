//! A lock's state, as JSON and as words.

use fencelock::{Abandoned, HoldInfo, LockInfo, Mode, WaiterInfo};
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
    /// Of a semaphore that somebody holds: its permits; null otherwise.
    pub permits: Option<Permits>,
    /// The present holds.
    pub holds: Vec<HoldReport>,
    /// Who waits, first come first: an entry for each client.
    pub waiters: Vec<WaiterReport>,
    /// How many wait in all, within clients too.
    pub waiting: usize,
}

/// A semaphore's permits.
#[derive(Debug, Serialize)]
pub struct Permits {
    /// How many are taken.
    pub in_use: u64,
    /// How many there are.
    pub of: u32,
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
    /// `exclusive`, `shared` or `permits`.
    pub mode: &'static str,
    /// How many permits it takes, if any.
    pub permits: Option<u32>,
    /// Its token.
    pub token: u64,
    /// Its explicit owner, if it has one.
    pub owner: Option<String>,
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
    /// `exclusive`, `shared` or `permits`.
    pub mode: &'static str,
    /// How many permits it wants, if any.
    pub permits: Option<u32>,
    /// How many more wait within its client; null when that is unknown.
    pub local_waiters: Option<u32>,
}

impl LockReport {
    /// How it is held, in a few words: `held`, `shared by 3`, `2 of 5 permits`, `free`.
    pub fn held(&self) -> String {
        let shared = self.holds.iter().filter(|hold| hold.mode == "shared").count();
        match &self.permits {
            Some(Permits { in_use, of }) => format!("{in_use} of {of} permits"),
            None if shared > 0 && shared == self.holds.len() => format!("shared by {shared}"),
            None => self.state.to_owned(),
        }
    }
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
            permits: permits(&info.holds),
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
            mode: word(info.mode),
            permits: info.mode.permits(),
            token: info.token,
            owner: info.owner.clone(),
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
            mode: word(info.mode),
            permits: info.mode.permits(),
            local_waiters: info.local_waiters,
        }
    }
}

fn permits(holds: &[HoldInfo]) -> Option<Permits> {
    let Mode::Permits { of, .. } = holds.first()?.mode else { return None };
    let in_use = holds.iter().filter_map(|hold| hold.mode.permits()).map(u64::from).sum();
    Some(Permits { in_use, of })
}

fn word(of: Mode) -> &'static str {
    match of {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
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
