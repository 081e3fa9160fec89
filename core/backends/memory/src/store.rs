//! The data: the locks of one store, and the inboxes of its clients.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;
use fencelock_engine::options::RETENTION;
use fencelock_engine::reply::{Body, Failure, Push, Reply};
use fencelock_engine::request::{Op, Request};
use fencelock_engine::store::{Announce, Caller, Delivery, revoke_unsupported};

use crate::inbox::Inbox;
use crate::records::Records;

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
#[derive(Default)]
pub(crate) struct State {
    records: Records,
    inboxes: BTreeMap<String, Arc<Inbox>>,
    /// Kept for its allocation.
    pub(crate) batch: Vec<Request>,
}

impl State {
    pub(crate) fn join(&mut self, client: &str, inbox: Arc<Inbox>) {
        self.inboxes.insert(client.to_owned(), inbox);
    }

    /// With the last client go the locks that have nothing to tell.
    pub(crate) fn leave(&mut self, now: u64, client: &str, inbox: &Arc<Inbox>) {
        if self.inboxes.get(client).is_some_and(|present| Arc::ptr_eq(present, inbox)) {
            self.inboxes.remove(client);
        }
        if self.inboxes.is_empty() {
            self.records.forget_idle(now);
        }
    }

    #[cfg(test)]
    pub(crate) fn names(&self) -> usize {
        self.records.len()
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
                let retention = ask.after.as_ref().map_or(RETENTION, |after| after.retention);
                let state = records.touch(now, &ask.lock, retention, |record| {
                    record.acquire(now, caller, ask, &mut post)
                });
                Body::Acquire(state.map_err(Failure::Refused)?)
            }
            Op::Beat(beats) => Body::Beat(
                beats
                    .iter()
                    .map(|beat| {
                        records.touch(now, &beat.lock, RETENTION, |record| {
                            record.beat(now, caller, beat, &mut post)
                        })
                    })
                    .collect(),
            ),
            Op::Release(release) => {
                let retention = release.retention;
                Body::Release(records.touch(now, &release.lock, retention, |record| {
                    record.release(now, release, &mut post)
                }))
            }
            Op::Convert(ask) => {
                let state = records.touch(now, &ask.lock, RETENTION, |record| {
                    record.convert(now, caller, ask, &mut post)
                });
                Body::Convert(state.map_err(Failure::Refused)?)
            }
            Op::Resize(ask) => {
                let resized = records
                    .touch(now, &ask.lock, RETENTION, |record| record.resize(now, ask, &mut post));
                Body::Resize(resized.map_err(Failure::Refused)?)
            }
            Op::Break(what) => Body::Break(records.touch(now, &what.lock, RETENTION, |record| {
                record.break_lock(now, what, &mut post)
            })),
            Op::Inspect(name) => {
                Body::Inspect(records.get(name).map(|record| record.inspect(now, name)))
            }
            Op::List { prefix, limit } => Body::List(records.list(prefix, *limit)),
            Op::Revoke(_) => return Err(Failure::Refused(revoke_unsupported())),
            Op::Time => Body::Time,
        };
        records.sweep(now, &mut post);
        Ok(Reply { now, body })
    }
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
