//! Blocking callers, the standby thread, and a store that answers when it is driven.
//!
//! The steps are those of the client's `blocking::driver`, with parking where that waits for
//! sockets. A host loop parks where its event loop would wait.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::task::Poll;

use fencelock_engine::{Outcome, Time};
use loom::sync::atomic::{AtomicBool, AtomicUsize};
use loom::thread::{self, JoinHandle};

use crate::listener::Listener;
use crate::role::{Parked, Role, Seen, Then, Watch};
use crate::sync::{Arc, Mutex, Thread, park};
use crate::unpark::waker;

/// Blocking callers, the standby thread, and a store that answers when it is driven.
pub struct Scene {
    role: Role,
    /// Sent and not answered; each needs so many more turns of whoever drives.
    sent: Mutex<VecDeque<(Listener, u8)>>,
    /// How many drive.
    driving: AtomicUsize,
    /// The standby thread was asked to give up the role.
    yielding: AtomicBool,
    standby: Mutex<Option<Thread>>,
    /// The host loop's thread, to be told of a free role.
    host: Mutex<Option<Thread>>,
    closed: AtomicBool,
}

impl Scene {
    /// A scene without callers.
    pub fn new() -> Scene {
        Scene {
            role: Role::new(),
            sent: Mutex::default(),
            driving: AtomicUsize::new(0),
            yielding: AtomicBool::new(false),
            standby: Mutex::default(),
            host: Mutex::default(),
            closed: AtomicBool::new(false),
        }
    }

    /// One blocking call, from its request to its answer, after `turns` of whoever drives.
    pub fn call(&self, turns: u8) {
        let listener = Listener::default();
        if self.role.take() {
            self.send(&listener, turns);
            return self.drive(&listener);
        }
        self.send(&listener, turns);
        let waker = waker();
        if listener.is_ready()
            && let Poll::Ready(ended) = listener.poll_outcome(&waker)
        {
            return answered(&ended);
        }
        if self.rest(&listener) {
            self.drive(&listener);
        }
    }

    /// As [`Scene::call`], by a caller who is asked after each turn whether to give up, and neither
    /// drives nor is parked then.
    pub fn call_in_slices(&self, turns: u8) {
        let listener = Listener::default();
        let mut driving = self.role.take();
        self.send(&listener, turns);
        loop {
            if !driving && !self.rest(&listener) {
                return;
            }
            self.enter();
            let ended = listener.poll_outcome(&waker());
            if ended.is_pending() {
                self.turn();
            }
            self.exit();
            if let Poll::Ready(ended) = ended {
                return answered(&ended);
            }
            driving = self.role.take();
        }
    }

    /// Parks until the role is the caller's; false when its answer has come.
    fn rest(&self, listener: &Listener) -> bool {
        let parked = Parked::new(Thread::current());
        match self.role.request(&parked) {
            Then::Drive => return true,
            Then::Ask => {
                self.yielding.store(true, Ordering::SeqCst);
                self.wake_standby();
            }
            Then::Park => {}
        }
        let waker = waker();
        loop {
            if let Poll::Ready(ended) = listener.poll_outcome(&waker) {
                self.tell_host(self.role.withdraw(&parked));
                answered(&ended);
                return false;
            }
            if parked.is_offered() {
                return true;
            }
            park();
        }
    }

    /// One call of a host loop, whose socket tells it at once that there is something to read: it
    /// takes turns, and parks in between as an event loop waits. `busy`: it does something else
    /// instead of its turns.
    pub fn host_call(&self, turns: u8, busy: bool) {
        *self.host.lock() = Some(Thread::current());
        let listener = Listener::default();
        if self.role.expect_host() {
            self.yielding.store(true, Ordering::SeqCst);
            self.wake_standby();
        }
        self.send(&listener, turns);
        let waker = waker();
        // What is readable stays so until somebody has read it.
        for _ in 0..=turns {
            if busy || !self.role.take_turn() {
                break;
            }
            self.enter();
            self.turn();
            self.exit();
        }
        loop {
            if let Poll::Ready(ended) = listener.poll_outcome(&waker) {
                self.role.forget_host();
                return answered(&ended);
            }
            // Woken by the answer, which somebody else has read, or by the bell.
            park();
            if !busy && self.role.take_turn() {
                self.enter();
                self.turn();
                self.exit();
            }
        }
    }

    /// What a dropped guard does: drives for a turn, if nobody else does.
    pub fn send_off(&self) {
        if self.role.take() {
            self.enter();
            self.turn();
            self.exit();
        }
    }

    /// The role must be free now, and nothing unanswered.
    pub fn assert_at_rest(&self) {
        assert!(self.role.take(), "the role was lost");
        assert!(self.sent.lock().is_empty(), "a request was forgotten");
    }

    fn send(&self, listener: &Listener, turns: u8) {
        self.sent.lock().push_back((listener.clone(), turns));
        // The socket tells whoever waits on it.
        self.wake_standby();
    }

    fn wake_standby(&self) {
        let standby = self.standby.lock().clone();
        if let Some(standby) = standby {
            standby.unpark();
        }
    }

    fn drive(&self, listener: &Listener) {
        self.enter();
        let waker = waker();
        loop {
            if let Poll::Ready(ended) = listener.poll_outcome(&waker) {
                answered(&ended);
                return self.exit();
            }
            self.turn();
        }
    }

