//! What comes into the engine, and what goes out of it.

use core::ops::RangeInclusive;

use crate::error::Error;
use crate::hold::{Grant, HoldKey, LossReason};
use crate::id::HoldId;
use crate::lane::LaneId;
use crate::name::Name;
use crate::reply::{Abandoned, Broken, Failure, LockInfo, Push, Reply};
use crate::request::{Mode, Request, RequestId};
use crate::token::Token;
use crate::transport::Doubt;

/// What happened at the store's side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A connection is up and its subscription confirmed. `now` is the store's time.
    Up {
        /// The store's time in microseconds.
        now: u64,
    },
    /// The connection went. Every request in flight gets its own failed reply, before or after.
    Down {
        /// Why, for a person.
        reason: String,
    },
    /// The store cannot be used until an operator mends something; waits fail with this at once.
    Misconfigured(Error),
    /// A request was answered, or failed.
    Reply {
        /// Which request.
        request: RequestId,
        /// The answer.
        result: Result<Reply, Failure>,
    },
    /// The store said something unasked.
    Push(Push),
    /// Of a store that is several servers: these places are at those from now on.
    Map(Vec<(RangeInclusive<u16>, LaneId)>),
    /// This lock alone is at that server, until its place is in a [`Event::Map`] again.
    Detour(Name, LaneId),
}

/// What the engine wants done. `C` is the caller's handle, given with each call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "most effects are requests")]
pub enum Effect<C> {
    /// Send this to the store.
    Send(Request),
    /// The connection may be dead: see [`Transport::reconnect`](crate::transport::Transport::reconnect).
    Reconnect(Doubt),
    /// A call has ended.
    Complete(C, Outcome),
    /// A hold has ended before its release. Told once.
    Lost(C, LossReason),
    /// Another client queued for the lock of this hold. Told once for each hold.
    Wanted(C),
    /// Something worth counting or logging.
    Note(Note),
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An acquire was granted.
    Granted(Grant),
    /// A release is done: the store, or the next local holder, has the lock.
    Released,
    /// An extend is done.
    Extended,
    /// A hold has another mode.
    Converted(Converted),
    /// The state of a lock; `None` when the store knows nothing of it.
    Inspected(Option<Box<LockInfo>>),
    /// The names of locks.
    Listed(Vec<Name>),
    /// What became of a break.
    Broken(Broken),
    /// A semaphore was asked to have another number of permits: whether anybody holds or waits.
    Resized(bool),
    /// Whether there was a holder to ask.
    Revoked(bool),
    /// The store answered: its time in microseconds.
    Time(u64),
    /// The client is closed: nothing is held or queued any more, or the bound has passed.
    Closed,
    /// The call failed.
    Failed(Error),
}

/// A hold that has another mode than it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Converted {
    /// Which hold.
    pub hold: HoldKey,
    /// How it shares the lock from now on.
    pub mode: Mode,
    /// Its fencing token from now on.
    pub token: Token,
    /// Whether the previous exclusive holder released.
    pub abandoned: Abandoned,
}

/// What is worth counting or logging; it needs no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// So many holds were renewed by one request.
    Renewed(usize),
    /// A renewal failed and will be tried again.
    RenewalFailed {
        /// Which lock.
        lock: Name,
        /// Why.
        reason: String,
    },
    /// A hold was lost.
    Lost {
        /// Which lock.
        lock: Name,
        /// Its token.
        token: Token,
        /// Why.
        reason: LossReason,
    },
    /// The store cannot publish to this client; it polls.
    PublishFailed,
    /// A grant came by push for a hold that is over; it was given back.
    StrayGrant(HoldId),
}
