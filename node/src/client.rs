//! A client, as the TypeScript layer calls it.

use std::sync::Arc;

use fencelock_support::{
    Broken, Error, ErrorKind, Hold, Lock, Mode, Operation, Owner, OwnerId, Result, Semaphore,
};
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

use crate::info::milliseconds;
use crate::metrics::Metrics;
use crate::options::{duration, patience};
use crate::outcome::{Ended, News, Outcome, loss};
use crate::session::{Held, Session};

/// A client of a store. A call holds back what it sends until the tick ends
/// ([`Environment`](crate::environment::Environment)). It gives its outcome when it ends at once (`true` when there is nothing
/// to say), otherwise null, and the outcome comes through the environment.
#[napi]
pub struct NativeClient {
    session: Arc<Session>,
}

impl NativeClient {
    pub(crate) fn new(session: Arc<Session>) -> NativeClient {
        NativeClient { session }
    }

    /// Starts a call; `fill` puts its result into the outcome.
    fn call<T: Send + 'static>(
        &self,
        call: i64,
        fill: impl FnOnce(T, &mut Outcome) + Send + 'static,
        start: impl FnOnce(Box<dyn FnOnce(Result<T>) + Send>) -> Result<Operation>,
    ) -> Option<Ended> {
        let slot = self.session.begin();
        let way = slot.clone();
        let begun = start(Box::new(move |result| way.end(News::with(call, result, fill))));
        match begun {
            Ok(_) => self.session.begun(&slot),
            Err(error) => failed(call, &error),
        }
    }

    fn lock(
        &self,
        name: &str,
        mode: Mode,
        lease: Option<f64>,
        max_hold: Option<f64>,
    ) -> Result<Lock> {
        lasting(self.session.client.lock_in(name, mode)?, lease, max_hold)
    }

    fn permits_of(&self, name: &str, of: u32, adopt: bool) -> Result<Semaphore> {
        let semaphore = self.session.client.semaphore(name, of)?;
        Ok(if adopt { semaphore.adopting() } else { semaphore })
    }

    /// Begins to wait for a lock.
    fn wait(&self, call: i64, lock: Result<Lock>, wait: Option<f64>) -> Option<Ended> {
        match lock.and_then(|lock| Ok((lock, patience(wait)?))) {
            Ok((lock, wait)) => {
                self.session.wait(call, false, |done| lock.acquire_async(wait, done))
            }
            Err(error) => failed(call, &error),
        }
    }

    fn ended(&self, hold: i64) -> Result<Hold> {
        self.session.hold(hold).ok_or_else(not_held)
    }
}

fn lasting(mut lock: Lock, lease: Option<f64>, max_hold: Option<f64>) -> Result<Lock> {
    if let Some(lease) = lease {
        lock = lock.lease(duration(lease)?);
    }
    if let Some(ceiling) = max_hold {
        lock = lock.max_hold(duration(ceiling)?);
    }
    Ok(lock)
}

