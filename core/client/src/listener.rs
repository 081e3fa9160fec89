//! The one allocation of a guard: where its completion, its loss and `wanted` arrive.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Poll, Waker};

use fencelock_engine::{LossReason, Outcome, Time};

use crate::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering};

type Callback = Box<dyn FnOnce(LossReason) + Send>;
type WantedCallback = Box<dyn FnOnce() + Send>;

/// Set when the guard that callbacks were given to hears no more, though its hold goes on under others.
pub(crate) type Over = Arc<AtomicBool>;

/// What the engine is given with each call. Whoever waits shows a [`Waker`]: a task's, a parked
/// thread's, or whatever a binding makes of [`std::task::Wake`].
#[derive(Clone, Default)]
pub(crate) struct Listener(Arc<Inner>);

#[derive(Default)]
struct Inner {
    /// Set with the outcome; read without the mutex by a thread that spins.
    ready: AtomicBool,
    /// Set with the loss; read without the mutex by a re-entry.
    lost: AtomicBool,
    /// A hold that may be shared does not end by itself before this time, in nanoseconds.
    certain_until: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    outcome: Option<(Outcome, Time)>,
    waiter: Option<Waker>,
    /// Nobody waits for the outcome any more: a grant in it must be given back.
    abandoned: bool,
    lost: Option<LossReason>,
    wanted: bool,
    watchers: Vec<Watcher>,
    next_watcher: u64,
}

enum Watcher {
    Task { watch: Watch, id: u64, waker: Waker },
    Lost(Over, Callback),
    Wanted(Over, WantedCallback),
}

/// What a watcher waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Lost,
    Wanted,
}

/// Names a registered watcher; empty until it registers.
#[derive(Debug, Default)]
pub(crate) struct WatchKey(Option<u64>);

impl Listener {
    /// Takes the end of a call. Gives the outcome back when nobody wants it any more.
    pub(crate) fn complete(&self, outcome: Outcome, now: Time) -> Option<Outcome> {
        let waiter = {
            let mut state = self.0.state.lock();
            if state.abandoned {
                return Some(outcome);
            }
            state.outcome = Some((outcome, now));
            self.0.ready.store(true, Ordering::Release);
            state.waiter.take()
        };
        if let Some(waiter) = waiter {
            waiter.wake();
        }
        None
    }

