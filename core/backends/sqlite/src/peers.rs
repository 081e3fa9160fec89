//! The clients of this process that use the same file: they wake each other without a poll.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use arc_swap::ArcSwapOption;

use crate::queue::Queue;

type Clients = BTreeMap<String, Weak<Queue>>;

/// The clients of one process. A forked child starts a list of its own: a thread that does not
/// exist there may have held the parent's mutex.
struct Registry {
    process: u32,
    files: Mutex<BTreeMap<PathBuf, Clients>>,
}

static REGISTRY: ArcSwapOption<Registry> = ArcSwapOption::const_empty();

impl Registry {
    fn own() -> Arc<Registry> {
        let process = std::process::id();
        let fresh = Arc::new(Registry { process, files: Mutex::default() });
        let is_own = |known: &Option<Arc<Registry>>| {
            known.as_ref().is_some_and(|known| known.process == process)
        };
        REGISTRY.rcu(|known| if is_own(known) { known.clone() } else { Some(fresh.clone()) });
        REGISTRY.load_full().unwrap_or(fresh)
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Clients>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A client's entry, until it is dropped.
pub(crate) struct Peer {
    registry: Arc<Registry>,
    file: PathBuf,
    client: String,
    queue: Arc<Queue>,
}

impl Peer {
    /// Enters a client. `file` is the canonical path.
    pub(crate) fn join(file: PathBuf, client: &str, queue: Arc<Queue>) -> Peer {
        let client = client.to_owned();
        let entry = Arc::downgrade(&queue);
        let registry = Registry::own();
        registry.files().entry(file.clone()).or_default().insert(client.clone(), entry);
        Peer { registry, file, client, queue }
    }

    /// Makes those of `clients` that live in this process look at the file.
    pub(crate) fn wake(&self, clients: &[String]) {
        if clients.is_empty() {
            return;
        }
        let found: Vec<Arc<Queue>> = match self.registry.files().get(&self.file) {
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
        let mut files = self.registry.files();
        let Some(clients) = files.get_mut(&self.file) else { return };
        if clients.get(&self.client).is_some_and(|entry| entry.as_ptr() == Arc::as_ptr(&self.queue))
        {
            clients.remove(&self.client);
        }
        if clients.is_empty() {
            files.remove(&self.file);
        }
    }
}
