//! What people look at.

use std::time::Duration;

use crate::hold::Abandoned;

/// The state of a lock.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct LockInfo {
    /// The lock's name.
    pub name: String,
    /// The explicit owner, if it has one.
    pub owner: Option<String>,
    /// The holds: several of one owner, of readers, or of permits; or none.
    pub holds: Vec<HoldInfo>,
    /// The token of the hold; 0 when nobody holds the lock.
    pub token: u64,
    /// The highest token that was given out.
    pub last_token: u64,
    /// Whether the last holder was lost instead of releasing.
    pub abandoned: Abandoned,
    /// Who waits, in order; an entry for each client, and 256 at the most.
    pub waiters: Vec<WaiterInfo>,
    /// How many wait in all: the whole queue, and who waits within the clients of the holds and waiters
    /// that are shown, as far as that is known.
    pub waiting: u32,
}

/// What a hold lets beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum HoldMode {
    /// Nobody else.
    Exclusive,
    /// Readers.
    Shared,
    /// As many permits as are left.
    Permits,
}

/// A hold in a `LockInfo`.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct HoldInfo {
    /// The hold's id.
    pub id: String,
    /// The client's id.
    pub client_id: String,
    /// The client's label.
    pub label: String,
    /// For how long it lasts unless it is renewed.
    pub expires_in: Duration,
    /// Its lease.
    pub lease: Duration,
    /// What it lets beside it.
    pub mode: HoldMode,
    /// How many permits it takes; 0 for a lock.
    pub permits: u32,
    /// Its token.
    pub token: u64,
    /// Whether it was handed over and its holder has not been heard from yet.
    pub claim: bool,
    /// How many wait within its client, which hands the lock on among them, as that said with its latest
    /// acquire or renewal: up to a third of a lease old, and 65,535 at the most; exact for the client that
    /// asks. Nothing where it is unknown (ZooKeeper).
    pub local_waiters: Option<u32>,
}

/// A waiter in a `LockInfo`.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct WaiterInfo {
    /// The id that its hold will have.
    pub id: String,
    /// The client's id.
    pub client_id: String,
    /// The client's label.
    pub label: String,
    /// The explicit owner, if it has one.
    pub owner: Option<String>,
    /// How long ago it was heard from.
    pub heard_ago: Duration,
    /// Whether it would be passed over now.
    pub silent: bool,
    /// What its hold will let beside it.
    pub mode: HoldMode,
    /// How many permits it wants; 0 for a lock.
    pub permits: u32,
    /// How many more wait within its client, as in `HoldInfo`.
    pub local_waiters: Option<u32>,
}

/// What became of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Broken {
    /// How many holds were ended; 0 when what was named holds nothing.
    pub ended: u32,
    /// The later token under which somebody else holds the lock; nothing was ended then.
    pub changed_hands: Option<u64>,
}

/// What a store can and cannot do.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Capabilities {
    /// The store's name: `memory`, `sqlite`, `redis`, `zookeeper`.
    pub store: String,
    /// Several processes may share it.
    pub processes: bool,
    /// Locks survive the end of every client.
    pub durable: bool,
    /// Explicit owners re-enter from another client.
    pub owners: bool,
    /// Explicit leases end at the store by themselves.
    pub leases: bool,
    /// Whether the previous holder was lost is known.
    pub abandoned: bool,
    /// It has read-write locks.
    pub shared: bool,
    /// It has semaphores.
    pub permits: bool,
    /// Names of locks are paths: slashes separate, no part is empty, and a lock does not lie below
    /// another.
    pub paths: bool,
}

impl From<fencelock_support::LockInfo> for LockInfo {
    fn from(info: fencelock_support::LockInfo) -> LockInfo {
        LockInfo {
            name: info.name.as_str().to_owned(),
            owner: info.owner,
            holds: info.holds.into_iter().map(HoldInfo::from).collect(),
            token: info.token,
            last_token: info.last_token,
            abandoned: info.abandoned.into(),
            waiters: info.waiters.into_iter().map(WaiterInfo::from).collect(),
            waiting: u32::try_from(info.waiting).unwrap_or(u32::MAX),
        }
    }
}

impl From<fencelock_support::Broken> for Broken {
    fn from(broken: fencelock_support::Broken) -> Broken {
        Broken {
            ended: u32::try_from(broken.ended).unwrap_or(u32::MAX),
            changed_hands: broken.changed_hands,
        }
    }
}

impl From<fencelock_support::HoldInfo> for HoldInfo {
    fn from(hold: fencelock_support::HoldInfo) -> HoldInfo {
        HoldInfo {
            id: hold.hold.to_string(),
            client_id: hold.client,
            label: hold.label,
            expires_in: hold.expires_in,
            lease: hold.lease,
            mode: hold.mode.into(),
            permits: hold.mode.permits().unwrap_or(0),
            token: hold.token,
            claim: hold.claim,
            local_waiters: hold.local_waiters,
        }
    }
}

impl From<fencelock_support::Mode> for HoldMode {
    fn from(mode: fencelock_support::Mode) -> HoldMode {
        match mode {
            fencelock_support::Mode::Shared => HoldMode::Shared,
            mode if mode.permits().is_some() => HoldMode::Permits,
            _ => HoldMode::Exclusive,
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
            heard_ago: waiter.heard_ago,
            silent: waiter.silent,
            mode: waiter.mode.into(),
            permits: waiter.mode.permits().unwrap_or(0),
            local_waiters: waiter.local_waiters,
        }
    }
}

impl From<fencelock_support::Capabilities> for Capabilities {
    fn from(capabilities: fencelock_support::Capabilities) -> Capabilities {
        Capabilities {
            store: capabilities.store.to_owned(),
            processes: capabilities.processes,
            durable: capabilities.durable,
            owners: capabilities.owners,
            leases: capabilities.leases,
            abandoned: capabilities.abandoned,
            shared: capabilities.shared,
            permits: capabilities.permits,
            paths: capabilities.paths,
        }
    }
}
