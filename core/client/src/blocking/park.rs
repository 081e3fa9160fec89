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

/// What a waiting thread looks at now and then.
pub(crate) struct Interrupt<'a> {
    pub(crate) every: Duration,
    /// Whether to give up.
    pub(crate) stop: &'a mut dyn FnMut() -> bool,
}

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

/// Waits without driving anything; `None` when it was interrupted.
pub(crate) fn park(
    wait: &mut Wait,
    interrupt: &mut Option<Interrupt<'_>>,
) -> Option<(Outcome, Time)> {
    wait.send();
    spin(wait);
    loop {
        if let Poll::Ready(ended) = poll(wait) {
            return Some(ended);
        }
        if rest(interrupt.as_ref().map(|interrupt| interrupt.every))
            && let Some(interrupt) = interrupt
            && (interrupt.stop)()
        {
            return None;
        }
    }
}

/// Parks this thread once, for `every` at the most; gives whether that is over.
pub(crate) fn rest(every: Option<Duration>) -> bool {
    let Some(every) = every else {
        thread::park();
        return false;
    };
    let parked = Instant::now();
    thread::park_timeout(every);
    parked.elapsed() >= every
}