    /// Whether the outcome is there; cheap enough to spin on.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.ready.load(Ordering::Acquire)
    }

    pub(crate) fn poll_outcome(&self, waker: &Waker) -> Poll<(Outcome, Time)> {
        let mut state = self.0.state.lock();
        if let Some(outcome) = state.outcome.take() {
            self.0.ready.store(false, Ordering::Relaxed);
            state.waiter = None;
            return Poll::Ready(outcome);
        }
        match &mut state.waiter {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        Poll::Pending
    }

    /// Says that nobody waits for the outcome any more; gives it if it is there already.
    pub(crate) fn abandon(&self) -> Option<Outcome> {
        let mut state = self.0.state.lock();
        state.waiter = None;
        state.abandoned = true;
        state.outcome.take().map(|(outcome, _)| outcome)
    }

    pub(crate) fn lose(&self, reason: LossReason) {
        let told = {
            let mut state = self.0.state.lock();
            if state.lost.is_some() {
                return;
            }
            state.lost = Some(reason);
            self.0.lost.store(true, Ordering::Release);
            state.take(|watcher| watcher.watch() == Watch::Lost)
        };
        for watcher in told {
            match watcher {
                Watcher::Task { waker, .. } => waker.wake(),
                Watcher::Lost(over, callback) => call(&over, || callback(reason)),
                Watcher::Wanted(..) => {}
            }
        }
    }

    pub(crate) fn want(&self) {
        let told = {
            let mut state = self.0.state.lock();
            state.wanted = true;
            state.take(|watcher| watcher.watch() == Watch::Wanted)
        };
        for watcher in told {
            match watcher {
                Watcher::Task { waker, .. } => waker.wake(),
                Watcher::Wanted(over, callback) => call(&over, callback),
                Watcher::Lost(..) => {}
            }
        }
    }

    pub(crate) fn lost(&self) -> Option<LossReason> {
        self.0.state.lock().lost
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.0.lost.load(Ordering::Acquire)
    }

    /// Whether the hold can be trusted without asking the engine.
    pub(crate) fn is_certain(&self, now: Time) -> bool {
        now.as_nanos() < self.0.certain_until.load(Ordering::Relaxed) && !self.is_lost()
    }

    /// The engine's word. The hold may last longer, and ends sooner only by being lost.
    pub(crate) fn set_certain_until(&self, until: Time) {
        self.0.certain_until.store(until.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn wanted(&self) -> bool {
        self.0.state.lock().wanted
    }

    pub(crate) fn on_lost(&self, over: Over, callback: Callback) {
        let mut state = self.0.state.lock();
        match state.lost {
            None => state.watchers.push(Watcher::Lost(over, callback)),
            Some(reason) => {
                drop(state);
                call(&over, || callback(reason));
            }
        }
    }

    pub(crate) fn on_wanted(&self, over: Over, callback: WantedCallback) {
        let mut state = self.0.state.lock();
        if state.wanted {
            drop(state);
            call(&over, callback);
        } else {
            state.watchers.push(Watcher::Wanted(over, callback));
        }
    }

    /// Frees the callbacks of one guard, which are not called any more.
    pub(crate) fn forget(&self, over: &Over) {
        over.store(true, Ordering::Release);
        let mine = |watcher: &Watcher| match watcher {
            Watcher::Lost(other, _) | Watcher::Wanted(other, _) => Arc::ptr_eq(other, over),
            Watcher::Task { .. } => false,
        };
        let forgotten = self.0.state.lock().take(mine);
        // Not under the mutex: what a callback keeps may do anything when it is freed.
        drop(forgotten);
    }

    pub(crate) fn poll_lost(&self, key: &mut WatchKey, waker: &Waker) -> Poll<LossReason> {
        let mut state = self.0.state.lock();
        match state.lost {
            Some(reason) => Poll::Ready(reason),
            None => {
                state.watch(Watch::Lost, key, waker);
                Poll::Pending
            }
        }
    }

    pub(crate) fn poll_wanted(&self, key: &mut WatchKey, waker: &Waker) -> Poll<()> {
        let mut state = self.0.state.lock();
        if state.wanted {
            return Poll::Ready(());
        }
        state.watch(Watch::Wanted, key, waker);
        Poll::Pending
    }

    pub(crate) fn unwatch(&self, key: &WatchKey) {
        if let Some(mine) = key.0 {
            let mut state = self.0.state.lock();
            state.watchers.retain(|w| !matches!(w, Watcher::Task { id, .. } if *id == mine));
        }
    }
}

impl Watcher {
    fn watch(&self) -> Watch {
        match self {
            Watcher::Task { watch, .. } => *watch,
            Watcher::Lost(..) => Watch::Lost,
            Watcher::Wanted(..) => Watch::Wanted,
        }
    }
}

impl State {
    fn watch(&mut self, watch: Watch, key: &mut WatchKey, by: &Waker) {
        if let Some(mine) = key.0 {
            for watcher in &mut self.watchers {
                if let Watcher::Task { id, waker, .. } = watcher
                    && *id == mine
                {
                    waker.clone_from(by);
                    return;
                }
            }
        }
        let id = self.next_watcher;
        self.next_watcher += 1;
        key.0 = Some(id);
        self.watchers.push(Watcher::Task { watch, id, waker: by.clone() });
    }

    fn take(&mut self, which: impl Fn(&Watcher) -> bool) -> Vec<Watcher> {
        let (told, kept) = std::mem::take(&mut self.watchers).into_iter().partition(|w| which(w));
        self.watchers = kept;
        told
    }
}

/// A callback that panics must not unwind into the thread that serves the connection.
fn call(over: &Over, callback: impl FnOnce()) {
    if over.load(Ordering::Acquire) {
        return;
    }
    if catch_unwind(AssertUnwindSafe(callback)).is_err() {
        tracing::error!("a callback given to a guard panicked");
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Listener").field("ready", &self.is_ready()).finish_non_exhaustive()
    }
}
