//! What is held of a lock, whichever of its handles it was acquired through.

use std::collections::HashMap;
use std::sync::Arc;

use fencelock_support::{Entries, Mode};
use parking_lot::Mutex;

use crate::hold::Held;

/// A hold in a lock's keeping.
#[derive(Clone)]
pub(crate) struct Kept(pub(crate) Arc<Held>);

impl AsRef<fencelock_support::Hold> for Kept {
    fn as_ref(&self) -> &fencelock_support::Hold {
        self.0.hold()
    }
}

/// Which handles are the same lock: those of one name, of the same kind of owner, that are taken in the
/// same way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Ambient,
    Anybody,
    Explicit(String),
}

/// The locks of a client that have a handle, or are held.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<Named, Arc<Entries<Kept>>>>);

impl Locks {
    /// What the handles of a lock share.
    pub(crate) fn get(&self, named: &Named) -> Arc<Entries<Kept>> {
        self.0.lock().entry(named.clone()).or_default().clone()
    }

    /// A handle is gone. What was acquired and not released stays, as with `threading.RLock`:
    /// `client.lock(name).acquire()` needs no variable.
    pub(crate) fn leave(&self, named: &Named, entries: &Arc<Entries<Kept>>) {
        let mut locks = self.0.lock();
        // The map's own, and the handle's.
        if Arc::strong_count(entries) <= 2 && entries.total() == 0 {
            locks.remove(named);
        }
    }
}
