//! A lock's name, and how to acquire it.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::request::Mode;
use fencelock_engine::{Acquired, Ask, Owner, Patience};

use crate::begun::Started;
use crate::errors::draining;
use crate::guard::Guard;
use crate::listener::Listener;
use crate::lock_ref::LockRef;
use crate::outcome::inspected;
use crate::owner::{By, Identity};
use crate::wait::Wait;
use crate::{OwnerId, Result, Token};

/// A lock on a store, with the options of its acquisitions. Cheap to clone; a clone with other
/// options is the same lock.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// use std::time::Duration;
/// use fencelock::{Client, ErrorKind};
///
/// let client = Client::connect("memory:").await?;
/// let lock = client.lock("cache/rebuild")?;
///
/// let guard = lock.acquire().await?;
/// let again = lock.acquire().await?; // the same task: re-entry
/// assert!(again.is_reentry());
/// assert_eq!(again.token(), guard.token());
/// assert_eq!(lock.hold_count(), 2);
///
/// let stranger = lock.clone().non_reentrant();
/// let error = stranger.try_acquire().await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Contended);
/// let error = stranger.acquire_timeout(Duration::from_millis(20)).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TimedOut);
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Lock {
    inner: Arc<LockRef>,
    identity: Identity,
    mode: Mode,
    adopt: bool,
    lease: Option<Duration>,
    max_hold: Option<Duration>,
}

impl Lock {
    pub(crate) fn new(inner: Arc<LockRef>) -> Lock {
        let (identity, mode) = (Identity::Ambient, Mode::Exclusive);
        Lock { inner, identity, mode, adopt: false, lease: None, max_hold: None }
    }

    /// The lock is had to read and write.
    pub(crate) fn set_read_write(&self) -> Result<()> {
        self.inner.set_read_write()
    }

    /// The same lock, acquired in another mode.
    pub(crate) fn with_mode(&self, mode: Mode) -> Lock {
        Lock { mode, ..self.clone() }
    }

    /// While others hold or wait, their number of permits counts.
    pub(crate) fn adopting(self) -> Lock {
        Lock { adopt: true, ..self }
    }

    pub(crate) fn adopts(&self) -> bool {
        self.adopt
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.inner.name.as_str()
    }

    /// Gives holds an explicit lease (100 ms to 7 days): they are not renewed and end on time.
    /// Without it a hold has the client's lease and is renewed until it is released.
    ///
    /// A lease out of its range is refused by the acquire.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use std::time::Duration;
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let lock = client.lock("short")?.lease(Duration::from_millis(200));
    /// let guard = lock.acquire().await?;
    /// assert!(guard.remaining() <= Duration::from_millis(200));
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Lock {
        self.lease = Some(lease);
        self
    }

    /// Puts a ceiling over the renewal: a hold ends so long after its grant, although its holder
    /// lives. Guards against a holder that hangs.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use std::time::Duration;
    /// # use fencelock::LossReason;
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let lock = client.lock("bounded")?.max_hold(Duration::from_millis(150));
    /// let guard = lock.acquire().await?;
    /// assert_eq!(guard.lost().await, LossReason::Ended);
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn max_hold(mut self, ceiling: Duration) -> Lock {
        self.max_hold = Some(ceiling);
        self
    }

    /// Acquires for an explicit owner: whoever shows the same id re-enters, from whichever task,
    /// process or language. Parallel branches of one owner do not exclude each other.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use fencelock::{Client, OwnerId};
    /// # let here = Client::connect("memory:owners").await?;
    /// # let there = Client::connect("memory:owners").await?;
    /// let owner = OwnerId::new("trace-8f3a")?;
    /// let first = here.lock("order/9")?.owner(owner.clone()).acquire().await?;
    /// let second = there.lock("order/9")?.owner(owner).try_acquire().await?;
    /// assert_eq!(first.token(), second.token());
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn owner(mut self, owner: OwnerId) -> Lock {
        self.identity = Identity::Explicit(owner);
        self
    }

    /// Acquires for the owner with this number within the client: for hosts that have tasks of
    /// their own (another executor, another language). The same number re-enters; unlike
    /// [`Lock::owner`] it means nothing to the store or to another client, and a lock passes
    /// between such owners without asking the store. The two highest bits of the number are not
    /// told apart.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let lock = client.lock("numbered")?;
    /// let guard = lock.clone().local_owner(7).acquire().await?;
    /// assert!(lock.clone().local_owner(7).try_acquire().await?.is_reentry());
    /// assert!(lock.local_owner(8).try_acquire().await.is_err());
    /// # drop(guard); Ok(()) }
    /// ```
    #[must_use]
    pub fn local_owner(mut self, number: u64) -> Lock {
        self.identity = Identity::Local(number);
        self
    }

    /// Makes every acquisition its own owner: acquiring again waits, also in the same task.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let lock = client.lock("once")?.non_reentrant();
    /// let guard = lock.acquire().await?;
    /// assert!(lock.try_acquire().await.is_err());
    /// # drop(guard); Ok(()) }
    /// ```
    #[must_use]
    pub fn non_reentrant(mut self) -> Lock {
        self.identity = Identity::Fresh;
        self
    }

    /// Acquires the lock, waiting as long as it takes, first come, first served. An outage of the
    /// store is waited out. Branches of one task that wait at the same time get the lock together,
    /// under one token.
    ///
    /// # Errors
    /// `Misconfigured`, `InvalidArgument`, `Unsupported`, `Closed`; `Unavailable` only when too many
    /// wait in this client already.
    ///
    /// # Cancel safety
    /// Dropping the future gives up the place in the queue; a grant that arrived meanwhile is
    /// given back.
    pub async fn acquire(&self) -> Result<Guard> {
        self.start(Limit::Forever)?.guard().await
    }

