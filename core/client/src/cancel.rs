//! Cancelling a wait from another thread.

use std::sync::{Arc, Weak};

use fencelock_engine::CallKey;
use parking_lot::Mutex;

use crate::Result;
use crate::begun::Started;
use crate::errors::cancelled;
use crate::listener::Listener;
use crate::shared::Shared;

/// Cancels blocking waits from another thread, once and for good. Cheap to clone; all clones are
/// the same token. An async wait needs none: drop its future.
///
/// See [`blocking::Lock::acquire_cancellable`](crate::blocking::Lock::acquire_cancellable).
#[derive(Clone, Default)]
pub struct CancelToken(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    cancelled: bool,
    next: u64,
    waits: Vec<Armed>,
}

struct Armed {
    id: u64,
    shared: Weak<Shared>,
    call: CallKey,
    listener: Listener,
}

impl CancelToken {
    /// A token that is not cancelled.
    pub fn new() -> CancelToken {
        CancelToken::default()
    }

    /// Ends the waits that were given this token, and those that will be, with `Cancelled`. A wait
    /// that has its lock already keeps it.
    pub fn cancel(&self) {
        let waits = {
            let mut state = self.0.lock();
            state.cancelled = true;
            std::mem::take(&mut state.waits)
        };
        for wait in waits {
            wait.cancel();
        }
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }

    /// # Errors
    /// `Cancelled` when it was.
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    /// Registers a wait until the guard is dropped.
    pub(crate) fn arm(&self, started: &Started) -> Disarm<'_> {
        let Started::Pending { wait, .. } = started else { return Disarm(self, None) };
        let Some(call) = wait.key() else { return Disarm(self, None) };
        let shared = Arc::downgrade(wait.shared());
        let mut state = self.0.lock();
        let id = state.next;
        state.next += 1;
        let armed = Armed { id, shared, call, listener: wait.listener().clone() };
        if state.cancelled {
            drop(state);
            armed.cancel();
            return Disarm(self, None);
        }
        state.waits.push(armed);
        Disarm(self, Some(id))
    }
}

impl Armed {
    fn cancel(&self) {
        if let Some(shared) = self.shared.upgrade() {
            shared.cancel_told(self.call, &self.listener);
        }
    }
}

/// Forgets a registered wait.
pub(crate) struct Disarm<'a>(&'a CancelToken, Option<u64>);

impl Drop for Disarm<'_> {
    fn drop(&mut self) {
        if let Some(mine) = self.1 {
            self.0.0.lock().waits.retain(|wait| wait.id != mine);
        }
    }
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CancelToken").field("cancelled", &self.is_cancelled()).finish()
    }
}
