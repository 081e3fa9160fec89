//! What a caller asks for and gets.

use std::time::Duration;

use crate::id::OwnerId;
use crate::reply::Abandoned;
use crate::request::Mode;
use crate::time::Time;
use crate::token::Token;

/// Names a lock within its client: the handle's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockKey(pub(crate) u32);

/// Names a local hold within its client. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HoldKey {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// Names a pending acquire within its client. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    pub(crate) index: u32,
    pub(crate) serial: u32,
}

/// Who acquires.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A thread or task of this process, by a number that the caller chooses. Never leaves it.
    Local(u64),
    /// Whoever shows this id, anywhere.
    Explicit(OwnerId),
}

/// How long an acquire waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Not at all.
    Try,
    /// Until this instant.
    Until(Time),
    /// Until granted or cancelled.
    Forever,
}

/// What an acquire asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ask {
    /// Who acquires.
    pub owner: Owner,
    /// How the hold shares the lock.
    pub mode: Mode,
    /// While others hold or wait, their number of permits counts, and that of `mode` does not.
    pub adopt: bool,
    /// An explicit lease: not renewed, ends on time. `None`: the client's lease, renewed.
    pub lease: Option<Duration>,
    /// A ceiling over the renewal, counted from the grant.
    pub max_hold: Option<Duration>,
    /// How long to wait.
    pub patience: Patience,
    /// Only join the explicit owner's holds that carry this token.
    pub attach: Option<Token>,
}

impl Ask {
    /// An ordinary exclusive hold for a local owner, waiting for ever.
    pub fn local(owner: u64) -> Ask {
        Ask {
            owner: Owner::Local(owner),
            mode: Mode::Exclusive,
            adopt: false,
            lease: None,
            max_hold: None,
            patience: Patience::Forever,
            attach: None,
        }
    }
}

impl Ask {
    /// The local owner that has what it is granted. An explicit owner's holds, and permits, have none.
    pub(crate) fn tenant(&self) -> Option<u64> {
        match (&self.owner, self.mode) {
            (_, Mode::Permits { .. }) | (Owner::Explicit(_), _) => None,
            (Owner::Local(owner), _) => Some(*owner),
        }
    }

    /// Whether it waits in the client's own queue, for the entry that is handed on within it. Local
    /// readers stand behind an entry together; who wants permits stands in a line of its own; what has
    /// an explicit owner, and a try for permits, get an entry of their own.
    pub(crate) fn queues_locally(&self) -> bool {
        self.mode == Mode::Exclusive && matches!(self.owner, Owner::Local(_))
    }
}

/// A granted hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Names the hold from now on.
    pub hold: HoldKey,
    /// Its fencing token.
    pub token: Token,
    /// Whether the previous holder released.
    pub abandoned: Abandoned,
    /// Whether the owner had the lock already.
    pub reentry: bool,
    /// How the grant came.
    pub how: How,
    /// How long the caller waited.
    pub waited: Duration,
}

/// How a grant came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// The owner had the lock already.
    Reentry,
    /// From another local holder, without asking the store.
    Local,
    /// As the answer to an acquire.
    Reply,
    /// By the store's word, after another client's release.
    Push,
    /// By the safety poll.
    Poll,
}

/// Why a hold ended before its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossReason {
    /// Its explicit lease, or `max_hold`, has ended.
    Ended,
    /// It could not be renewed in time.
    NotRenewed,
    /// The store no longer knows it: the store lost its memory, or gave the lock away.
    Gone,
    /// An operator broke it.
    Broken,
    /// The client was closed, or the process forked.
    Closed,
}

impl LossReason {
    /// What happened, for a person.
    pub const fn describe(self) -> &'static str {
        match self {
            LossReason::Ended => "its lease or max_hold ended",
            LossReason::NotRenewed => "it could not be renewed in time",
            LossReason::Gone => "the store no longer knows it",
            LossReason::Broken => "an operator broke it",
            LossReason::Closed => "the client was closed",
        }
    }
}
