//! Parking a thread until a call has ended.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
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

/// Whether this thread's own data is being destroyed, as in a destructor of another's: it has no
/// runtime, no waker and no handle of its own any more. Asked by each wait, so that there is a waker to
/// be missed.
pub(crate) fn is_ending() -> bool {
    WAKER.try_with(|_| ()).is_err()
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
    if is_ending() {
        return rest_ending(wait, interrupt);
    }
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

/// As [`park`], by means that a thread has to its end.
fn rest_ending(wait: &mut Wait, interrupt: &mut Option<Interrupt<'_>>) -> Option<(Outcome, Time)> {
    let rung = Arc::new(Rung::default());
    let waker = Waker::from(rung.clone());
    loop {
        if let Poll::Ready(ended) = Pin::new(&mut *wait).poll(&mut Context::from_waker(&waker)) {
            return Some(ended);
        }
        if rung.rest(interrupt.as_ref().map(|interrupt| interrupt.every))
            && let Some(interrupt) = interrupt
            && (interrupt.stop)()
        {
            return None;
        }
    }
}

/// What wakes a thread that has no handle any more. The standard library's mutex needs nothing of the
/// thread's own.
#[derive(Default)]
struct Rung {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Rung {
    /// Waits to be rung, for `every` at the most; gives whether that is over.
    fn rest(&self, every: Option<Duration>) -> bool {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut rung, over) = match every {
            Some(every) => {
                let waited = self.heard.wait_timeout_while(rung, every, |rung| !*rung);
                let (rung, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
                (rung, timeout.timed_out())
            }
            None => {
                let waited = self.heard.wait_while(rung, |rung| !*rung);
                (waited.unwrap_or_else(PoisonError::into_inner), false)
            }
        };
        *rung = false;
        over
    }
}

impl Wake for Rung {
    fn wake(self: Arc<Self>) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_one();
    }
}
