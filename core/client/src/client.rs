//! The client.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::request::{Break, Mode};
use fencelock_engine::{HoldId, Name, Time};

use crate::guard::Guard;
use crate::handle::{self, Handle};
use crate::listener::Listener;
use crate::lock::Lock;
use crate::lock_ref::LockRef;
use crate::metrics::Metrics;
use crate::outcome::{broken, inspected, listed, pinged, revoked, some};
use crate::rw_lock::RwLock;
use crate::semaphore::Semaphore;
use crate::shared::{Core, Shared};
use crate::ticket::Ticket;
use crate::wait::Wait;
use crate::{Broken, Capabilities, Error, ErrorKind, LockInfo, Result};

/// How often a client that drains looks whether it is done.
pub(crate) const DRAIN_LOOK: Duration = Duration::from_millis(2);

/// A connection to a store. Cheap to clone; all clones are the same client.
///
/// When the last clone, with its locks and guards, is dropped, the client is closed in the
/// background; that needs the runtime to run on. [`Client::close`] waits for it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// use fencelock::Client;
///
/// let client = Client::connect("memory:").await?;
/// let guard = client.lock("reports/nightly")?.acquire().await?;
/// assert!(guard.is_valid());
/// guard.release().await?;
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Client {
    pub(crate) handle: Arc<Handle>,
}

