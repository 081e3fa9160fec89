//! The client.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::{Name, Outcome};

use crate::builder::Builder;
use crate::guard::Guard;
use crate::lock::{Lock, LockRef};
use crate::metrics::Metrics;
use crate::shared::{Handle, Shared, unexpected};
use crate::ticket::Ticket;
use crate::wait::Wait;
use crate::{Capabilities, Error, LockInfo, Result};

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
    /// Connects with the default options, and waits until the store has answered.
    ///
    /// Must be called in a tokio runtime; the client's background work lives there.
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that cannot be read, `Unsupported` for a store that this build
    /// does not have, `Misconfigured` at once for a wrong password, a missing permission and the
    /// like, `Unavailable` when the store did not answer within the connect timeout.
    ///
    /// # Cancel safety
    /// Dropping the future gives the connection up.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use fencelock::{Client, ErrorKind};
    ///
    /// assert!(Client::connect("memory:").await.is_ok());
    /// let error = Client::connect("carrier-pigeon://roof").await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    /// # }
    /// ```
    pub async fn connect(url: impl AsRef<str>) -> Result<Client> {
        Client::builder(url).connect().await
    }

    /// Options for a client of the store at `url`. Nothing is checked before
    /// [`Builder::connect`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// use std::time::Duration;
    ///
    /// let client = fencelock::Client::builder("memory:")
    ///     .lease(Duration::from_secs(10))
    ///     .label("billing")
    ///     .connect()
    ///     .await?;
    /// # drop(client); Ok(()) }
    /// ```
    pub fn builder(url: impl AsRef<str>) -> Builder {
        Builder::new(url.as_ref())
    }

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
        inspected(self.start(|core, now, cell| core.engine.inspect(now, &name, cell))?.await.0)
    }

    /// The names of at most `limit` locks that begin with `prefix` (empty: all), in the store's
    /// order. A lock that was used lately may be listed although nobody holds it.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
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
        listed(self.start(|core, now, cell| core.engine.list(now, prefix, limit, cell))?.await.0)
    }

    /// Ends every hold on a lock, whoever has it, and gives how many there were. The holders are
    /// told, but one that does not listen goes on believing in its hold until its validity ends:
    /// only fencing keeps its writes out.
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
    /// assert_eq!(client.break_lock("stuck").await?, 1);
    /// guard.lost().await;
    /// # Ok(()) }
    /// ```
    pub async fn break_lock(&self, name: impl AsRef<str>) -> Result<usize> {
        let name = self.name(name)?;
        broken(self.start(|core, now, cell| core.engine.break_lock(now, &name, cell))?.await.0)
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
        revoked(self.start(|core, now, cell| core.engine.revoke(now, &name, cell))?.await.0)
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
        pinged(self.start(|core, now, cell| core.engine.ping(now, cell))?.await.0)
    }

    /// Closes the client: cancels what waits, tells every hold that it is lost
    /// ([`LossReason::Closed`](crate::LossReason::Closed)) and releases it at the store, and gives
    /// up the connection. Returns when the store has confirmed that, or after the request timeout.
    /// Closing again does nothing.
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
    /// client.close().await;
    /// assert!(!guard.is_valid());
    /// assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    /// # Ok(()) }
    /// ```
    pub async fn close(&self) {
        self.shared().close().await;
    }

    /// Closes the client when nothing is held and nobody waits any more, or when `limit` has
    /// passed. Meanwhile whoever holds or waits goes on, and may re-enter; acquires of new owners
    /// fail with `Closed`. For the end of a service: what it has begun is finished.
    ///
    /// Gives whether all was released in time; what was not is lost, as with [`Client::close`].
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
        while !drained && begun.elapsed() < limit {
            tokio::time::sleep(DRAIN_LOOK).await;
            drained = self.shared().drain_more();
        }
        self.close().await;
        drained
    }

    /// Closes the client when the process is told to end (SIGTERM; Ctrl-C where there is none).
    /// The handle resolves when that is done.
    ///
    /// From now on SIGTERM does not end the process by itself: await the handle, then return from
    /// `main`. Call it in a tokio runtime.
    ///
    /// ```no_run
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # async fn serve() {}
    /// let client = fencelock::Client::connect("redis://127.0.0.1").await?;
    /// let ended = client.close_on_sigterm();
    /// tokio::select! {
    ///     () = serve() => client.close().await,
    ///     _ = ended => {}
    /// }
    /// # Ok(()) }
    /// ```
    pub fn close_on_sigterm(&self) -> tokio::task::JoinHandle<()> {
        crate::sigterm::close_on_sigterm(self)
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
    pub(crate) fn start(
        &self,
        call: impl FnOnce(&mut crate::shared::Core, fencelock_engine::Time, crate::cell::Cell),
    ) -> Result<Wait> {
        Shared::start(self.shared(), call)
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

pub(crate) fn inspected(outcome: Outcome) -> Result<Option<LockInfo>> {
    match outcome {
        Outcome::Inspected(info) => Ok(info.map(|info| *info)),
        other => Err(failed(other)),
    }
}

pub(crate) fn listed(outcome: Outcome) -> Result<Vec<Name>> {
    match outcome {
        Outcome::Listed(names) => Ok(names),
        other => Err(failed(other)),
    }
}

pub(crate) fn broken(outcome: Outcome) -> Result<usize> {
    match outcome {
        Outcome::Broken(count) => Ok(count),
        other => Err(failed(other)),
    }
}

pub(crate) fn revoked(outcome: Outcome) -> Result<bool> {
    match outcome {
        Outcome::Revoked(told) => Ok(told),
        other => Err(failed(other)),
    }
}

pub(crate) fn pinged(outcome: Outcome) -> Result<Duration> {
    match outcome {
        Outcome::Time(micros) => Ok(Duration::from_micros(micros)),
        other => Err(failed(other)),
    }
}

/// The error in an outcome that is not the wanted one.
pub(crate) fn failed(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        other => unexpected(&other),
    }
}
