//! What the engine wants done: kept while its mutex is held, and told to the log.

use std::cell::Cell;

use fencelock_engine::{Effect, Note};

use crate::listener::Listener;

/// A buffer for effects, kept by the thread between calls.
pub(crate) struct Later(pub(crate) Vec<Effect<Listener>>);

thread_local! {
    static SPARE: Cell<Vec<Effect<Listener>>> = const { Cell::new(Vec::new()) };
}

impl Later {
    pub(crate) fn take() -> Later {
        Later(SPARE.try_with(Cell::take).unwrap_or_default())
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if buffer.capacity() > 0 && buffer.capacity() <= 1024 {
            let _ = SPARE.try_with(|spare| spare.set(buffer));
        }
    }
}

/// Logs what nobody is told otherwise.
pub(crate) fn log(note: &Note) {
    match note {
        Note::Lost { lock, token, reason } => {
            tracing::warn!(lock = ?lock.as_str(), token = token.get(), reason = reason.describe(), "lock lost");
        }
        Note::RenewalFailed { lock, reason } => {
            tracing::warn!(lock = ?lock.as_str(), ?reason, "renewal failed; it is tried again");
        }
        Note::PublishFailed => {
            tracing::warn!("the store may not publish to this client; it polls instead");
        }
        Note::StrayGrant(hold) => tracing::debug!(%hold, "grant for a finished wait given back"),
        Note::Renewed(_) => {}
    }
}
