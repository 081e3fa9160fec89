//! What a store's crate offers to whoever drives the engine.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::error::Error;
use crate::event::Event;
use crate::lane::LaneId;
use crate::request::{Request, RequestId};

pub use crate::caught::caught;

/// Where a transport delivers what it hears. Called from any thread, never while the transport
/// holds a lock of its own, and never from within [`Transport::enqueue`].
pub trait Sink: Send + Sync + 'static {
    /// Takes one event.
    fn deliver(&self, event: Event);

    /// Takes several at once, in order; cheaper than one by one.
    fn deliver_all(&self, events: &mut Vec<Event>) {
        for event in events.drain(..) {
            self.deliver(event);
        }
    }

    /// As [`Sink::deliver_all`], of one of a store's several servers. Whoever does not tell them apart
    /// takes it as the store's.
    fn deliver_on(&self, lane: LaneId, events: &mut Vec<Event>) {
        let _ = lane;
        self.deliver_all(events);
    }
}

/// Who wants to know of a transport's sockets, to learn when there is something to read.
pub trait Watcher: Send + Sync + 'static {
    /// A socket, by its descriptor, on which answers or pushes will come. Called for each of every
    /// new connection while it is open; the watcher must not close it, and must not keep it open.
    fn watch(&self, socket: i32);
}

/// That the connection has been silent for long, as of one moment. The doubt ends with an answer, or
/// with the connection, and either may come while the transport is told of it: it counts only while
/// both of these are so still. Otherwise one of the two would doubt the connection, and the other not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The oldest request without an answer.
    pub owed: RequestId,
    /// The request whose answer, or refusal by the store, came last on this connection.
    pub heard: Option<RequestId>,
}

/// The end of a transport that is closed.
pub type Farewell = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connection to a store, made anew by itself when it breaks.
///
/// It never repeats a request: only the engine does. Every request that was enqueued gets exactly
/// one [`Event::Reply`], unless the transport is closed first.
pub trait Transport: Send + Sync + 'static {
    /// Takes requests to be sent in this order. Called under the engine's mutex: it may only
    /// append to a queue.
    fn enqueue(&self, request: Request);

    /// Sends what was enqueued. Called without the engine's mutex, by the thread that enqueued.
    /// It must not block on the network or on a disk; a store in memory may execute here and
    /// deliver at once.
    fn flush(&self);

    /// Whether [`flush`](Transport::flush) itself executes what was enqueued, so that nothing is
    /// gained by leaving it until there is more.
    fn executes(&self) -> bool {
        false
    }

    /// The present connection has been silent for long. A transport that cannot tell whether it is
    /// dead makes another, and gives up the first, with what is in flight, only when the other is
    /// answered and the first is silent still: a server that is slow, or stands still, must not find
    /// all its clients connecting anew. One that answers whatever it was given, however late, gives up
    /// nothing. Called again only after an answer or a new connection, and without the engine's mutex:
    /// see [`Doubt`].
    fn reconnect(&self, doubt: Doubt);

    /// What a server is called by people, where there are several: its host and port.
    fn server(&self, lane: LaneId) -> Option<String> {
        let _ = lane;
        None
    }

    /// Closes for good. Nothing is delivered afterwards.
    fn close(&self);

    /// What is left to tell the server after [`close`](Transport::close): whoever closes lets it end,
    /// which takes a moment at the most. `None` where there is nothing to tell.
    fn farewell(&self) -> Option<Farewell> {
        None
    }

    /// Shows the sockets, of this connection and of those to come, to a watcher. False when what has
    /// come cannot be known from them, or when they are watched already.
    fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        let _ = watcher;
        false
    }
}

/// What a store can and cannot do, for people and for the behaviour suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The store's name: `memory`, `sqlite`, `redis`, …
    pub store: &'static str,
    /// Several processes may share it.
    pub processes: bool,
    /// Locks survive the end of every client.
    pub durable: bool,
    /// Explicit owners re-enter from another client.
    pub owners: bool,
    /// Explicit leases end at the store by themselves.
    pub leases: bool,
    /// `previous_abandoned` is known.
    pub abandoned: bool,
    /// Names of locks are paths: slashes separate, no part is empty, and a lock does not lie below
    /// another.
    pub paths: bool,
    /// Locks can be shared: readers beside each other.
    pub shared: bool,
    /// It has semaphores.
    pub permits: bool,
}

/// Why a store could not be opened.
pub type OpenError = Error;
