//! The watches that were left and have not fired: one of each kind for a node, and none that nobody
//! waits for. The client crate keeps each until it is dropped, sets it again after a reconnect, and
//! has all of a node's fire: whoever waits for a lock again and again would gather them by the
//! thousand.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::Future;
use std::mem;
use std::pin::Pin;

use futures_util::future::{AbortHandle, Abortable, abortable};
use zookeeper_client as zk;

/// What of a node is watched. The server has one watch of each, however often it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Its data, and that it is there.
    Node,
    /// Its children.
    Children,
}

/// A watch that fired.
pub(crate) struct Fired {
    pub(crate) kind: Kind,
    pub(crate) event: zk::WatchedEvent,
}

type Firing = Pin<Box<dyn Future<Output = Fired> + Send>>;

/// A watch that is kept. Once nobody waits for it, it ends without an event at its next poll.
pub(crate) type Watch = Abortable<Firing>;

/// A watch that a call left.
pub(crate) struct Left {
    pub(crate) path: String,
    kind: Kind,
    firing: Firing,
}

impl Left {
    pub(crate) fn new(
        path: String,
        kind: Kind,
        changed: impl Future<Output = zk::WatchedEvent> + Send + 'static,
    ) -> Left {
        let firing = Box::pin(async move { Fired { kind, event: changed.await } });
        Left { path, kind, firing }
    }
}

/// The watches of one session.
#[derive(Default)]
pub(crate) struct Watches {
    nodes: HashMap<String, AbortHandle>,
    children: HashMap<String, AbortHandle>,
    /// Those that the pump has not taken over.
    new: Vec<Watch>,
}

impl Watches {
    fn of(&mut self, kind: Kind) -> &mut HashMap<String, AbortHandle> {
        match kind {
            Kind::Node => &mut self.nodes,
            Kind::Children => &mut self.children,
        }
    }

    /// Keeps a watch, unless its node has one. The earlier one stays: it may have fired, and not
    /// have been heard yet.
    pub(crate) fn keep(&mut self, left: Left) {
        let Entry::Vacant(entry) = self.of(left.kind).entry(left.path) else { return };
        let (watch, handle) = abortable(left.firing);
        entry.insert(handle);
        self.new.push(watch);
    }

    /// Nobody waits for word of this node any more.
    pub(crate) fn forget(&mut self, path: &str) {
        for kept in [&mut self.nodes, &mut self.children] {
            if let Some(handle) = kept.remove(path) {
                handle.abort();
            }
        }
    }

    /// A watch fired, and is gone.
    pub(crate) fn fired(&mut self, kind: Kind, path: &str) {
        self.of(kind).remove(path);
    }

    /// Those that were left since the last time, to be polled.
    pub(crate) fn take_new(&mut self) -> Vec<Watch> {
        mem::take(&mut self.new)
    }
}
