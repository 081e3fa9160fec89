//! The data: the locks of one store, and the inboxes of its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use fencelock_engine::Name;
use fencelock_engine::reply::{Body, Failure, Push, Reply};
use fencelock_engine::request::{Op, Request};
use fencelock_engine::store::{Announce, Caller, Delivery, Record, revoke_unsupported};

use crate::inbox::Inbox;

/// Idle locks are looked for when their number has reached this, and again whenever it doubled.
const SWEEP_FROM: usize = 1024;

/// One store.
#[derive(Default)]
pub(crate) struct Store {
    state: Mutex<State>,
}

impl Store {
    /// The store of this name, for as long as the process lives: were it dropped with its last
    /// client, its tokens would begin anew.
    pub(crate) fn named(name: &str) -> Arc<Store> {
        let stores = Stores::own();
        let mut stores = stores.named.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(stores.entry(name.to_owned()).or_default())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The stores of one process. A forked child has none of its parent's: a thread that does not
/// exist there may have held their mutex.
struct Stores {
    process: u32,
    named: Mutex<BTreeMap<String, Arc<Store>>>,
}

static STORES: ArcSwapOption<Stores> = ArcSwapOption::const_empty();

impl Stores {
    fn own() -> Arc<Stores> {
        let process = std::process::id();
        let fresh = Arc::new(Stores { process, named: Mutex::default() });
        let is_own = |known: &Option<Arc<Stores>>| {
            known.as_ref().is_some_and(|known| known.process == process)
        };
        STORES.rcu(|known| if is_own(known) { known.clone() } else { Some(fresh.clone()) });
        STORES.load_full().unwrap_or(fresh)
    }
}

/// What the store's mutex guards.
pub(crate) struct State {
    records: BTreeMap<Name, Record>,
    sweep_at: usize,
    inboxes: BTreeMap<String, Arc<Inbox>>,
    /// Kept for its allocation.
    pub(crate) batch: Vec<Request>,
}

impl Default for State {
    fn default() -> State {
        State {
            records: BTreeMap::new(),
            sweep_at: SWEEP_FROM,
            inboxes: BTreeMap::new(),
            batch: Vec::new(),
        }
    }
}

impl State {
    pub(crate) fn join(&mut self, client: &str, inbox: Arc<Inbox>) {
        self.inboxes.insert(client.to_owned(), inbox);
    }

    pub(crate) fn leave(&mut self, client: &str, inbox: &Arc<Inbox>) {
        if self.inboxes.get(client).is_some_and(|present| Arc::ptr_eq(present, inbox)) {
            self.inboxes.remove(client);
        }
    }

    /// Executes one request. `told` gathers the inboxes that got a push.
    pub(crate) fn execute(
        &mut self,
        now: u64,
        caller: &Caller,
        op: &Op,
        told: &mut Vec<Arc<Inbox>>,
    ) -> Result<Reply, Failure> {
        let State { records, inboxes, .. } = self;
        let mut post = Post { inboxes, told };
        let body = match op {
            Op::Acquire(ask) => {
                let state =
                    touch(records, &ask.lock, |record| record.acquire(now, caller, ask, &mut post));
                Body::Acquire(state.map_err(Failure::Refused)?)
            }
            Op::Beat(beats) => Body::Beat(
                beats
                    .iter()
                    .map(|beat| {
                        touch(records, &beat.lock, |record| {
                            record.beat(now, caller, beat, &mut post)
                        })
                    })
                    .collect(),
            ),
            Op::Release(release) => Body::Release(touch(records, &release.lock, |record| {
                record.release(now, release, &mut post)
            })),
            Op::Break(name) => {
                Body::Break(touch(records, name, |record| record.break_all(now, name, &mut post)))
            }
            Op::Inspect(name) => {
                Body::Inspect(records.get(name).map(|record| record.inspect(now, name)))
            }
            Op::List { prefix, limit } => Body::List(list(records, prefix, *limit)),
            Op::Revoke(_) => return Err(Failure::Refused(revoke_unsupported())),
            Op::Time => Body::Time,
        };
        if self.records.len() >= self.sweep_at {
            self.records.retain(|_, record| !record.is_collectable(now));
            self.sweep_at = SWEEP_FROM.max(2 * self.records.len());
        }
        Ok(Reply { now, body })
    }
}

/// Runs `change` on a lock's record; a lock of which nothing is worth keeping is not kept.
fn touch<T>(
    records: &mut BTreeMap<Name, Record>,
    name: &Name,
    change: impl FnOnce(&mut Record) -> T,
) -> T {
    if let Some(record) = records.get_mut(name) {
        return change(record);
    }
    let mut record = Record::default();
    let result = change(&mut record);
    if record != Record::default() {
        records.insert(name.clone(), record);
    }
    result
}

fn list(records: &BTreeMap<Name, Record>, prefix: &str, limit: usize) -> Vec<Name> {
    if prefix.is_empty() {
        return records.keys().take(limit).cloned().collect();
    }
    // What is no name cannot begin one either.
    let Ok(first) = Name::new(prefix) else { return Vec::new() };
    let from_there = records.range(first..).map(|(name, _)| name);
    from_there.take_while(|name| name.as_str().starts_with(prefix)).take(limit).cloned().collect()
}

struct Post<'a> {
    inboxes: &'a BTreeMap<String, Arc<Inbox>>,
    told: &'a mut Vec<Arc<Inbox>>,
}

impl Announce for Post<'_> {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        let Some(inbox) = self.inboxes.get(client) else { return Delivery::Nobody };
        if !inbox.put(fencelock_engine::Event::Push(push)) {
            return Delivery::Nobody;
        }
        if !self.told.iter().any(|other| Arc::ptr_eq(other, inbox)) {
            self.told.push(Arc::clone(inbox));
        }
        Delivery::Delivered
    }
}
