//! Loom's primitives, under the names that the client's own `sync` gives.

pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64};
pub(crate) use loom::sync::{Arc, MutexGuard};
pub(crate) use std::sync::atomic::Ordering;

use loom::sync::Condvar;

/// A mutex that knows no poison, as the client's does not.
#[derive(Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect("a panic ends the exploration")
    }
}

/// A thread that can be unparked. Loom's own forgets an unpark when the thread takes a mutex before
/// it parks, and wakes a thread that waits for a mutex.
#[derive(Clone)]
pub(crate) struct Thread(Arc<(loom::sync::Mutex<bool>, Condvar)>);

loom::thread_local! {
    static CURRENT: Thread = Thread(Arc::new((loom::sync::Mutex::new(false), Condvar::new())));
}

impl Thread {
    pub(crate) fn current() -> Thread {
        CURRENT.with(Thread::clone)
    }

    pub(crate) fn unpark(&self) {
        *self.0.0.lock().expect("no poison") = true;
        self.0.1.notify_one();
    }
}

/// Parks until unparked; an unpark that came before counts.
pub(crate) fn park() {
    let Thread(token) = Thread::current();
    let mut unparked = token.0.lock().expect("no poison");
    while !*unparked {
        unparked = token.1.wait(unparked).expect("no poison");
    }
    *unparked = false;
}