    /// Acquires the lock if it is free, without waiting for others.
    ///
    /// # Errors
    /// `Contended` when another holds it or waits for it; `Unavailable` when the store did not
    /// answer within the request timeout; and those of [`Lock::acquire`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves no hold behind.
    pub async fn try_acquire(&self) -> Result<Guard> {
        self.start(Limit::Try)?.guard().await
    }

    /// Acquires the lock, waiting for at most `limit`.
    ///
    /// # Errors
    /// `TimedOut` when others held it all the while, or the store took longer to answer than so
    /// short a limit; `Unavailable` when it cannot be reached, or did not answer for the request
    /// timeout; and those of [`Lock::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn acquire_timeout(&self, limit: Duration) -> Result<Guard> {
        self.start(Limit::For(limit))?.guard().await
    }

    /// Whether anybody holds the lock, a reader too, by the store's word at the time of asking. Good for
    /// display, never for a decision: it may change before the answer arrives.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub async fn is_locked(&self) -> Result<bool> {
        Ok(inspected(self.start_inspect()?.await.0)?.is_some_and(|info| !info.holds.is_empty()))
    }

    /// How many holds the present owner (task or thread, or the explicit owner in this client) has
    /// on the lock, to read or to write; 0 with [`Lock::non_reentrant`]. Asks the store nothing.
    pub fn hold_count(&self) -> usize {
        match &self.identity {
            Identity::Fresh => 0,
            identity => self.inner.count(&identity.owner()),
        }
    }

    /// How many of [`Lock::hold_count`] are in this handle's mode: to write, or of
    /// [`RwLock::reader`](crate::RwLock::reader) to read. For hosts that ask of each side whether it is
    /// held.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let prices = client.rw_lock("sides counted")?;
    /// let guard = prices.read().await?;
    /// assert_eq!((prices.reader().side_count(), prices.writer().side_count()), (1, 0));
    /// # drop(guard); Ok(()) }
    /// ```
    pub fn side_count(&self) -> usize {
        match (&self.identity, self.mode) {
            (Identity::Fresh, _) | (_, Mode::Permits { .. }) => 0,
            (identity, mode) => self.inner.count_in(&identity.owner(), mode),
        }
    }

    /// Whether anybody holds the lock through this client, any owner and any handle. Asks the
    /// store nothing: another client's hold is not seen.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("seen")?.acquire().await?;
    /// assert!(client.lock("seen")?.is_held());
    /// # drop(guard); Ok(()) }
    /// ```
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }

    pub(crate) fn start(&self, limit: Limit) -> Result<Started> {
        self.start_as(self.mode, limit)
    }

    /// Begins to acquire in another mode than the handle's own.
    pub(crate) fn start_as(&self, mode: Mode, limit: Limit) -> Result<Started> {
        self.start_ask(mode, limit, None)
    }

    pub(crate) fn start_attach(&self, token: Token) -> Result<Started> {
        self.start_ask(self.mode, Limit::Try, Some(token))
    }

    pub(crate) fn start_inspect(&self) -> Result<Wait> {
        let name = &self.inner.name;
        Wait::begin(self.inner.shared(), |core, now, listener| {
            core.engine.inspect(now, name, listener)
        })
    }

    pub(crate) fn start_resize(&self, of: u32) -> Result<Wait> {
        let name = &self.inner.name;
        Wait::begin(self.inner.shared(), |core, now, listener| {
            core.engine.resize(now, name, of, listener)
        })
    }

    fn start_ask(&self, mode: Mode, limit: Limit, attach: Option<Token>) -> Result<Started> {
        let owner = self.identity.owner();
        let permits = matches!(mode, Mode::Permits { .. });
        let nestable = self.lease.is_none() && self.max_hold.is_none() && !permits;
        let nested = match &owner {
            Owner::Local(owner) if nestable => Some(*owner),
            _ => None,
        };
        if let Some(owner) = nested
            && let Some(shared) = self.inner.reenter(owner, mode)
        {
            return Ok(Started::Granted(Guard::nested(self.inner.clone(), owner, shared)));
        }
        let explicit = match &owner {
            Owner::Explicit(owner) => Some(owner.clone()),
            Owner::Local(_) => None,
        };
        let (lease, max_hold, adopt) = (self.lease, self.max_hold, self.adopt);
        let listener = Listener::default();
        let shared = self.inner.shared();
        let handle = listener.clone();
        let (acquired, flush) = shared.with_unflushed(|core, now| {
            if core.draining && (permits || self.inner.held(core, now, &owner) == 0) {
                return Err(draining());
            }
            let patience = match limit {
                Limit::Try => Patience::Try,
                Limit::For(span) => Patience::Until(now + span),
                Limit::Forever => Patience::Forever,
            };
            let ask = Ask { owner, mode, adopt, lease, max_hold, patience, attach };
            let acquired = core.engine.acquire(now, self.inner.key, ask, handle)?;
            if let Acquired::Granted(grant) = &acquired {
                core.counts.granted(grant);
            }
            Ok((acquired, now))
        })?;
        // Sends a hold's end that the engine noticed on the way.
        let acquired = acquired.inspect_err(|_| {
            if flush {
                shared.flush();
            }
        });
        Ok(match acquired? {
            (Acquired::Granted(grant), now) => {
                if flush {
                    shared.flush();
                }
                let by = By { explicit, nested, mode };
                Started::Granted(Guard::new(self.inner.clone(), listener, by, grant, now))
            }
            (Acquired::Pending(call), _) => Started::Pending {
                wait: Wait::acquire(shared.clone(), listener, call, flush),
                lock: self.inner.clone(),
                by: By { explicit, nested, mode },
            },
        })
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lock").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// How long an acquire waits, before the clock is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    Try,
    For(Duration),
    Forever,
}
