//! Who drives the connection: at most one at a time, and always somebody while anybody waits.
//!
//! The *role* of driver is a token. It belongs to a caller, to the standby thread, or to nobody;
//! nobody only while no caller is parked. A caller that cannot take it says so and parks; a
//! driver that leaves hands the role to a parked caller, without it ever being free in between, so
//! that no wake-up can be lost. The standby thread takes the role when callers have been away for
//! a moment, and gives it up when a caller is parked.
//!
//! A *host loop* is a caller that never waits: told that there is something to read, it takes the
//! role for a turn. While it is expected to, the standby thread takes only turns as well, in case
//! that the loop is busy, and the whole role when it has seen none of the loop's for a while. A host
//! loop that finds the role taken is told when it is free.
//!
//! All that it shares comes from [`crate::sync`], so that a model checker can take its place.

use crate::sync::{Arc, AtomicBool, Mutex, MutexGuard, Ordering, Thread};

/// How often the standby thread finds the same caller driving before it sleeps until called, and how
/// many turns it takes in the place of a host loop before it takes the whole role.
pub(super) const LOOKS: u32 = 16;

/// A parked caller's place.
pub(crate) struct Parked {
    /// The role was handed to this parked.
    offered: AtomicBool,
    thread: Thread,
}

impl Parked {
    pub(crate) fn new(thread: Thread) -> Arc<Parked> {
        Arc::new(Parked { offered: AtomicBool::new(false), thread })
    }

    /// Whether the role is this caller's now.
    pub(crate) fn is_offered(&self) -> bool {
        self.offered.load(Ordering::Acquire)
    }
}

/// The role, and who waits for it.
pub(crate) struct Role {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    driven: bool,
    /// The standby thread is the driver.
    by_standby: bool,
    /// The standby thread sleeps until the role is free.
    asleep: bool,
    /// A host loop is expected to take turns.
    hosted: bool,
    /// The standby thread was asked to yield to it.
    asked: bool,
    /// Its turn found the role taken.
    missed: bool,
    parked: Vec<Arc<Parked>>,
    /// Counts callers, so that the standby thread sees whether any came lately.
    calls: u64,
    standby: Option<Thread>,
}

/// What becomes of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The role is the caller's.
    Drive,
    /// Somebody drives; park.
    Park,
    /// The standby thread drives: ask it to yield, then park.
    Ask,
}

/// What the standby thread is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    /// The role is its.
    Drive,
    /// The role is its for a turn.
    Turn,
    /// Look again in a moment.
    Look,
    /// Sleep until unparked.
    Sleep,
}

/// What the standby thread remembers between looks.
#[derive(Default)]
pub(crate) struct Seen {
    calls: u64,
    looks: u32,
}

impl Role {
    pub(crate) fn new() -> Role {
        Role { state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Makes the standby thread known.
    pub(crate) fn set_standby(&self, thread: Thread) {
        self.state().standby = Some(thread);
    }

    /// Takes the role if it is free.
    pub(crate) fn take(&self) -> bool {
        let mut state = self.state();
        state.calls += 1;
        !std::mem::replace(&mut state.driven, true)
    }

    /// Takes the role, or is to be offered it.
    pub(crate) fn request(&self, parked: &Arc<Parked>) -> Then {
        let mut state = self.state();
        state.calls += 1;
        if !std::mem::replace(&mut state.driven, true) {
            return Then::Drive;
        }
        state.parked.push(parked.clone());
        if state.by_standby { Then::Ask } else { Then::Park }
    }

    /// Is to be offered it no more. A role that was offered to it meanwhile goes on; gives, as
    /// [`Role::leave`], whether to tell the host loop.
    #[must_use]
    pub(crate) fn withdraw(&self, parked: &Arc<Parked>) -> bool {
        let mut state = self.state();
        if parked.is_offered() {
            return Role::pass(&mut state);
        }
        state.parked.retain(|other| !Arc::ptr_eq(other, parked));
        false
    }

    /// Gives the role up: to a parked caller, or else it is free. Gives whether the host loop is to
    /// be told that, as it came in vain.
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        Role::pass(&mut self.state())
    }

    /// From now on a host loop is expected to take turns. Gives whether to ask the standby thread to
    /// yield.
    pub(crate) fn expect_host(&self) -> bool {
        let mut state = self.state();
        state.hosted = true;
        state.by_standby && !std::mem::replace(&mut state.asked, true)
    }

    /// The host loop takes the role for a turn, if it is free. Otherwise it is told when it is.
    pub(crate) fn take_turn(&self) -> bool {
        let mut state = self.state();
        if state.driven {
            state.missed = true;
            return false;
        }
        state.calls += 1;
        state.driven = true;
        state.missed = false;
        true
    }

    /// The host loop takes no more turns.
    pub(crate) fn forget_host(&self) {
        let mut state = self.state();
        state.hosted = false;
        state.missed = false;
    }

    fn pass(state: &mut State) -> bool {
        state.by_standby = false;
        state.asked = false;
        // The one that came last will stay the longest.
        match state.parked.pop() {
            Some(parked) => {
                parked.offered.store(true, Ordering::Release);
                parked.thread.unpark();
                false
            }
            None => {
                state.driven = false;
                if std::mem::take(&mut state.asleep)
                    && let Some(standby) = &state.standby
                {
                    standby.unpark();
                }
                std::mem::take(&mut state.missed)
            }
        }
    }

    /// The standby thread looks. It is not woken for each call: while calls come, it only looks
    /// now and then.
    pub(crate) fn watch(&self, seen: &mut Seen) -> Watch {
        let mut state = self.state();
        if state.calls != seen.calls {
            *seen = Seen { calls: state.calls, looks: 0 };
            return Watch::Look;
        }
        if !state.driven {
            state.driven = true;
            if state.hosted && seen.looks < LOOKS {
                seen.looks += 1;
                return Watch::Turn;
            }
            seen.looks = 0;
            state.hosted = false;
            state.by_standby = true;
            return Watch::Drive;
        }
        seen.looks += 1;
        if seen.looks < LOOKS {
            return Watch::Look;
        }
        seen.looks = 0;
        state.asleep = true;
        Watch::Sleep
    }
}
