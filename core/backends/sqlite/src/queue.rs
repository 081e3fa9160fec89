//! What the client's thread is to do.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fencelock_engine::request::Request;

/// Between the client and its thread.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// The client closes: the thread ends, and a wait for the file ends with it.
    pub(crate) stop: AtomicBool,
}

#[derive(Default)]
struct State {
    requests: Vec<Request>,
    flushed: bool,
    poked: bool,
}

/// What the thread woke for; nothing when its pause has passed.
pub(crate) struct Work {
    /// To be executed in this order.
    pub requests: Vec<Request>,
    /// Another client of this process changed something that concerns this one.
    pub poked: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, request: Request) {
        self.lock().requests.push(request);
    }

    pub(crate) fn flush(&self) {
        self.lock().flushed = true;
        self.wake.notify_one();
    }

    pub(crate) fn poke(&self) {
        self.lock().poked = true;
        self.wake.notify_one();
    }

    pub(crate) fn stop(&self) {
        // Under the mutex, or the thread could miss it on its way to sleep.
        let mut state = self.lock();
        state.requests = Vec::new();
        self.stop.store(true, Ordering::Release);
        drop(state);
        self.wake.notify_one();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Sleeps until there is something to do, or until `pause` has passed.
    pub(crate) fn wait(&self, pause: Option<Duration>) -> Work {
        let idle = |state: &mut State| !(state.flushed || state.poked || self.is_stopped());
        let state = self.lock();
        let mut state = match pause {
            None => self.wake.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner),
            Some(pause) => {
                self.wake
                    .wait_timeout_while(state, pause, idle)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        };
        state.flushed = false;
        Work {
            requests: std::mem::take(&mut state.requests),
            poked: std::mem::take(&mut state.poked),
        }
    }
}
