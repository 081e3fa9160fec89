//! The state of a lock, for people, and what a store can do.

use fencelock_support::Abandoned;
use pyo3::prelude::*;

use crate::mode;

/// What a store can and cannot do, from `Client.capabilities`.
#[pyclass(frozen, get_all, module = "fencelock")]
pub(crate) struct Capabilities {
    /// The store's name: `memory`, `sqlite`, `redis` or `zookeeper`.
    store: &'static str,
    /// Whether several processes may share it.
    processes: bool,
    /// Whether locks survive the end of every client.
    durable: bool,
    /// Whether explicit owners re-enter from another client.
    owners: bool,
    /// Whether explicit leases end at the store by themselves.
    leases: bool,
    /// Whether `previous_abandoned` is known.
    abandoned: bool,
    /// Whether names of locks are paths: slashes separate, no part is empty, and a lock does not lie
    /// below another.
    paths: bool,
    /// Whether it has read-write locks.
    shared: bool,
    /// Whether it has semaphores.
    permits: bool,
}

impl From<fencelock_support::Capabilities> for Capabilities {
    fn from(can: fencelock_support::Capabilities) -> Capabilities {
        let fencelock_support::Capabilities {
            store,
            processes,
            durable,
            owners,
            leases,
            abandoned,
            paths,
            shared,
            permits,
            ..
        } = can;
        Capabilities {
            store,
            processes,
            durable,
            owners,
            leases,
            abandoned,
            paths,
            shared,
            permits,
        }
    }
}

/// The state of a lock, from `Client.inspect`.
#[pyclass(frozen, get_all, module = "fencelock")]
pub(crate) struct LockInfo {
    /// The lock's name.
    name: String,
    /// The explicit owner of the present exclusive holds, if they have one.
    owner: Option<String>,
    /// The holds: none when the lock is free, several when an explicit owner re-entered, and of readers
    /// and of a semaphore.
    holds: Py<pyo3::types::PyTuple>,
    /// The token of the present holds, the highest one where each has its own; or 0.
    token: u64,
    /// The highest token that was given out.
    last_token: u64,
    /// Whether the last holder was lost instead of releasing; None when nobody knows.
    abandoned: Option<bool>,
    /// Who waits, in order; an entry for each client, and 256 at the most.
    waiters: Py<pyo3::types::PyTuple>,
    /// How many wait in all: the whole queue, and who waits within the clients of the holds and waiters
    /// that are shown, as far as that is known.
    waiting: usize,
}

/// What became of a break, from `Client.break_lock`; true when anything was ended.
#[pyclass(frozen, get_all, module = "fencelock")]
pub(crate) struct Broken {
    /// How many holds were ended; 0 when what was named holds nothing.
    ended: usize,
    /// The later token under which somebody else holds the lock; nothing was ended then.
    changed_hands: Option<u64>,
}

impl From<fencelock_support::Broken> for Broken {
    fn from(broken: fencelock_support::Broken) -> Broken {
        Broken { ended: broken.ended, changed_hands: broken.changed_hands }
    }
}

/// A hold in a `LockInfo`. Times are seconds.
#[pyclass(frozen, get_all, module = "fencelock")]
pub(crate) struct HoldInfo {
    /// The hold's id.
    hold: String,
    /// The client's id.
    client: String,
    /// The client's label.
    label: String,
    /// For how long it lasts unless it is renewed.
    expires_in: f64,
    /// Its lease.
    lease: f64,
    /// How it shares the lock: `exclusive`, `shared` or `permits`.
    mode: &'static str,
    /// How many permits it takes; None of a lock.
    permits: Option<u32>,
    /// Its token.
    token: u64,
    /// Its explicit owner, if it has one.
    owner: Option<String>,
    /// Whether it was handed over and its holder has not been heard from yet.
    claim: bool,
    /// How many wait within its client, which hands the lock on among them, as that said with its latest
    /// acquire or renewal: up to a third of a lease old, and 65,535 at the most; exact for the client that
    /// asks. None where it is unknown (ZooKeeper).
    local_waiters: Option<u32>,
}