fn failed(call: i64, error: &Error) -> Option<Ended> {
    Some(News::failed(call, error).ended())
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 holds")]
fn broken(broken: Broken, outcome: &mut Outcome) {
    outcome.number = Some(broken.ended as f64);
    outcome.token = broken.changed_hands;
}

fn not_held() -> Error {
    Error::new(ErrorKind::NotHeld, "this hold was released already: acquire again")
}

#[napi]
impl NativeClient {
    /// Acquires a lock; its hold has the number of this call. `wait`: how many milliseconds, 0 not at
    /// all, none for ever; `owner`: the explicit one, otherwise the acquisition is an owner of its
    /// own; an explicit `lease` and the ceiling over renewal, in milliseconds; `shared`: only to read.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "an object would be slower")]
    pub fn acquire(
        &self,
        call: i64,
        name: String,
        wait: Option<f64>,
        owner: Option<String>,
        lease: Option<f64>,
        max_hold: Option<f64>,
        shared: bool,
    ) -> Option<Ended> {
        let mode = if shared { Mode::Shared } else { Mode::Exclusive };
        let owner = owner.map(OwnerId::new).transpose().map(|owner| match owner {
            Some(owner) => Owner::Explicit(owner),
            None => Owner::Fresh,
        });
        let lock =
            owner.and_then(|owner| Ok(self.lock(&name, mode, lease, max_hold)?.owner(owner)));
        self.wait(call, lock, wait)
    }

    /// Takes `count` of `of` permits of a semaphore, together; with `adopt`, of as many as those say who
    /// hold or wait. Otherwise as `acquire`.
    #[napi]
    #[allow(clippy::too_many_arguments, reason = "an object would be slower")]
    pub fn acquire_permits(
        &self,
        call: i64,
        name: String,
        wait: Option<f64>,
        lease: Option<f64>,
        max_hold: Option<f64>,
        count: u32,
        of: u32,
        adopt: bool,
    ) -> Option<Ended> {
        let lock = Mode::Permits { count, of }.check().and_then(|()| {
            let lock = self.permits_of(&name, of, adopt)?.taking(count);
            lasting(lock, lease, max_hold)
        });
        self.wait(call, lock, wait)
    }

    /// Looks whether there can be such a semaphore.
    #[napi]
    pub fn semaphore(&self, name: String, of: u32) -> Ended {
        News::with(0, self.session.client.semaphore(&name, of), |_, _| ()).ended()
    }

    /// How many of so many permits are free, in the outcome's `number`.
    #[napi]
    pub fn available_permits(
        &self,
        call: i64,
        name: String,
        of: u32,
        adopt: bool,
    ) -> Option<Ended> {
        self.call(
            call,
            |free, outcome| outcome.number = Some(f64::from(free)),
            |done| Ok(self.permits_of(&name, of, adopt)?.available_permits_async(done)),
        )
    }

    /// Gives a semaphore so many permits; whether anybody holds or waits, in the outcome's `flag`.
    #[napi]
    pub fn resize(&self, call: i64, name: String, of: u32) -> Option<Ended> {
        self.call(
            call,
            |used, outcome| outcome.flag = Some(used),
            |done| Ok(self.session.client.semaphore(&name, of)?.resize_async(of, done)),
        )
    }

    /// Goes on with a hold elsewhere; its hold has the number of this call.
    #[napi]
    pub fn attach(&self, call: i64, ticket: String) -> Option<Ended> {
        self.session.wait(call, true, |done| self.session.client.attach_async(ticket, done))
    }

    /// Gives up the wait of an acquire or attach. Its outcome comes all the same: `cancelled`, or a
    /// hold when it was too late.
    #[napi]
    pub fn cancel(&self, wait: i64) {
        self.session.cancel(wait);
    }

    /// Releases a hold. When it was lost before, the outcome says why.
    #[napi]
    pub fn release(&self, call: i64, hold: i64) -> Option<Ended> {
        let Some(Held { hold, reason }) = self.session.take(hold) else {
            return failed(call, &not_held());
        };
        let slot = self.session.begin();
        let way = slot.clone();
        hold.release_async(move |released| {
            way.end(match released {
                Ok(()) => News::Done(call),
                Err(error) => {
                    let mut outcome = Outcome::failed(call, &error);
                    if error.kind() == ErrorKind::Lost {
                        outcome.reason = reason.get().map(|reason| loss(*reason).to_owned());
                    }
                    outcome.into()
                }
            });
        });
        self.session.begun(&slot)
    }

    /// Releases a hold in the background.
    #[napi]
    pub fn discard(&self, hold: i64) {
        drop(self.session.take(hold));
    }

    /// Sets a hold's lease to so many milliseconds from now.
    #[napi]
    pub fn extend(&self, call: i64, hold: i64, lease: f64) -> Option<Ended> {
        self.call(
            call,
            |(), _| (),
            |done| Ok(self.ended(hold)?.extend_async(duration(lease)?, done)),
        )
    }

    /// Has a hold read instead of write, or write instead of read; its token now, in the outcome.
    #[napi]
    pub fn convert(&self, call: i64, hold: i64, shared: bool) -> Option<Ended> {
        let held = match self.ended(hold) {
            Ok(held) => held,
            Err(error) => return failed(call, &error),
        };
        let converted = held.clone();
        let fill = move |(), outcome: &mut Outcome| {
            outcome.token = Some(converted.token());
        };
        self.call(call, fill, |done| {
            Ok(if shared { held.downgrade_async(done) } else { held.try_upgrade_async(done) })
        })
    }

    /// How many milliseconds a hold can be trusted from now on.
    #[napi]
    pub fn remaining(&self, hold: i64) -> f64 {
        self.session.hold(hold).map_or(0.0, |hold| milliseconds(hold.remaining()))
    }

    /// Whether another client waits for a hold's lock.
    #[napi]
    pub fn is_wanted(&self, hold: i64) -> bool {
        self.session.hold(hold).is_some_and(|hold| hold.is_wanted())
    }

    /// Asks to be told when another client waits for a hold's lock.
    #[napi]
    pub fn watch(&self, hold: i64) {
        if let Some(held) = self.session.hold(hold) {
            let inbox = self.session.inbox.clone();
            held.on_wanted(move || inbox.push(Outcome::wanted(hold).into()));
        }
    }

    /// The ticket of a hold, in the outcome's `text`.
    #[napi]
    pub fn ticket(&self, hold: i64) -> Ended {
        let ticket = self.ended(hold).and_then(|hold| hold.ticket());
        News::with(hold, ticket, |ticket, outcome| outcome.text = Some(ticket)).ended()
    }

    /// What the store knows of a lock, in the outcome's `lock`.
    #[napi]
    pub fn inspect(&self, call: i64, name: String) -> Option<Ended> {
        self.call(
            call,
            |info: Option<fencelock_support::LockInfo>, outcome| {
                outcome.lock = info.map(Into::into);
            },
            |done| Ok(self.session.client.inspect_async(name, done)),
        )
    }

    /// Whether anybody holds a lock, in the outcome's `flag`.
    #[napi]
    pub fn is_locked(&self, call: i64, name: String) -> Option<Ended> {
        self.call(
            call,
            |locked, outcome| outcome.flag = Some(locked),
            |done| Ok(self.session.client.lock(&name)?.is_locked_async(done)),
        )
    }

    /// The names of at most `limit` locks that begin with `prefix`, in the outcome's `names`.
    #[napi]
    pub fn list(&self, call: i64, prefix: String, limit: u32) -> Option<Ended> {
        self.call(
            call,
            |names, outcome| outcome.names = Some(names),
            |done| Ok(self.session.client.list_async(prefix, limit as usize, done)),
        )
    }

    /// Ends the holds on a lock that were seen under a token; how many, in the outcome's `number`, and
    /// the token under which somebody else holds it now, in its `token`.
    #[napi]
    pub fn break_lock(&self, call: i64, name: String, token: BigInt) -> Option<Ended> {
        let (_, token, _) = token.get_u64();
        self.call(call, broken, |done| Ok(self.session.client.break_lock_async(name, token, done)))
    }

    /// Ends one hold, by its id; what came of it as for `break_lock`.
    #[napi]
    pub fn break_hold(
        &self,
        call: i64,
        name: String,
        token: BigInt,
        hold: String,
    ) -> Option<Ended> {
        let (_, token, _) = token.get_u64();
        self.call(call, broken, |done| {
            self.session.client.break_hold_async(name, token, &hold, done)
        })
    }

    /// The store's time, in the outcome's `number`.
    #[napi]
    pub fn ping(&self, call: i64) -> Option<Ended> {
        self.call(
            call,
            |time, outcome| outcome.number = Some(milliseconds(time)),
            |done| Ok(self.session.client.ping_async(done)),
        )
    }

    /// Closes the client. Whether all was released, in the outcome's `flag`.
    #[napi]
    pub fn close(&self, call: i64) -> Option<Ended> {
        self.call(
            call,
            |all, outcome| outcome.flag = Some(all),
            |done| Ok(self.session.client.close_async(done)),
        )
    }

    /// Takes no new acquires, waits so many milliseconds for the holds to be released, and closes.
    /// Whether they were, in the outcome's `flag`.
    #[napi]
    pub fn drain(&self, call: i64, limit: f64) -> Option<Ended> {
        let slot = self.session.begin();
        let way = slot.clone();
        let begun = duration(limit).and_then(|limit| {
            self.session.client.drain_async(limit, move |drained| {
                way.end(News::with(call, Ok(drained), |drained, outcome| {
                    outcome.flag = Some(drained);
                }));
            })
        });
        match begun {
            Ok(()) => slot.started(),
            Err(error) => failed(call, &error),
        }
    }

    /// Whether the client is closed.
    #[napi(getter)]
    pub fn is_closed(&self) -> bool {
        self.session.client.is_closed()
    }

    /// The id under which the store knows the client.
    #[napi(getter)]
    pub fn id(&self) -> String {
        self.session.client.id().to_owned()
    }

    /// What was counted.
    #[napi]
    pub fn metrics(&self) -> Metrics {
        self.session.client.metrics().into()
    }

    /// What the store can and cannot do.
    #[napi]
    pub fn capabilities(&self) -> Capabilities {
        let can = self.session.client.capabilities();
        Capabilities {
            store: can.store.to_owned(),
            processes: can.processes,
            durable: can.durable,
            owners: can.owners,
            leases: can.leases,
            abandoned: can.abandoned,
            paths: can.paths,
            shared: can.shared,
            permits: can.permits,
        }
    }
}

/// What a store can and cannot do.
#[napi(object, object_from_js = false)]
pub struct Capabilities {
    /// The store's name: `memory`, `sqlite`, `redis`, …
    pub store: String,
    /// Several processes may share it.
    pub processes: bool,
    /// Locks survive the end of every client.
    pub durable: bool,
    /// Explicit owners re-enter from another client.
    pub owners: bool,
    /// Explicit leases end at the store by themselves.
    pub leases: bool,
    /// `previousAbandoned` is known.
    pub abandoned: bool,
    /// Names of locks are paths: slashes separate, no part is empty, and a lock does not lie below
    /// another.
    pub paths: bool,
    /// Locks can be shared.
    pub shared: bool,
    /// It has semaphores.
    pub permits: bool,
}
