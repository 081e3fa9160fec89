//! The clients of this process that use the same file: they wake each other without a poll.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::queue::Queue;

type Clients = BTreeMap<String, Weak<Queue>>;

static PEERS: Mutex<BTreeMap<PathBuf, Clients>> = Mutex::new(BTreeMap::new());

fn peers() -> MutexGuard<'static, BTreeMap<PathBuf, Clients>> {
    PEERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A client's entry, until it is dropped.
pub(crate) struct Peer {
    file: PathBuf,
    client: String,
    queue: Arc<Queue>,
}

impl Peer {
    /// Enters a client. `file` is the canonical path.
    pub(crate) fn join(file: PathBuf, client: &str, queue: Arc<Queue>) -> Peer {
        let client = client.to_owned();
        let entry = Arc::downgrade(&queue);
        peers().entry(file.clone()).or_default().insert(client.clone(), entry);
        Peer { file, client, queue }
    }

    /// Makes those of `clients` that live in this process look at the file.
    pub(crate) fn wake(&self, clients: &[String]) {
        if clients.is_empty() {
            return;
        }
        let found: Vec<Arc<Queue>> = match peers().get(&self.file) {
            Some(present) => clients.iter().filter_map(|id| present.get(id)?.upgrade()).collect(),
            None => Vec::new(),
        };
        for queue in found {
            queue.poke();
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut peers = peers();
        let Some(clients) = peers.get_mut(&self.file) else { return };
        if clients.get(&self.client).is_some_and(|entry| entry.as_ptr() == Arc::as_ptr(&self.queue))
        {
            clients.remove(&self.client);
        }
        if clients.is_empty() {
            peers.remove(&self.file);
        }
    }
}