impl Client {
    /// The lock `name`. Cheap, and asks the store nothing.
    ///
    /// # Errors
    /// `InvalidArgument` unless the name has 1 to 512 bytes of UTF-8 without NUL, and, where names
    /// are paths ([`Capabilities::paths`]), parts that can be one; `Closed` in a forked child.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let lock = client.lock("orders/4711")?;
    /// assert_eq!(lock.name(), "orders/4711");
    /// assert!(client.lock("").is_err());
    /// # Ok(()) }
    /// ```
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        let name = self.name(name)?;
        Ok(Lock::new(Arc::new(LockRef::new(self.handle.clone(), name)?)))
    }

    /// The read-write lock `name`: readers hold it together, a writer alone. [`Client::lock`] of the
    /// same name is its write side. Cheap, and asks the store nothing.
    ///
    /// # Errors
    /// `Unsupported` on a store without shared holds ([`Capabilities::shared`]); and those of
    /// [`Client::lock`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let prices = client.rw_lock("prices")?;
    /// let reader = prices.read().await?;
    /// assert!(client.lock("prices")?.non_reentrant().try_acquire().await.is_err());
    /// # drop(reader); Ok(()) }
    /// ```
    pub fn rw_lock(&self, name: impl AsRef<str>) -> Result<RwLock> {
        self.offers(self.capabilities().shared, "shared holds", "lock()")?;
        RwLock::of(self.lock(name)?)
    }

    /// The semaphore `name` of `of` permits, 1 to 1,000,000. Everybody who holds or waits must name the
    /// same number, and the name must not be a lock's. Cheap, and asks the store nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for the number; `Unsupported` on a store without semaphores
    /// ([`Capabilities::permits`]); and those of [`Client::lock`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let mailers = client.semaphore("mailers", 2)?;
    /// let (one, two) = (mailers.acquire().await?, mailers.acquire().await?);
    /// assert!(mailers.try_acquire().await.is_err());
    /// # drop((one, two)); Ok(()) }
    /// ```
    pub fn semaphore(&self, name: impl AsRef<str>, of: u32) -> Result<Semaphore> {
        Mode::Permits { count: 1, of }.check()?;
        self.offers(self.capabilities().permits, "semaphores", "several locks")?;
        Ok(Semaphore::new(self.lock(name)?, of))
    }

    /// Refuses what the store does not have.
    fn offers(&self, has: bool, what: &str, instead: &str) -> Result<()> {
        let store = self.capabilities().store;
        let text = format!(
            "the store {store} has no {what}: use {instead}, or a store that has them \
             (memory, sqlite, redis, zookeeper)"
        );
        if has { Ok(()) } else { Err(Error::new(ErrorKind::Unsupported, text)) }
    }

    /// Goes on with a hold of an explicit owner that another task, process or language has: joins
    /// it under the same token. The hold is this client's own, with its own lease and renewal; the
    /// lock is free when all of the owner's holds are released.
    ///
    /// # Errors
    /// `InvalidArgument` for a ticket that cannot be read, `NotHeld` when the owner's hold with the
    /// ticket's token is over, `Unsupported` on a store whose owners do not travel, `Unavailable`
    /// when the store did not answer within the request timeout.
    ///
    /// # Cancel safety
    /// Dropping the future leaves no hold behind.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # use fencelock::{Client, OwnerId};
    /// # let frontend = Client::connect("memory:tickets").await?;
    /// # let backend = Client::connect("memory:tickets").await?;
    /// let lock = frontend.lock("cart/42")?.owner(OwnerId::new("trace-8f3a")?);
    /// let guard = lock.acquire().await?;
    /// let ticket = guard.ticket()?; // goes into a header
    ///
    /// let joined = backend.attach(ticket.as_str()).await?;
    /// assert_eq!(joined.token(), guard.token());
    /// # Ok(()) }
    /// ```
    pub async fn attach(&self, ticket: impl AsRef<str>) -> Result<Guard> {
        let ticket = Ticket::parse(ticket.as_ref())?;
        let lock = self.lock(ticket.lock())?.owner(ticket.owner().clone());
        lock.start_attach(ticket.token())?.guard().await
    }

    /// The state of a lock: holds, token, waiters in order. `None` when the store knows nothing of
    /// it. Changes nothing.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`, `InvalidArgument` for the name.
    ///
    /// # Cancel safety
    /// Safe to drop.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("inspected")?.acquire().await?;
    /// let info = client.inspect("inspected").await?.expect("held");
    /// assert_eq!(info.holds.len(), 1);
    /// # drop(guard); Ok(()) }
    /// ```
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Option<LockInfo>> {
        let name = self.name(name)?;
        inspected(
            self.start(|core, now, listener| core.engine.inspect(now, &name, listener))?.await.0,
        )
    }

    /// The first `limit` names of locks that begin with `prefix` (empty: all), in the order of their
    /// bytes. No more than these are remembered on the way, however many there are. A lock that was used lately may be listed although nobody holds it.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit of 0; `Unavailable`, `Misconfigured`, `Closed`.
    ///
    /// # Cancel safety
    /// Safe to drop.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:listed").await?;
    /// let guard = client.lock("shop/a")?.acquire().await?;
    /// let names = client.list("shop/", 100).await?;
    /// assert_eq!(names[0].as_str(), "shop/a");
    /// # drop(guard); Ok(()) }
    /// ```
    pub async fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Name>> {
        some(limit)?;
        listed(
            self.start(|core, now, listener| core.engine.list(now, prefix, limit, listener))?
                .await
                .0,
        )
    }

    /// Ends the holds on a lock that were seen under `token`, whoever has them. The token is that
    /// of [`inspect`](Client::inspect) or of a hold; who got the lock after it is left alone, so
    /// that a break may be repeated. The holders are told, but one that does not listen goes on
    /// believing in its hold until its validity ends: only fencing keeps its writes out.
    ///
    /// A client may pass a lock on between its own callers without the store: those are one tenure,
    /// which ends as a whole. Of readers, and of permits, all whose token is this one or lower are
    /// ended; those that came later stay.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`, `InvalidArgument` for the name.
    ///
    /// # Cancel safety
    /// Once polled, the break may happen although the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("stuck")?.acquire().await?;
    /// let seen = client.inspect("stuck").await?.unwrap().token;
    /// assert_eq!(client.break_lock("stuck", seen).await?, fencelock::Broken::Ended(1));
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub async fn break_lock(&self, name: impl AsRef<str>, token: u64) -> Result<Broken> {
        let what = Break { lock: self.name(name)?, token, hold: None };
        broken(
            self.start(|core, now, listener| core.engine.break_lock(now, what, listener))?.await.0,
        )
    }

    /// Ends one hold, as [`inspect`](Client::inspect) names it with its token: one reader of several, or
    /// one who has permits. The others stay; as [`break_lock`](Client::break_lock) in all else.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Cancel safety
    /// As there.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let seats = client.semaphore("broken seats", 2)?;
    /// let (one, other) = (seats.acquire().await?, seats.acquire().await?);
    /// let seen = client.inspect("broken seats").await?.unwrap().holds;
    /// let broken = client.break_hold("broken seats", seen[0].token, seen[0].hold).await?;
    /// assert_eq!(broken, fencelock::Broken::Ended(1));
    /// one.lost().await;
    /// assert!(other.is_valid());
    /// # Ok(()) }
    /// ```
    pub async fn break_hold(
        &self,
        name: impl AsRef<str>,
        token: u64,
        hold: HoldId,
    ) -> Result<Broken> {
        let what = Break { lock: self.name(name)?, token, hold: Some(hold) };
        broken(
            self.start(|core, now, listener| core.engine.break_lock(now, what, listener))?.await.0,
        )
    }

    /// ZooKeeper: asks the holder of a lock to give it up soon, as Curator's revocation does, and
    /// says whether there was one. A holder of ours hears it as [`Guard::wanted`], one of Curator's
    /// in its revocation listener; neither has to obey.
    ///
    /// # Errors
    /// `Unsupported` on a store that tells holders of waiters by itself; `Unavailable`,
    /// `Misconfigured`, `Closed`, `InvalidArgument` for the name.
    ///
    /// # Cancel safety
    /// Once polled, the holder may be asked although the future is dropped.
    pub async fn request_revoke(&self, name: impl AsRef<str>) -> Result<bool> {
        let name = self.name(name)?;
        revoked(self.start(|core, now, listener| core.engine.revoke(now, &name, listener))?.await.0)
    }

    /// A name that the store can have.
    pub(crate) fn name(&self, name: impl AsRef<str>) -> Result<Name> {
        let name = Name::new(name)?;
        if self.capabilities().paths {
            fencelock_engine::zookeeper::check_name(&name)?;
        }
        Ok(name)
    }

    /// Asks the store for its time and gives the time since 1970 that it says.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    ///
    /// # Cancel safety
    /// Safe to drop.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// println!("the store's clock says {:?} since 1970", client.ping().await?);
    /// # Ok(()) }
    /// ```
    pub async fn ping(&self) -> Result<Duration> {
        pinged(self.start(|core, now, listener| core.engine.ping(now, listener))?.await.0)
    }

    /// Closes the client: cancels what waits, tells every hold that it is lost
    /// ([`LossReason::Closed`](crate::LossReason::Closed)) and releases it at the store, and gives
    /// up the connection. Returns when the store has confirmed that, or after the request timeout.
    /// Closing again does nothing.
    ///
    /// Gives whether all was released: nothing was held or waited for, and the store has confirmed the
    /// releases that were on their way.
    ///
    /// # Cancel safety
    /// Once polled, closing goes on in the background.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// use fencelock::{Client, ErrorKind};
    ///
    /// let client = Client::connect("memory:").await?;
    /// let guard = client.lock("drained")?.acquire().await?;
    /// assert!(!client.close().await);
    /// assert!(!guard.is_valid());
    /// assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    /// # Ok(()) }
    /// ```
    pub async fn close(&self) -> bool {
        handle::close(self.shared()).await
    }

    /// Closes the client when nothing is held and nobody waits any more, or when `limit` has
    /// passed. Meanwhile whoever holds or waits goes on, and may re-enter; acquires of new owners
    /// fail with `Closed`. For the end of a service: what it has begun is finished.
    ///
    /// Gives whether all was released in time; what was not is lost, and the client is closed, as with
    /// [`Client::close`]. `Duration::MAX` is no limit.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the client open, but it takes no new owners.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// use std::time::Duration;
    /// use fencelock::{Client, ErrorKind};
    ///
    /// let client = Client::connect("memory:").await?;
    /// let lock = client.lock("last")?;
    /// let guard = lock.acquire().await?;
    /// let closing = client.clone();
    /// let drained = tokio::spawn(async move { closing.drain(Duration::from_secs(10)).await });
    /// tokio::task::yield_now().await;
    /// let stranger = lock.clone().non_reentrant();
    /// assert_eq!(stranger.try_acquire().await.unwrap_err().kind(), ErrorKind::Closed);
    /// guard.release().await?;
    /// assert!(drained.await.unwrap());
    /// # Ok(()) }
    /// ```
    pub async fn drain(&self, limit: Duration) -> bool {
        let begun = tokio::time::Instant::now();
        let mut drained = self.shared().drain_more();
        while !drained && !self.is_closed() && begun.elapsed() < limit {
            tokio::time::sleep(DRAIN_LOOK).await;
            drained = self.shared().drain_more();
        }
        self.close().await && drained
    }

    /// Whether the client is closed, or belongs to the process that forked this one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// client.close().await;
    /// assert!(client.is_closed());
    /// # Ok(()) }
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared().is_closed() || self.shared().is_forked()
    }

    /// Whether this client holds nothing (but what was lost), waits for nothing, and has no release on
    /// its way: who ends a process may look here how long to let it live, without turning anybody away as
    /// [`Client::drain`] does.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let guard = client.lock("busy")?.acquire().await?;
    /// assert!(!client.is_idle());
    /// guard.release().await?;
    /// assert!(client.is_idle());
    /// # Ok(()) }
    /// ```
    pub fn is_idle(&self) -> bool {
        self.shared().is_idle()
    }

    /// What the client has counted since it was made.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// client.lock("counted")?.acquire().await?.release().await?;
    /// assert_eq!(client.metrics().grants(), 1);
    /// println!("{}", client.metrics().to_prometheus());
    /// # Ok(()) }
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.shared().metrics()
    }

    /// What the store can and cannot do.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// assert_eq!(client.capabilities().store, "memory");
    /// # Ok(()) }
    /// ```
    pub fn capabilities(&self) -> Capabilities {
        self.shared().capabilities
    }

    /// The 16 hexadecimal digits under which the store knows this client, as
    /// [`HoldInfo::client`](crate::HoldInfo) shows them.
    pub fn id(&self) -> &str {
        self.shared().id.id()
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    /// Begins a call that asks the store.
    pub(crate) fn start(&self, call: impl FnOnce(&mut Core, Time, Listener)) -> Result<Wait> {
        Wait::begin(self.shared(), call)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("store", &self.capabilities().store)
            .field("id", &self.id())
            .finish_non_exhaustive()
    }
}
