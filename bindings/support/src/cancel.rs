//! Cancelling waits from elsewhere.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Cancels blocking waits from another thread, once and for good.
#[derive(Default)]
pub struct CancelToken {
    waits: fencelock::CancelToken,
    others: Mutex<Others>,
}

type Tell = Box<dyn FnOnce() + Send>;

/// Whoever else wants to hear of it.
#[derive(Default)]
struct Others {
    cancelled: bool,
    next: u64,
    tell: BTreeMap<u64, Tell>,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Ends the waits that were given this token, and those that will be, with `Cancelled`. A wait
    /// that has its lock already keeps it.
    pub fn cancel(&self) {
        let told = {
            let mut others = self.others.lock();
            others.cancelled = true;
            std::mem::take(&mut others.tell)
        };
        self.waits.cancel();
        told.into_values().for_each(|tell| tell());
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.waits.is_cancelled()
    }

    /// What the client's waits are given.
    pub(crate) fn waits(&self) -> &fencelock::CancelToken {
        &self.waits
    }

    /// Calls `tell` when it is cancelled, at once if it was; until [`CancelToken::forget`].
    pub(crate) fn tell(&self, tell: impl FnOnce() + Send + 'static) -> u64 {
        let mut others = self.others.lock();
        let key = others.next;
        others.next += 1;
        if others.cancelled {
            drop(others);
            tell();
        } else {
            others.tell.insert(key, Box::new(tell));
        }
        key
    }

    /// Tells that one no more.
    pub(crate) fn forget(&self, key: u64) {
        // Not under the mutex: what is dropped with it may have others to forget.
        let forgotten = self.others.lock().tell.remove(&key);
        drop(forgotten);
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
