//! Outcomes on their way to the event loop.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use napi::Status;
use napi::bindgen_prelude::{FnArgs, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::outcome::Outcome;

/// Calls the function of the TypeScript layer that settles outcomes. Weak: an idle client does not
/// keep the process alive.
pub(crate) type Wake = ThreadsafeFunction<(), (), FnArgs<(Vec<Outcome>,)>, Status, false, true, 0>;

/// What one event loop is to be told. However many outcomes arrive, it is woken once.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    wake: OnceLock<Wake>,
}

#[derive(Default)]
struct State {
    queue: Vec<Outcome>,
    woken: bool,
    closed: bool,
}

impl Inbox {
    /// Lets `dispatch` have the outcomes, in arrays, in the order of their arrival.
    pub(crate) fn connect(
        self: &std::sync::Arc<Inbox>,
        dispatch: &Function<'_, FnArgs<(Vec<Outcome>,)>, ()>,
    ) -> napi::Result<()> {
        let inbox = self.clone();
        let wake = dispatch
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .callee_handled::<false>()
            .build_callback(move |_| Ok(FnArgs::from((inbox.drain(),))))?;
        // There is one dispatcher to an environment.
        let _ = self.wake.set(wake);
        Ok(())
    }

    /// Hands an outcome over. From any thread; does not block, and runs nothing of the user's.
    /// When the environment has ended, the outcome is dropped.
    pub(crate) fn push(&self, outcome: Outcome) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.queue.push(outcome);
        if std::mem::replace(&mut state.woken, true) {
            return;
        }
        drop(state);
        if let Some(wake) = self.wake.get() {
            // It can only fail when the environment ends, and then nobody waits for the outcome.
            let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// The event loop has gone.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.queue.clear();
    }

    fn drain(&self) -> Vec<Outcome> {
        let mut state = self.state();
        state.woken = false;
        std::mem::take(&mut state.queue)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
