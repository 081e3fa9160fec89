//! A client of the world: the real engine, its clock, its transport, its callers.

use std::collections::VecDeque;
use std::time::Duration;

use fencelock_engine::request::Mode;
use fencelock_engine::{CallKey, Engine, HoldId, HoldKey, LockKey, LossReason, Patience, Time};

use crate::clock::{ClientClock, Instant};
use crate::network::Link;

/// A caller's handle: the caller's number above, a serial number below.
pub type Tag = u64;

/// The caller to which a handle belongs.
pub fn actor_of(tag: Tag) -> usize {
    (tag >> 32) as usize
}

/// Whoever acts: the same identity re-enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// A caller of one client.
    Local {
        /// The client.
        incarnation: usize,
        /// The caller.
        actor: usize,
    },
    /// An explicit owner, anywhere.
    Explicit(usize),
}

/// A place in the world where one client runs after another.
#[derive(Debug)]
pub struct Client {
    /// Which client runs here now; each start is a new one.
    pub incarnation: usize,
    /// It runs.
    pub up: bool,
    /// The engine under test.
    pub engine: Engine<Tag>,
    /// Its monotonic clock.
    pub clock: ClientClock,
    /// Its transport.
    pub link: Link,
    /// What its transport says by itself, in order.
    pub inbox: VecDeque<fencelock_engine::Event>,
    /// Its callers.
    pub actors: Vec<Actor>,
    /// The engine's keys of the run's locks.
    pub locks: Vec<LockKey>,
    /// It stands still until then.
    pub paused_until: Instant,
    /// How late its timers are: only with a bug that was planted.
    pub asleep: u64,
    /// Its clock jumped forward.
    pub jumped: bool,
    /// When the engine wants to be woken, and which of the scheduled wakes is the right one.
    pub wake_at: Option<Time>,
    /// See `wake_at`.
    pub wake_generation: u32,
    /// The next serial number of a handle.
    pub serial: u32,
    /// It is being closed, under this handle; or closed.
    pub closing: Option<Tag>,
    /// Holds whose release said that they were lost before their holders were told.
    pub ended: Vec<Tag>,
    /// How many renewals left since when, as far as they follow one upon the other.
    pub renewals: (Instant, u32),
}

impl Client {
    /// Whether a caller has a hold.
    pub fn holds(&self) -> bool {
        self.actors.iter().any(|actor| !actor.held.is_empty())
    }

    /// Whether no caller waits or holds.
    pub fn idle(&self) -> bool {
        self.actors.iter().all(|actor| actor.held.is_empty() && actor.open.is_empty())
    }
}

/// What a call was about.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Call {
    Acquire(Waiting),
    Release {
        lock: usize,
        hold: Tag,
        since: Instant,
        sent: Option<HoldId>,
    },
    Extend {
        hold: Tag,
    },
    Convert {
        hold: Tag,
        to: Mode,
    },
    /// An operator looks at a lock before it breaks it.
    Look {
        lock: usize,
    },
    Break,
    Resize {
        lock: usize,
    },
    Close,
}

/// A pending acquire.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// The engine's key.
    pub key: CallKey,
    /// Which lock.
    pub lock: usize,
    /// How long it waits.
    pub patience: Patience,
    /// Its explicit lease, and whether it has a ceiling.
    pub terms: Terms,
}

/// What was asked of a hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// It ends by itself: an explicit lease or a ceiling.
    pub ends: bool,
    /// It joins an owner's holds.
    pub attach: bool,
    /// The lease that is asked of the store.
    pub lease: Duration,
    /// How it shares the lock.
    pub mode: Mode,
    /// The number of permits in that is its own, and others' counts.
    pub adopt: bool,
}

/// A call without its completion.
#[derive(Clone, Debug)]
pub struct Open {
    /// Its handle.
    pub tag: Tag,
    /// What it is about.
    pub call: Call,
    /// When it was made, by the client's clock.
    pub since: Time,
}

