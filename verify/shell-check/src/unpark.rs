//! A waker that unparks a thread, and waiting by it.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Wake, Waker};

use fencelock_engine::{Outcome, Time};

use crate::listener::Listener;
use crate::sync::{Thread, park};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Wakes the thread that calls this.
pub(crate) fn waker() -> Waker {
    Waker::from(Arc::new(Unpark(Thread::current())))
}

/// Parks until the outcome is there.
pub(crate) fn wait(listener: &Listener) -> (Outcome, Time) {
    let waker = pin!(waker());
    loop {
        if let Poll::Ready(ended) = listener.poll_outcome(&waker) {
            return ended;
        }
        park();
    }
}
