//! What a client asks of a store. The same few requests for every store.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::id::{HoldId, OwnerId};
use crate::lane::LaneId;
use crate::name::Name;
use crate::options::RETENTION;

/// Names a request until its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

impl RequestId {
    /// To which of a store's servers the request goes, and whose answer it has: its highest 16 bits.
    pub const fn lane(self) -> LaneId {
        LaneId((self.0 >> 48) as u16)
    }
}

/// A request and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Names the request; its reply comes back under the same id.
    pub id: RequestId,
    /// What is asked.
    pub op: Op,
}

/// How a hold shares the lock with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// One owner at a time.
    #[default]
    Exclusive,
    /// Any number of shared holders, or one exclusive one.
    Shared,
    /// `count` of `of` permits. Who has some has no owner, and never re-enters.
    Permits {
        /// How many permits the hold takes.
        count: u32,
        /// How many there are.
        of: u32,
    },
}

impl Mode {
    /// Checks the numbers of permits.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when they are out of their ranges.
    pub fn check(self) -> Result<(), Error> {
        let Mode::Permits { count, of } = self else { return Ok(()) };
        let text = if of == 0 || of > MAX_PERMITS {
            format!(
                "a semaphore has 1 to {MAX_PERMITS} permits, not {of}: name a number within that"
            )
        } else if count == 0 || count > of {
            format!(
                "of {of} permits 1 to {of} can be taken at once, not {count}: name a number within that"
            )
        } else {
            return Ok(());
        };
        Err(Error::new(ErrorKind::InvalidArgument, text))
    }

    /// How many permits a hold takes, if it takes any.
    pub const fn permits(self) -> Option<u32> {
        match self {
            Mode::Permits { count, .. } => Some(count),
            Mode::Exclusive | Mode::Shared => None,
        }
    }

    /// Whether holds of the two modes may belong to one name: exclusive and shared ones may.
    pub const fn is_of_kind(self, other: Mode) -> bool {
        matches!(self, Mode::Permits { .. }) == matches!(other, Mode::Permits { .. })
    }
}

/// An operation on a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Take the lock, queue for it, or learn that it is taken.
    Acquire(Acquire),
    /// Renew holds and show that waiters live, many at once. At most
    /// [`MAX_BEATS`] of them, each of another hold.
    Beat(Vec<Beat>),
    /// End a hold, or leave the queue.
    Release(Release),
    /// Tell the state of a lock, changing nothing.
    Inspect(Name),
    /// Name the locks whose names begin with `prefix`.
    List {
        /// The beginning of the names; empty for all.
        prefix: String,
        /// How many names at the most.
        limit: usize,
    },
    /// Make an exclusive hold shared, or a lone shared one exclusive.
    Convert(Convert),
    /// Set how many permits there are for those who hold or wait.
    Resize(Resize),
    /// End the holds that an operator saw, whoever has them.
    Break(Break),
    /// Ask the holder, whoever it is, to give the lock up soon. Only where it is not told of waiters
    /// by itself.
    Revoke(Name),
    /// Ask nothing but the store's time. Sent when a connection is up.
    Time,
}

impl Op {
    /// The locks that it is about; none of a listing or the time.
    pub fn locks(&self) -> Vec<Name> {
        let one = match self {
            Op::Acquire(ask) => &ask.lock,
            Op::Beat(beats) => return beats.iter().map(|beat| beat.lock.clone()).collect(),
            Op::Release(release) => &release.lock,
            Op::Convert(ask) => &ask.lock,
            Op::Resize(ask) => &ask.lock,
            Op::Break(what) => &what.lock,
            Op::Inspect(name) | Op::Revoke(name) => name,
            Op::List { .. } | Op::Time => return Vec::new(),
        };
        vec![one.clone()]
    }
}

/// How many holds one [`Op::Beat`] may carry.
pub const MAX_BEATS: usize = 100;

/// The most permits that a semaphore has.
pub const MAX_PERMITS: u32 = 1_000_000;

/// The most that an entry reports of those who wait within its client; more are reported as this.
pub const MAX_LOCAL_WAITERS: u32 = 65_535;

/// Take the lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquire {
    /// Which lock.
    pub lock: Name,
    /// The hold to be made. Repeating an acquire with the same id yields the same hold.
    pub hold: HoldId,
    /// The explicit owner; `None` for an ordinary hold, which belongs to the client and never
    /// re-enters at the store.
    pub owner: Option<OwnerId>,
    /// How the hold shares the lock.
    pub mode: Mode,
    /// The client has the lock as a read-write lock: for a store that gives the writers of such locks
    /// names of their own.
    pub read_write: bool,
    /// How long the hold lasts unless renewed.
    pub lease: Duration,
    /// The store's time, in microseconds, past which this request must not take effect any more.
    pub not_after: u64,
    /// The highest token that this client ever saw for the lock.
    pub floor: u64,
    /// How to queue when the lock is taken; `None` to be refused.
    pub wait: Option<Wait>,
    /// Only join the holds of `owner`, and only while they carry this token.
    pub attach: Option<u64>,
    /// Release this hold first, in the same atomic step.
    pub after: Option<Release>,
    /// How many callers of the client wait within it, behind this entry: for people alone.
    pub local_waiters: u32,
}