/// A waiter in a `LockInfo`.
#[pyclass(frozen, get_all, module = "fencelock")]
pub(crate) struct WaiterInfo {
    /// The id that its hold will have.
    hold: String,
    /// The client's id.
    client: String,
    /// The client's label.
    label: String,
    /// The explicit owner, if it has one.
    owner: Option<String>,
    /// How many seconds ago it was heard from.
    heard_ago: f64,
    /// Whether it would be passed over now.
    silent: bool,
    /// How it wants to share the lock, as in `HoldInfo`.
    mode: &'static str,
    /// How many permits it wants; None of a lock.
    permits: Option<u32>,
    /// How many more wait within its client, as in `HoldInfo`.
    local_waiters: Option<u32>,
}

#[pymethods]
impl Capabilities {
    fn __repr__(&self) -> String {
        let can = [
            ("processes", self.processes),
            ("durable", self.durable),
            ("owners", self.owners),
            ("leases", self.leases),
            ("abandoned", self.abandoned),
            ("paths", self.paths),
            ("shared", self.shared),
            ("permits", self.permits),
        ];
        let can = can.map(|(name, can)| format!("{name}={}", if can { "True" } else { "False" }));
        format!("Capabilities(store='{}', {})", self.store, can.join(", "))
    }
}

#[pymethods]
impl Broken {
    fn __bool__(&self) -> bool {
        self.ended > 0
    }

    fn __repr__(&self) -> String {
        let token = self.changed_hands.map_or("None".to_owned(), |token| token.to_string());
        format!("Broken(ended={}, changed_hands={token})", self.ended)
    }
}

#[pymethods]
impl LockInfo {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!(
            "LockInfo(name={:?}, token={}, holds={}, waiting={})",
            self.name,
            self.token,
            self.holds.bind(py).as_any().len().unwrap_or(0),
            self.waiting,
        )
    }
}

#[pymethods]
impl HoldInfo {
    fn __repr__(&self) -> String {
        format!(
            "HoldInfo(client={:?}, label={:?}, expires_in={:.3})",
            self.client, self.label, self.expires_in
        )
    }
}

#[pymethods]
impl WaiterInfo {
    fn __repr__(&self) -> String {
        format!(
            "WaiterInfo(client={:?}, label={:?}, silent={})",
            self.client, self.label, self.silent
        )
    }
}

/// The same as objects of Python.
pub(crate) fn shown(
    py: Python<'_>,
    info: Option<fencelock_support::LockInfo>,
) -> PyResult<Option<LockInfo>> {
    let Some(info) = info else { return Ok(None) };
    let mut holds = Vec::with_capacity(info.holds.len());
    for hold in info.holds {
        let hold = HoldInfo {
            hold: hold.hold.to_string(),
            client: hold.client,
            label: hold.label,
            expires_in: hold.expires_in.as_secs_f64(),
            lease: hold.lease.as_secs_f64(),
            mode: mode::named(hold.mode),
            permits: hold.mode.permits(),
            token: hold.token,
            owner: hold.owner,
            claim: hold.claim,
            local_waiters: hold.local_waiters,
        };
        holds.push(Bound::new(py, hold)?);
    }
    let mut waiters = Vec::with_capacity(info.waiters.len());
    for waiter in info.waiters {
        let waiter = WaiterInfo {
            hold: waiter.hold.to_string(),
            client: waiter.client,
            label: waiter.label,
            owner: waiter.owner,
            heard_ago: waiter.heard_ago.as_secs_f64(),
            silent: waiter.silent,
            mode: mode::named(waiter.mode),
            permits: waiter.mode.permits(),
            local_waiters: waiter.local_waiters,
        };
        waiters.push(Bound::new(py, waiter)?);
    }
    Ok(Some(LockInfo {
        name: info.name.to_string(),
        owner: info.owner,
        holds: pyo3::types::PyTuple::new(py, holds)?.unbind(),
        token: info.token,
        last_token: info.last_token,
        abandoned: match info.abandoned {
            Abandoned::Yes => Some(true),
            Abandoned::No => Some(false),
            Abandoned::Unknown => None,
        },
        waiters: pyo3::types::PyTuple::new(py, waiters)?.unbind(),
        waiting: info.waiting,
    }))
}
