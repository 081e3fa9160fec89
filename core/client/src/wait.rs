//! A call that waits for its completion.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use fencelock_engine::{CallKey, Outcome, Time};

use crate::Result;
use crate::listener::Listener;
use crate::shared::{Core, Shared};

/// A call that waits for its completion. Dropping one that waits for a grant cancels it, and a
/// grant that arrived meanwhile is given back.
#[must_use]
pub(crate) struct Wait {
    shared: Arc<Shared>,
    listener: Listener,
    /// The acquire to be cancelled, while it is not finished.
    call: Option<CallKey>,
    /// What was enqueued has not been sent yet.
    unsent: bool,
}

impl Wait {
    pub(crate) fn acquire(
        shared: Arc<Shared>,
        listener: Listener,
        call: CallKey,
        unsent: bool,
    ) -> Wait {
        Wait { shared, listener, call: Some(call), unsent }
    }

    pub(crate) fn call(shared: Arc<Shared>, listener: Listener, unsent: bool) -> Wait {
        Wait { shared, listener, call: None, unsent }
    }

    /// Begins a call that asks the store.
    pub(crate) fn begin(
        shared: &Arc<Shared>,
        call: impl FnOnce(&mut Core, Time, Listener),
    ) -> Result<Wait> {
        let listener = Listener::default();
        let handle = listener.clone();
        let ((), unsent) = shared.with_unflushed(|core, now| call(core, now, handle))?;
        Ok(Wait::call(shared.clone(), listener, unsent))
    }

    /// Sends what the call enqueued; the first poll does it too.
    pub(crate) fn send(&mut self) {
        if std::mem::take(&mut self.unsent) {
            self.shared.flush();
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.listener.is_ready()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(crate) fn key(&self) -> Option<CallKey> {
        self.call
    }

    /// The listener of a finished wait, for the guard.
    pub(crate) fn into_listener(self) -> Listener {
        self.listener.clone()
    }
}

impl Future for Wait {
    type Output = (Outcome, Time);
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<(Outcome, Time)> {
        self.send();
        let ended = self.listener.poll_outcome(cx.waker());
        if ended.is_ready() {
            self.call = None;
        }
        ended
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        // Also what is given up: the engine takes it for sent, and waits for the answer.
        self.send();
        if let Some(call) = self.call.take() {
            self.shared.cancel(call, &self.listener);
        }
    }
}