    /// The store answers what is due.
    fn turn(&self) {
        let due: Vec<Listener> = {
            let mut sent = self.sent.lock();
            let mut due = Vec::new();
            for (listener, turns) in std::mem::take(&mut *sent) {
                match turns {
                    0 => due.push(listener),
                    turns => sent.push_back((listener, turns - 1)),
                }
            }
            due
        };
        for listener in due {
            assert!(listener.complete(Outcome::Released, Time::ZERO).is_none());
        }
    }

    fn enter(&self) {
        assert_eq!(self.driving.fetch_add(1, Ordering::SeqCst), 0, "two drive at once");
    }

    fn exit(&self) {
        self.driving.fetch_sub(1, Ordering::SeqCst);
        self.tell_host(self.role.leave());
    }

    fn tell_host(&self, free: bool) {
        if free && let Some(host) = &*self.host.lock() {
            host.unpark();
        }
    }

    /// Starts the standby thread. It makes itself known before any call, as the client does that
    /// starts it.
    pub fn start_standby(this: &Arc<Scene>) -> JoinHandle<()> {
        let mine = this.clone();
        let standby = thread::spawn(move || mine.stand_by());
        while this.standby.lock().is_none() {
            thread::yield_now();
        }
        standby
    }

    /// Ends the standby thread.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.wake_standby();
    }

    fn stand_by(&self) {
        self.role.set_standby(Thread::current());
        *self.standby.lock() = Some(Thread::current());
        let mut seen = Seen::default();
        while !self.closed.load(Ordering::SeqCst) {
            match self.role.watch(&mut seen) {
                Watch::Drive => {
                    self.enter();
                    while !self.closed.load(Ordering::SeqCst) {
                        if self.yielding.swap(false, Ordering::SeqCst) {
                            break;
                        }
                        if self.sent.lock().is_empty() {
                            park();
                        } else {
                            self.turn();
                        }
                    }
                    self.exit();
                }
                Watch::Turn => {
                    self.enter();
                    self.turn();
                    self.exit();
                    thread::yield_now();
                }
                Watch::Look => thread::yield_now(),
                Watch::Sleep => park(),
            }
        }
    }
}

impl Default for Scene {
    fn default() -> Scene {
        Scene::new()
    }
}

fn answered(ended: &(Outcome, Time)) {
    assert_eq!(ended.0, Outcome::Released);
}

/// Callers of one scene, each with so many turns to wait, all at once; with a standby thread or not.
pub fn callers(turns: &[u8], standby: bool) {
    let scene = Arc::new(Scene::new());
    let standby = standby.then(|| Scene::start_standby(&scene));
    let (first, others) = turns.split_first().expect("somebody calls");
    let threads: Vec<_> = others
        .iter()
        .map(|&turns| {
            let scene = scene.clone();
            thread::spawn(move || scene.call(turns))
        })
        .collect();
    scene.call(*first);
    for thread in threads {
        thread.join().expect("a caller panicked");
    }
    if let Some(standby) = standby {
        scene.close();
        standby.join().expect("the standby thread panicked");
    }
    scene.assert_at_rest();
}

/// A caller who gives the role up now and then, beside one who does not.
pub fn caller_in_slices(turns: u8, standby: bool) {
    let scene = Arc::new(Scene::new());
    let standby = standby.then(|| Scene::start_standby(&scene));
    let other = {
        let scene = scene.clone();
        thread::spawn(move || scene.call(0))
    };
    scene.call_in_slices(turns);
    other.join().expect("a caller panicked");
    if let Some(standby) = standby {
        scene.close();
        standby.join().expect("the standby thread panicked");
    }
    scene.assert_at_rest();
}

/// As [`callers`] for two, but the one that drives keeps the role for itself: a fault that must be
/// found.
pub fn callers_one_of_whom_keeps_the_role() {
    let scene = Arc::new(Scene::new());
    let other = {
        let scene = scene.clone();
        thread::spawn(move || scene.call(0))
    };
    if scene.role.take() {
        scene.turn();
    }
    other.join().expect("a caller panicked");
}

/// A caller beside a thread that drops a guard.
pub fn caller_and_drop(standby: bool) {
    let scene = Arc::new(Scene::new());
    let standby = standby.then(|| Scene::start_standby(&scene));
    let other = {
        let scene = scene.clone();
        thread::spawn(move || scene.send_off())
    };
    scene.call(1);
    other.join().expect("the dropping thread panicked");
    if let Some(standby) = standby {
        scene.close();
        standby.join().expect("the standby thread panicked");
    }
    scene.assert_at_rest();
}

/// A host loop that is busy with something else: only the standby thread serves it.
pub fn busy_host_loop() {
    host_loop(0, true, false, true);
}

/// A host loop beside a blocking caller or none, with a standby thread or none.
pub fn idle_host_loop(turns: u8, caller: bool, standby: bool) {
    host_loop(turns, false, caller, standby);
}

fn host_loop(turns: u8, busy: bool, caller: bool, standby: bool) {
    let scene = Arc::new(Scene::new());
    let standby = standby.then(|| Scene::start_standby(&scene));
    let other = caller.then(|| {
        let scene = scene.clone();
        thread::spawn(move || scene.call(0))
    });
    scene.host_call(turns, busy);
    if let Some(other) = other {
        other.join().expect("the caller panicked");
    }
    if let Some(standby) = standby {
        scene.close();
        standby.join().expect("the standby thread panicked");
    }
    scene.assert_at_rest();
}
