//! What a store answers, and what it says unasked.

use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::request::Mode;

/// An answered request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The store's time when it answered, in microseconds.
    pub now: u64,
    /// The answer.
    pub body: Body,
}

/// The answer to each kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// To [`Op::Acquire`](crate::request::Op::Acquire).
    Acquire(State),
    /// To [`Op::Beat`](crate::request::Op::Beat): one for each, in the same order. A lock that
    /// cannot be served does not cost the others.
    Beat(Vec<Result<State, Refusal>>),
    /// To [`Op::Release`](crate::request::Op::Release).
    Release(Released),
    /// To [`Op::Inspect`](crate::request::Op::Inspect); `None` when the store knows nothing of it.
    Inspect(Option<LockInfo>),
    /// To [`Op::List`](crate::request::Op::List).
    List(Vec<Name>),
    /// To [`Op::Convert`](crate::request::Op::Convert): granted when the hold is in the mode that was
    /// asked for.
    Convert(State),
    /// To [`Op::Resize`](crate::request::Op::Resize): whether anybody holds or waits. Otherwise there was
    /// nothing to change.
    Resize(bool),
    /// To [`Op::Break`](crate::request::Op::Break).
    Break(Broken),
    /// To [`Op::Revoke`](crate::request::Op::Revoke): whether there was a holder.
    Revoke(bool),
    /// To [`Op::Time`](crate::request::Op::Time).
    Time,
}

/// Where a hold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// It holds the lock.
    Granted,
    /// It waits in the queue.
    Queued,
    /// The lock is taken, or others wait for it, and the request did not want to wait.
    Contended,
    /// The request arrived after its `not_after`, or that lies too far ahead; nothing was done.
    Late,
    /// This very hold was the last one to be released.
    Released,
    /// The store knows nothing of it.
    Gone,
    /// An attach found no hold of the owner with the expected token.
    NotHeld,
    /// The explicit owner has the lock shared and wants it for itself: it would wait for its own
    /// hold. It is not queued.
    Deadlock,
    /// It waited for more permits than there are since the semaphore was resized. It is not queued any
    /// more.
    Doomed {
        /// How many there are.
        of: u32,
    },
    /// The store granted or renewed it, and may forget that: not enough of its replicas have it. It is to
    /// be asked again or released, and never to be counted.
    Unconfirmed {
        /// How many replicas have it.
        by: u32,
        /// How many were to.
        of: u32,
    },
}

/// The state of one hold, as every reply about it carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Where it stands.
    pub standing: Standing,
    /// When granted: the hold's token. Otherwise 0.
    pub token: u64,
    /// When granted: the last token that may be given out under this hold.
    pub end: u64,
    /// When not granted: the token of the present tenure, or of the last one. A pushed grant counts
    /// only above it: one at or below it is the echo of a grant that has ended.
    pub last: u64,
    /// When granted: the remaining lease at the store.
    pub lease: Duration,
    /// When granted: whether the previous holder released.
    pub abandoned: Abandoned,
    /// When granted: how often the explicit owner lost a hold under this token and kept others, as
    /// `abandoned` tells. The release shows it again: who was told of fewer does not clear
    /// `abandoned`.
    pub losses: u32,
    /// When contended, and when queued as the first, whose affair the holder's expiry is: how long
    /// until the present holder's lease ends at the store.
    pub expires_in: Option<Duration>,
    /// When granted or contended: how many others are queued and were not found silent since they
    /// were last heard. 0 or not is what matters.
    pub others_waiting: u32,
    /// When queued: how many of those come before.
    pub ahead: u32,
    /// When queued: the place in the queue, to be shown again if the entry is lost.
    pub ticket: u64,
    /// The store may not publish: pushes will not come, poll instead.
    pub publish_failed: bool,
}

impl State {
    /// A state that says nothing but where the hold stands.
    pub const fn bare(standing: Standing) -> State {
        State {
            standing,
            token: 0,
            end: 0,
            last: 0,
            lease: Duration::ZERO,
            abandoned: Abandoned::No,
            losses: 0,
            expires_in: None,
            others_waiting: 0,
            ahead: 0,
            ticket: 0,
            publish_failed: false,
        }
    }
}

/// Whether the previous holder of a lock released it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Abandoned {
    /// It released, or there was none.
    #[default]
    No,
    /// It was lost: what the lock protects may be half done.
    Yes,
    /// The store cannot tell.
    Unknown,
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Released {
    /// The hold was there and is ended, or this very hold was the last one released before.
    Done,
    /// It was only queued, or granted and never told; it is gone from the lock.
    Left,
    /// The store knew nothing of it.
    Unknown,
}

