//! One completion, and whoever waits for it, or no longer does.

use std::sync::atomic::Ordering;
use std::task::{Poll, Waker};

use fencelock_engine::{LossReason, Outcome, Time};
use loom::sync::atomic::AtomicUsize;
use loom::thread::{self, JoinHandle};

use crate::listener::{Listener, Over, WatchKey};
use crate::sync::{Arc, park};
use crate::unpark::{wait, waker};

const OUTCOME: Outcome = Outcome::Time(7);

/// Completes on a thread of its own; gives how often the outcome came back, to be given back.
fn completer(listener: &Listener) -> JoinHandle<usize> {
    let listener = listener.clone();
    thread::spawn(move || usize::from(listener.complete(OUTCOME, Time::ZERO).is_some()))
}

/// A waiter parks until the outcome is there.
pub fn a_waiter_is_woken() {
    let listener = Listener::default();
    let completer = completer(&listener);
    assert_eq!(wait(&listener).0, OUTCOME);
    assert_eq!(completer.join().expect("no panic"), 0, "delivered, so not given back");
}

/// A waiter that only looks at the flag finds what the flag promises.
pub fn what_is_ready_is_there() {
    let listener = Listener::default();
    let completer = completer(&listener);
    if listener.is_ready() {
        assert!(matches!(listener.poll_outcome(Waker::noop()), Poll::Ready((OUTCOME, _))));
        assert!(!listener.is_ready());
    }
    completer.join().expect("no panic");
}

/// A task moves to another thread between two polls: the later waker counts.
pub fn the_last_waker_is_woken() {
    let listener = Listener::default();
    let completer = completer(&listener);
    let polled = listener.poll_outcome(Waker::noop());
    if polled.is_pending() {
        assert_eq!(wait(&listener).0, OUTCOME);
    }
    completer.join().expect("no panic");
}

/// A wait is dropped, polled or not, while its outcome arrives: delivered or given back, never
/// both, never neither.
pub fn delivered_or_given_back(polls: usize) {
    let listener = Listener::default();
    let completer = completer(&listener);
    let mut delivered = 0;
    for _ in 0..polls {
        if delivered == 0 && listener.poll_outcome(&waker()).is_ready() {
            delivered = 1;
        }
    }
    // Dropping a wait that has ended abandons nothing.
    let mut back = if delivered == 0 { usize::from(listener.abandon().is_some()) } else { 0 };
    back += completer.join().expect("no panic");
    assert_eq!(delivered + back, 1, "delivered {delivered} times, given back {back} times");
}

/// A loss reaches a callback that is registered meanwhile, once.
pub fn a_callback_hears_once() {
    let listener = Listener::default();
    let told = Arc::new(AtomicUsize::new(0));
    let loser = loser(&listener);
    let counter = told.clone();
    listener.on_lost(
        Over::default(),
        Box::new(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
        }),
    );
    loser.join().expect("no panic");
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

/// A loss wakes whoever waits for it, also beside one that watched and left.
pub fn a_watcher_is_woken() {
    let listener = Listener::default();
    let loser = loser(&listener);
    let mut left = WatchKey::default();
    let _ = listener.poll_lost(&mut left, Waker::noop());
    listener.unwatch(&left);
    let (mut key, waker) = (WatchKey::default(), waker());
    let reason = loop {
        if let Poll::Ready(reason) = listener.poll_lost(&mut key, &waker) {
            break reason;
        }
        park();
    };
    assert_eq!(reason, LossReason::Gone);
    loser.join().expect("no panic");
}

/// `wanted` and a loss arrive together: each watcher hears of its own.
pub fn wanted_and_lost_are_two_things() {
    let listener = Listener::default();
    let loser = loser(&listener);
    let wanting = {
        let listener = listener.clone();
        thread::spawn(move || listener.want())
    };
    let (mut key, waker) = (WatchKey::default(), waker());
    while listener.poll_wanted(&mut key, &waker).is_pending() {
        park();
    }
    assert!(listener.wanted());
    loser.join().expect("no panic");
    wanting.join().expect("no panic");
    assert_eq!(listener.lost(), Some(LossReason::Gone));
}

fn loser(listener: &Listener) -> JoinHandle<()> {
    let listener = listener.clone();
    thread::spawn(move || {
        listener.lose(LossReason::Gone);
        listener.lose(LossReason::Broken);
    })
}
