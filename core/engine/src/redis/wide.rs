//! What is remembered of locks until their next request.
#![expect(clippy::disallowed_types, reason = "codecs of several connections remember together")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::name::Name;

/// So many names are remembered. One that is not costs a round trip.
const MOST: usize = 4_096;

/// Locks of which one thing is remembered.
#[derive(Debug, Default)]
struct Names {
    any: AtomicBool,
    names: Mutex<BTreeSet<Name>>,
}

impl Names {
    fn has(&self, name: &Name) -> bool {
        self.any.load(Ordering::Acquire) && self.lock().contains(name)
    }

    /// Whether it was not among them.
    fn add(&self, name: &Name) -> bool {
        let mut names = self.lock();
        if names.len() >= MOST && !names.contains(name) {
            names.pop_first();
        }
        self.any.store(true, Ordering::Release);
        names.insert(name.clone())
    }

    fn remove(&self, name: &Name) {
        if self.any.load(Ordering::Acquire) {
            let mut names = self.lock();
            names.remove(name);
            self.any.store(!names.is_empty(), Ordering::Release);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Name>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The locks of which a script wanted all keys: somebody shares them. All keys serve a lock that nobody
/// shares any more as well. And those whose slot was moving.
#[derive(Clone, Debug, Default)]
pub struct Wide {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    wide: Names,
    taken_alone: Names,
    spread: Names,
    queued: Names,
}

impl Wide {
    /// Whether requests for the lock must name all keys.
    pub(super) fn has(&self, name: &Name) -> bool {
        self.inner.wide.has(name)
    }

    pub(super) fn add(&self, name: &Name) {
        self.inner.wide.add(name);
    }

    /// Whether the lock is to be taken by its record alone, since its slot is moving.
    pub(super) fn is_taken_alone(&self, name: &Name) -> bool {
        self.inner.taken_alone.has(name)
    }

    /// It is, next time; whether it was not this time.
    pub(super) fn take_alone(&self, name: &Name) -> bool {
        self.inner.taken_alone.add(name)
    }

    /// It is not any more.
    pub(super) fn take_whole(&self, name: &Name) {
        self.inner.taken_alone.remove(name);
    }

    /// Whether a release of the lock was to hand it over.
    pub(super) fn is_queued(&self, name: &Name) -> bool {
        self.inner.queued.has(name)
    }

    /// A release is to.
    pub(super) fn queue(&self, name: &Name) {
        self.inner.queued.add(name);
    }

    /// It has.
    pub(super) fn unqueue(&self, name: &Name) {
        self.inner.queued.remove(name);
    }

    /// Whether the lock's holds are in keys of their own, which are named while its slot moves.
    pub(super) fn is_spread(&self, name: &Name) -> bool {
        self.inner.spread.has(name)
    }

    /// They are; whether that was not known.
    pub(super) fn spread(&self, name: &Name) -> bool {
        self.inner.spread.add(name)
    }

    /// They are not, or no more at one server.
    pub(super) fn gather(&self, name: &Name) {
        self.inner.spread.remove(name);
    }
}