impl Acquire {
    /// Takes the lock for the client itself, if it is free.
    pub fn new(lock: Name, hold: HoldId, lease: Duration, not_after: u64) -> Acquire {
        Acquire {
            lock,
            hold,
            owner: None,
            mode: Mode::Exclusive,
            read_write: false,
            lease,
            not_after,
            floor: 0,
            wait: None,
            attach: None,
            after: None,
            local_waiters: 0,
        }
    }
}

/// How a waiter queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// The ticket of an earlier place in the queue; 0 for a new one.
    pub ticket: u64,
    /// The lease of a hold that is given by hand-off, until its holder is heard from. Never above
    /// the hold's own lease.
    pub claim: Duration,
    /// A waiter that was not heard from for so long is passed over.
    pub silence: Duration,
}

/// Renew a hold; or, if it is still queued, show that its waiter lives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Beat {
    /// Which lock.
    pub lock: Name,
    /// Which hold.
    pub hold: HoldId,
    /// The lease from now on; a renewal never shortens what is left.
    pub lease: Duration,
    /// The highest token that was given out under this hold; 0 while queued.
    pub used: u64,
    /// While queued: the waiter is passed over when it is not heard from for so long from now on.
    pub silence: Duration,
    /// How many callers of the client wait within it, behind this entry: for people alone.
    pub local_waiters: u32,
    /// How the hold shares the lock, or would: for stores that keep the modes apart.
    pub mode: Mode,
    /// The store refused more: see [`RefusalKind::Apart`](crate::reply::RefusalKind::Apart). Of one alone.
    pub apart: bool,
}

impl Beat {
    /// Renews a hold under which no token was given out, or shows a waiter that is passed over after
    /// the same span.
    pub fn new(lock: Name, hold: HoldId, lease: Duration) -> Beat {
        let (used, local_waiters, mode) = (0, 0, Mode::Exclusive);
        Beat { lock, hold, lease, used, silence: lease, local_waiters, mode, apart: false }
    }
}

/// Hold the lock in another mode from now on, without letting go of it. A hold that is in that mode
/// already is renewed, and answers its token: harmless when repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convert {
    /// Which lock.
    pub lock: Name,
    /// Which hold.
    pub hold: HoldId,
    /// [`Mode::Shared`], which always succeeds, or [`Mode::Exclusive`], which does while nobody else
    /// holds the lock, past whoever waits for it; otherwise nothing changes, and the answer is
    /// [`Standing::Contended`](crate::reply::Standing::Contended).
    pub to: Mode,
    /// The lease from now on; it never shortens what is left.
    pub lease: Duration,
    /// The store's time, in microseconds, past which this request must not take effect any more.
    pub not_after: u64,
    /// The highest token that this client ever saw for the lock.
    pub floor: u64,
    /// Of an exclusive hold: the highest token that was given out under it; 0 when none was.
    pub used: u64,
    /// Of an exclusive hold: whether it, and with it `previous_abandoned`, reached a holder.
    pub told: bool,
    /// Of an exclusive hold: of how many losses its holder was told. See
    /// [`State::losses`](crate::reply::State::losses).
    pub losses: u32,
}

impl Convert {
    /// Converts a hold of whose grant its holder was told.
    pub fn new(lock: Name, hold: HoldId, to: Mode, lease: Duration, not_after: u64) -> Convert {
        Convert { lock, hold, to, lease, not_after, floor: 0, used: 0, told: true, losses: 0 }
    }
}

/// Set how many permits a semaphore has, until nobody holds or waits. Nobody is ended: where more are out
/// than there are, nobody enters until enough have come back. Harmless when repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Resize {
    /// Which semaphore.
    pub lock: Name,
    /// How many permits it has from now on.
    pub of: u32,
}

/// End the holds of a tenure that an operator saw, and of none that came after it. Harmless when
/// repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Break {
    /// Which lock.
    pub lock: Name,
    /// A token of the tenure that is meant. Of a present tenure whose token lies above it nothing
    /// is ended.
    pub token: u64,
    /// Which of its holds; `None` for all.
    pub hold: Option<HoldId>,
}

/// End a hold, or leave the queue. Harmless when repeated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Release {
    /// Which lock.
    pub lock: Name,
    /// Which hold.
    pub hold: HoldId,
    /// The highest token that was given out under this hold; 0 when none was.
    pub used: u64,
    /// Whether the grant, and with it `previous_abandoned`, reached a holder.
    pub told: bool,
    /// Whether the holder had lost the hold by its own clock: the next one must be told.
    pub lost: bool,
    /// Of how many losses the holder was told with its grant: see [`State::losses`].
    ///
    /// [`State::losses`]: crate::reply::State::losses
    pub losses: u32,
    /// How long the store keeps a record that has nothing to tell once this is done.
    pub retention: Duration,
    /// Nobody is known to wait. A store may refuse that as `Again` when it finds somebody; the
    /// repeat says no.
    pub alone: bool,
    /// How the hold shares the lock, or would: for stores that keep the modes apart.
    pub mode: Mode,
}

impl Release {
    /// Ends a hold of whose grant its holder was told.
    pub fn new(lock: Name, hold: HoldId, used: u64) -> Release {
        Release {
            lock,
            hold,
            used,
            told: true,
            lost: false,
            losses: 0,
            retention: RETENTION,
            alone: false,
            mode: Mode::Exclusive,
        }
    }
}