/// What became of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Broken {
    /// So many holds were ended.
    Ended(usize),
    /// What was named holds nothing, and no later tenure holds the lock.
    NotHeld,
    /// Nothing was ended: the lock has changed hands, and is held under this later token.
    ChangedHands(u64),
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The store said that it did not execute the request.
    Refused(Refusal),
    /// It may or may not have been executed: the connection went in between.
    Unknown,
    /// It was certainly not sent: there is no connection.
    NotSent,
}

/// The store's word that it did not execute a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// The store's own words, and what to do.
    pub message: String,
}

/// Whether a refused request is worth repeating.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalKind {
    /// It may pass by itself (loading, busy, memory full, read-only, …): repeat with backoff.
    Retry,
    /// Repeat at once: the script was not loaded, and now is.
    Again,
    /// Repeat at once, each lock by itself, and only to renew: what the locks are kept in is moving from
    /// one server to another, part by part.
    Apart,
    /// Only an operator can mend it (password, permission, wrong type, newer layout, clock).
    Misconfigured,
    /// As `Misconfigured`: those who hold or wait say another number of permits. Whoever adopts that asks
    /// again with it.
    OtherPermits {
        /// How many they say.
        of: u32,
    },
    /// The store cannot do this.
    Unsupported,
}

/// What a store says unasked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// A queued hold was granted with its claim lease.
    Granted {
        /// Which lock.
        lock: Name,
        /// Which hold.
        hold: HoldId,
        /// Its token.
        token: u64,
        /// The last token that may be given out under it.
        end: u64,
        /// Whether the previous holder released.
        abandoned: Abandoned,
        /// How many losses that tells of: see [`State::losses`].
        losses: u32,
        /// How many others wait.
        others_waiting: u32,
    },
    /// Somebody queued for a lock that this hold has.
    Wanted {
        /// Which lock.
        lock: Name,
        /// Which hold.
        hold: HoldId,
    },
    /// This hold was broken by an operator.
    Broken {
        /// Which lock.
        lock: Name,
        /// Which hold.
        hold: HoldId,
    },
    /// Something about the lock changed that may concern this waiter: look again.
    Changed {
        /// Which lock.
        lock: Name,
        /// Which hold.
        hold: HoldId,
    },
}

impl Push {
    /// Which lock it is about.
    pub fn lock(&self) -> &Name {
        match self {
            Push::Granted { lock, .. }
            | Push::Wanted { lock, .. }
            | Push::Broken { lock, .. }
            | Push::Changed { lock, .. } => lock,
        }
    }
}

/// All that a store knows of a lock, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The lock.
    pub name: Name,
    /// The explicit owner of the present exclusive holds, if they have one.
    pub owner: Option<String>,
    /// The present holds: none when the lock is free, several when an explicit owner re-entered, and of
    /// readers and of a semaphore.
    pub holds: Vec<HoldInfo>,
    /// The token of the present holds, the highest one where each has its own; or 0.
    pub token: u64,
    /// The highest token reserved so far.
    pub last_token: u64,
    /// What the next holder will be told of its predecessor.
    pub abandoned: Abandoned,
    /// Who waits, first come first, and then who is passed over; 256 of them at the most.
    pub waiters: Vec<WaiterInfo>,
    /// How many wait in all: the entries in the queue, those not shown among them, and who waits
    /// within a client behind a hold or a waiter that is shown, as far as that is known.
    pub waiting: usize,
}

/// A hold, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldInfo {
    /// Its id.
    pub hold: HoldId,
    /// The client's id.
    pub client: String,
    /// The client's label.
    pub label: String,
    /// What is left of the lease.
    pub expires_in: Duration,
    /// The lease it counts from.
    pub lease: Duration,
    /// How it shares the lock.
    pub mode: Mode,
    /// Its token.
    pub token: u64,
    /// Its explicit owner, if it has one.
    pub owner: Option<String>,
    /// Given by hand-off, and its holder not heard from yet.
    pub claim: bool,
    /// How many callers wait within the holder's client, which hands the lock on among them, as it
    /// said with its latest acquire or renewal: up to a renewal old, and 65,535 at the most. Exact
    /// for a hold of the client that asks. `None` where the store keeps no such number (ZooKeeper).
    pub local_waiters: Option<u32>,
}

/// A waiter, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaiterInfo {
    /// Its hold's id.
    pub hold: HoldId,
    /// The client's id.
    pub client: String,
    /// The client's label.
    pub label: String,
    /// The explicit owner, if it has one.
    pub owner: Option<String>,
    /// How long ago it was heard from.
    pub heard_ago: Duration,
    /// Whether it would be passed over now.
    pub silent: bool,
    /// How it wants to share the lock.
    pub mode: Mode,
    /// How many more callers wait within the waiter's client, behind the one that this entry will be
    /// granted to; as [`HoldInfo::local_waiters`].
    pub local_waiters: Option<u32>,
}
