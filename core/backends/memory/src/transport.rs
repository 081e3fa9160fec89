//! One client's connection to a store.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fencelock_engine::reply::Failure;
use fencelock_engine::request::Request;
use fencelock_engine::store::Caller;
use fencelock_engine::transport::{Capabilities, Doubt, Sink, Transport};
use fencelock_engine::{ClientId, Error, Event};

use crate::clock;
use crate::inbox::Inbox;
use crate::options::Options;
use crate::store::Store;

/// What this store can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    store: "memory",
    processes: false,
    durable: false,
    owners: true,
    leases: true,
    abandoned: true,
    paths: false,
    shared: true,
    permits: true,
};

/// Opens a store of this process. [`Event::Up`] is delivered by the first
/// [`flush`](Transport::flush), so that the caller can finish its own setting up first.
///
/// # Errors
/// None today; other stores have many.
pub fn open(
    options: Options,
    client: ClientId,
    sink: Arc<dyn Sink>,
) -> Result<Arc<MemoryTransport>, Error> {
    let store = Store::named(&options.name);
    let inbox = Arc::new(Inbox::new(sink));
    inbox.put(Event::Up { now: clock::now() });
    store.lock().join(client.id(), Arc::clone(&inbox));
    let caller = Caller { client, polling: false };
    Ok(Arc::new(MemoryTransport { store, inbox, caller, queue: Mutex::default() }))
}

/// One client's connection to a store of this process. Executes requests in
/// [`flush`](Transport::flush), on the caller's thread, which also delivers what they cause, to
/// other clients too.
pub struct MemoryTransport {
    store: Arc<Store>,
    inbox: Arc<Inbox>,
    caller: Caller,
    queue: Mutex<Vec<Request>>,
}

impl MemoryTransport {
    fn queue(&self) -> MutexGuard<'_, Vec<Request>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for MemoryTransport {
    fn enqueue(&self, request: Request) {
        self.queue().push(request);
    }

    fn flush(&self) {
        let mut told = Vec::new();
        if !self.queue().is_empty() {
            let mut state = self.store.lock();
            // Taken under the store's mutex, or two threads could change their order.
            let mut batch = std::mem::take(&mut state.batch);
            std::mem::swap(&mut batch, &mut *self.queue());
            let now = clock::now();
            for request in batch.drain(..) {
                let result = state.execute(now, &self.caller, &request.op, &mut told);
                self.inbox.put(Event::Reply { request: request.id, result });
            }
            state.batch = batch;
        }
        // Others first: what they were given counts from earlier than our own reply.
        for inbox in &told {
            inbox.deliver();
        }
        self.inbox.deliver();
    }

    fn executes(&self) -> bool {
        true
    }

    /// There is no connection to lose: what was enqueued and not flushed fails as not sent, and
    /// the next [`flush`](Transport::flush) tells so.
    fn reconnect(&self, _: Doubt) {
        // Under the store's mutex, so that what a flush executes is answered before.
        let state = self.store.lock();
        let requests = std::mem::take(&mut *self.queue());
        for request in requests {
            self.inbox.put(Event::Reply { request: request.id, result: Err(Failure::NotSent) });
        }
        self.inbox.put(Event::Down { reason: "asked to reconnect".to_owned() });
        self.inbox.put(Event::Up { now: clock::now() });
        drop(state);
    }

    /// A delivery that has begun on another thread may still end after this.
    fn close(&self) {
        let mut state = self.store.lock();
        state.leave(clock::now(), self.caller.client.id(), &self.inbox);
        drop(state);
        self.inbox.close();
        self.queue().clear();
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.close();
    }
}
