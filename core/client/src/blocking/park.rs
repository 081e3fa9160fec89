//! Parking a thread until a call has ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use fencelock_engine::{Outcome, Time};

use crate::wait::Wait;

/// How often to look before parking: a local hand-off often arrives in that time.
const SPINS: u32 = 64;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

thread_local! {
    static WAKER: Waker = Waker::from(Arc::new(Unpark(thread::current())));
}

/// Polls with this thread's waker.
pub(crate) fn poll(wait: &mut Wait) -> Poll<(Outcome, Time)> {
    WAKER.with(|waker| Pin::new(wait).poll(&mut Context::from_waker(waker)))
}

pub(crate) fn spin(wait: &Wait) {
    for _ in 0..SPINS {
        if wait.is_ready() {
            return;
        }
        std::hint::spin_loop();
    }
}

/// As [`park`], but asks `stop` each `every` whether to give up; `None` when it did.
pub(crate) fn park_unless(
    wait: &mut Wait,
    every: Duration,
    stop: &mut dyn FnMut() -> bool,
) -> Option<(Outcome, Time)> {
    wait.send();
    spin(wait);
    loop {
        if let Poll::Ready(ended) = poll(wait) {
            return Some(ended);
        }
        let parked = Instant::now();
        thread::park_timeout(every);
        if parked.elapsed() >= every && stop() {
            return None;
        }
    }
}

/// Waits without driving anything.
pub(crate) fn park(wait: &mut Wait) -> (Outcome, Time) {
    wait.send();
    spin(wait);
    loop {
        if let Poll::Ready(ended) = poll(wait) {
            return ended;
        }
        thread::park();
    }
}
