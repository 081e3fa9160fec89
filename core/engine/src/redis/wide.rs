//! Which locks have the layout with holds of their own.
#![expect(clippy::disallowed_types, reason = "codecs of several connections remember together")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::name::Name;

/// So many names are remembered. One that is not costs a round trip.
const MOST: usize = 4_096;

/// The locks of which a script wanted all keys: somebody shares them. All keys serve a lock that nobody
/// shares any more as well.
#[derive(Clone, Debug, Default)]
pub struct Wide {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    any: AtomicBool,
    names: Mutex<BTreeSet<Name>>,
}

impl Wide {
    /// Whether requests for the lock must name all keys.
    pub(super) fn has(&self, name: &Name) -> bool {
        if !self.inner.any.load(Ordering::Acquire) {
            return false;
        }
        let names = self.inner.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.contains(name)
    }

    pub(super) fn add(&self, name: &Name) {
        let mut names = self.inner.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= MOST && !names.contains(name) {
            names.pop_first();
        }
        names.insert(name.clone());
        self.inner.any.store(true, Ordering::Release);
    }
}
