//! Outcomes on their way to the event loop.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::Status;
use napi::bindgen_prelude::{FnArgs, Function};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::outcome::{News, Outcome};

/// Calls the function of the TypeScript layer that settles outcomes. Weak: an idle client does not
/// keep the process alive.
type Wake = ThreadsafeFunction<(), (), FnArgs<(Batch,)>, Status, false, true, 0>;

/// Outcomes in the order of their arrival, three numbers each: see [`News::pack`]. Those that are
/// told in full are in [`Inbox::told`].
pub(crate) type Batch = Vec<f64>;

/// The function of the TypeScript layer that settles outcomes.
pub(crate) type Dispatch<'a> = Function<'a, FnArgs<(Batch,)>, ()>;

/// What one event loop is to be told. However many outcomes arrive, it is woken once, and not at all
/// while its thread will look by itself.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    /// None while the environment rests.
    wake: Mutex<Option<Wake>>,
}

#[derive(Default)]
struct State {
    queue: Vec<News>,
    /// Of the batches that were taken.
    told: Vec<Outcome>,
    /// The loop was woken, or will look.
    woken: bool,
    closed: bool,
}

impl Inbox {
    /// Lets `dispatch` have the outcomes.
    pub(crate) fn connect(self: &Arc<Inbox>, dispatch: &Dispatch<'_>) -> napi::Result<()> {
        let inbox = self.clone();
        let wake = dispatch
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .callee_handled::<false>()
            .build_callback(move |_| Ok(FnArgs::from((inbox.take(),))))?;
        *self.wake() = Some(wake);
        let mut state = self.state();
        state.woken = !state.queue.is_empty();
        if state.woken {
            drop(state);
            self.rouse();
        }
        Ok(())
    }

    /// Nobody has the outcomes until it is connected again; there is nobody who waits for any.
    pub(crate) fn disconnect(&self) {
        self.wake().take();
    }

    /// Hands an outcome over. From any thread; does not block, and runs nothing of the user's.
    /// When the environment has ended, the outcome is dropped.
    pub(crate) fn push(&self, news: News) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.queue.push(news);
        if std::mem::replace(&mut state.woken, true) {
            return;
        }
        drop(state);
        self.rouse();
    }

    fn rouse(&self) {
        if let Some(wake) = &*self.wake() {
            // It can only fail when the environment ends, and then nobody waits for the outcome.
            let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// The loop's thread will take what arrives: it need not be woken.
    pub(crate) fn attend(&self) {
        self.state().woken = true;
    }

    /// The loop's thread takes what has arrived.
    pub(crate) fn take(&self) -> Batch {
        let mut state = self.state();
        state.woken = false;
        let mut batch = Batch::with_capacity(state.queue.len() * 3);
        for news in std::mem::take(&mut state.queue) {
            batch.extend(news.pack());
            if let News::Told(outcome) = news {
                state.told.push(*outcome);
            }
        }
        batch
    }

    /// Those that were told in full, of the batches that were taken.
    pub(crate) fn told(&self) -> Vec<Outcome> {
        std::mem::take(&mut self.state().told)
    }

    /// The event loop has gone.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.queue.clear();
    }

    fn wake(&self) -> MutexGuard<'_, Option<Wake>> {
        // Nothing panics while it is locked.
        self.wake.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it is locked.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
