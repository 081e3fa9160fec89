//! One lock, as a store keeps it.

use crate::id::{ClientId, HoldId, OwnerId};
use crate::reply::{Abandoned, Push};
use crate::request::Mode;
use crate::store::queue::Queue;

/// What happened to a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Somebody listens on the client's inbox.
    Delivered,
    /// Nobody does: the client is not connected.
    Nobody,
    /// The store may not publish.
    Failed,
}

/// How a store reaches a client.
pub trait Announce {
    /// Publishes `push` to the inbox of the client with this id (16 hexadecimal digits).
    fn announce(&mut self, client: &str, push: Push) -> Delivery;
}

/// Who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The client.
    pub client: ClientId,
    /// It has no inbox: it is never published to, and learns of a grant when it beats.
    pub polling: bool,
}

/// A hold as stored. Times are the store's, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredHold {
    /// Its id.
    pub hold: HoldId,
    /// Whose it is.
    pub client: ClientId,
    /// Its client has no inbox.
    pub polling: bool,
    /// It lives while now < deadline.
    pub deadline: u64,
    /// What the deadline may lie ahead of now at the most.
    pub lease: u64,
    /// The lease that the holder asked for (a claim's is shorter).
    pub asked: u64,
    /// Given by hand-off, and its holder not heard from yet.
    pub claim: bool,
    /// How many wait within its client, as that last said.
    pub local_waiters: u32,
    /// How it shares the lock.
    pub mode: Mode,
    /// Its token. An exclusive one has the record's.
    pub token: u64,
    /// Its explicit owner.
    pub owner: Option<OwnerId>,
}

/// A waiter as stored. Times are the store's, in microseconds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StoredWaiter {
    /// The hold that it wants.
    pub hold: HoldId,
    /// Whose it is.
    pub client: ClientId,
    /// Its client has no inbox.
    pub polling: bool,
    /// The explicit owner; `None` for an ordinary hold.
    pub owner: Option<OwnerId>,
    /// Its place: smaller comes first.
    pub ticket: u64,
    /// When it was last heard.
    pub heard: u64,
    /// Found silent or unreachable since it was last heard: passed over.
    pub silent: bool,
    /// The lease it wants.
    pub lease: u64,
    /// The lease of its hold until it is heard from.
    pub claim: u64,
    /// It is passed over when not heard from for so long.
    pub silence: u64,
    /// How many more wait within its client, as that last said.
    pub local_waiters: u32,
    /// How it wants to share the lock.
    pub mode: Mode,
}

/// One lock, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Record {
    /// The explicit owner of the present exclusive holds.
    pub owner: Option<OwnerId>,
    /// The present holds.
    pub holds: Vec<StoredHold>,
    /// The token of the present exclusive holds; of others, which have one each, the highest that
    /// was granted. While the lock is free, the highest one of the last holds where those were
    /// released.
    pub token: u64,
    /// The highest token reserved; 0 when the counter is absent.
    pub last: u64,
    /// The highest token that a beat showed as given out: the first beat that shows a higher one
    /// sets the lease, since its holder is another one.
    pub used: u64,
    /// What the next holder is told of its predecessor. A record that was never there says
    /// unknown.
    pub abandoned: Abandoned,
    /// How often the present owner lost a hold and kept others. A release that was told of fewer
    /// does not clear `abandoned`. 0 while the lock is free.
    pub losses: u32,
    /// The hold that was released last.
    pub released: Option<HoldId>,
    /// The last ticket given.
    pub ticket: u64,
    /// Who waits.
    pub waiters: Queue,
}

impl Record {
    /// Whether `owner` is the explicit owner of the present exclusive holds.
    pub(super) fn is_held_by(&self, owner: Option<&OwnerId>) -> bool {
        if planted!(OwnerByPrefix)
            && let (Some(mine), Some(asked)) = (&self.owner, owner)
        {
            return !self.holds.is_empty() && mine.as_str().starts_with(asked.as_str());
        }
        !self.holds.is_empty() && owner.is_some() && self.owner.as_ref() == owner
    }

    /// What a holder who is granted the lock now is told of its predecessor: a counter that is
    /// absent may have lost one.
    pub(super) fn abandoned_now(&self) -> Abandoned {
        match self.abandoned {
            Abandoned::No if self.last == 0 => Abandoned::Unknown,
            known => known,
        }
    }
}