/// A caller. It does one thing after the other, or several at once.
#[derive(Clone, Debug)]
pub struct Actor {
    /// Whom it acts for.
    pub who: Who,
    /// Its calls without completions.
    pub open: Vec<Open>,
    /// What it holds.
    pub held: Vec<Held>,
    /// Only the turn of this number is taken.
    pub generation: u32,
    /// When it lets go.
    pub until: Instant,
    /// When it cancels its wait.
    pub cancel_at: Option<Instant>,
    /// It cancels although it was just granted.
    pub regret: bool,
    /// The longest lease of each lock that it has asked for since it was granted it.
    pub asked: Vec<Duration>,
    /// When it was over for one of its holds or calls of each lock.
    pub fewer: Vec<Instant>,
}

impl Actor {
    /// Its pending acquire.
    pub fn waiting(&self) -> Option<(Tag, &Waiting)> {
        self.open.iter().find_map(|open| match &open.call {
            Call::Acquire(waiting) => Some((open.tag, waiting)),
            _ => None,
        })
    }

    /// The leases that its pending acquires of a lock ask for.
    pub fn asking(&self, lock: usize) -> impl Iterator<Item = Duration> {
        self.open.iter().filter_map(move |open| match &open.call {
            Call::Acquire(waiting) if waiting.lock == lock => Some(waiting.terms.lease),
            _ => None,
        })
    }

    /// The longest lease of a lock that its holds and calls ask for now.
    pub fn asks(&self, lock: usize) -> Duration {
        let held = self.held.iter().filter(|held| held.lock == lock).map(|held| held.asked);
        held.chain(self.asking(lock)).max().unwrap_or_default()
    }

    /// One of its holds or calls of a lock is over: what it had asked for bears on the others no more.
    pub fn has_fewer(&mut self, lock: usize, now: Instant) {
        self.fewer[lock] = now;
        for other in self.held.iter_mut().filter(|other| other.lock == lock) {
            other.end = fencelock_engine::Time::ZERO;
        }
    }

    /// Whether it has a lock together with others, or has asked for it so.
    pub fn reads(&self, lock: usize) -> bool {
        let asks = |open: &Open| match &open.call {
            Call::Acquire(waiting) => waiting.lock == lock && waiting.terms.mode == Mode::Shared,
            _ => false,
        };
        self.held.iter().any(|held| held.lock == lock && held.mode == Mode::Shared)
            || self.open.iter().any(asks)
    }

    /// Whether a call is under way without which it does not go on, unless in another branch.
    pub fn is_busy(&self) -> bool {
        let stops = |call: &Call| {
            matches!(call, Call::Acquire(_) | Call::Extend { .. } | Call::Convert { .. })
        };
        self.open.iter().any(|open| stops(&open.call))
    }
}

/// A hold in a caller's hands.
#[derive(Clone, Debug)]
pub struct Held {
    /// The handle of its acquire.
    pub tag: Tag,
    /// The engine's key.
    pub key: HoldKey,
    /// The key of the acquire's call, when it was pending.
    pub call: Option<CallKey>,
    /// Which lock.
    pub lock: usize,
    /// Its token.
    pub token: u64,
    /// How it shares the lock.
    pub mode: Mode,
    /// It is a level of an exclusive hold.
    pub level: bool,
    /// The longest lease that was asked for it.
    pub asked: Duration,
    /// It was told that it is lost.
    pub lost: Option<LossReason>,
    /// The version of the ledger that it has seen.
    pub seen: Option<u64>,
    /// The latest end of its validity that was seen, by the client's clock.
    pub end: Time,
    /// When it was granted.
    pub since: Instant,
    /// It ends by itself.
    pub ends: bool,
    /// It was told that somebody wants the lock.
    pub wanted: bool,
    /// How far its holder trusts it, as the history says.
    pub trusted: Instant,
}
