//! The blocking client.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fencelock_engine::request::Break;

use crate::blocking::{Driver, Guard, Lock, RwLock, Semaphore};
use crate::builder::Builder;
use crate::client::DRAIN_LOOK;
use crate::handle;
use crate::outcome::{broken, inspected, listed, pinged, revoked, some};
use crate::ticket::Ticket;
use crate::uncancelled::uncancelled;
use crate::{Broken, Capabilities, HoldId, LockInfo, Metrics, Name, Result, cork};

/// A connection to a store, for threads. Cheap to clone; all clones are the same client.
///
/// ```
/// use fencelock::blocking::Client;
///
/// let client = Client::connect("memory:")?;
/// let guard = client.lock("reports/nightly")?.acquire()?;
/// assert!(guard.is_valid());
/// guard.release()?;
/// client.close();
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    driver: Arc<Driver>,
}

impl Client {
    /// Connects with the default options, and waits until the store has answered.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub fn connect(url: impl AsRef<str>) -> Result<Client> {
        Client::builder(url).connect_blocking()
    }

    /// Options for a client of the store at `url`; end with [`Builder::connect_blocking`].
    pub fn builder(url: impl AsRef<str>) -> Builder {
        crate::Client::builder(url)
    }

    /// The lock `name`; see [`crate::Client::lock`].
    ///
    /// # Errors
    /// `InvalidArgument` for the name.
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Ok(Lock::new(self.inner.lock(name)?, self.driver.clone()))
    }

    /// The read-write lock `name`; see [`crate::Client::rw_lock`].
    ///
    /// # Errors
    /// As there.
    pub fn rw_lock(&self, name: impl AsRef<str>) -> Result<RwLock> {
        Ok(RwLock::new(self.inner.rw_lock(name)?, self.driver.clone()))
    }

    /// The semaphore `name` of `of` permits; see [`crate::Client::semaphore`].
    ///
    /// # Errors
    /// As there.
    pub fn semaphore(&self, name: impl AsRef<str>, of: u32) -> Result<Semaphore> {
        Ok(Semaphore::new(self.inner.semaphore(name, of)?, self.driver.clone()))
    }

    /// Goes on with a hold of an explicit owner; see [`crate::Client::attach`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(&self, ticket: impl AsRef<str>) -> Result<Guard> {
        let ticket = Ticket::parse(ticket.as_ref())?;
        let lock = self.inner.lock(ticket.lock())?.owner(ticket.owner().clone());
        Guard::wait(lock.start_attach(ticket.token())?, &self.driver)
    }

    /// The state of a lock; see [`crate::Client::inspect`].
    ///
    /// # Errors
    /// As there.
    pub fn inspect(&self, name: impl AsRef<str>) -> Result<Option<LockInfo>> {
        let name = self.inner.name(name)?;
        let wait =
            self.inner.start(|core, now, listener| core.engine.inspect(now, &name, listener))?;
        inspected(self.driver.wait(wait).0)
    }

    /// The names of locks; see [`crate::Client::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Name>> {
        some(limit)?;
        let call = self
            .inner
            .start(|core, now, listener| core.engine.list(now, prefix, limit, listener))?;
        listed(self.driver.wait(call).0)
    }

    /// Ends the holds on a lock that were seen under `token`; see [`crate::Client::break_lock`] for
    /// its danger.
    ///
    /// # Errors
    /// As there.
    pub fn break_lock(&self, name: impl AsRef<str>, token: u64) -> Result<Broken> {
        let what = Break { lock: self.inner.name(name)?, token, hold: None };
        let wait =
            self.inner.start(|core, now, listener| core.engine.break_lock(now, what, listener))?;
        broken(self.driver.wait(wait).0)
    }

    /// Ends one hold of a lock; see [`crate::Client::break_hold`].
    ///
    /// # Errors
    /// As there.
    pub fn break_hold(&self, name: impl AsRef<str>, token: u64, hold: HoldId) -> Result<Broken> {
        let what = Break { lock: self.inner.name(name)?, token, hold: Some(hold) };
        let wait =
            self.inner.start(|core, now, listener| core.engine.break_lock(now, what, listener))?;
        broken(self.driver.wait(wait).0)
    }

    /// ZooKeeper: asks the holder of a lock to give it up soon; see
    /// [`crate::Client::request_revoke`].
    ///
    /// # Errors
    /// As there.
    pub fn request_revoke(&self, name: impl AsRef<str>) -> Result<bool> {
        let name = self.inner.name(name)?;
        let wait =
            self.inner.start(|core, now, listener| core.engine.revoke(now, &name, listener))?;
        revoked(self.driver.wait(wait).0)
    }

    /// The store's time since 1970.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    pub fn ping(&self) -> Result<Duration> {
        let wait = self.inner.start(|core, now, listener| core.engine.ping(now, listener))?;
        pinged(self.driver.wait(wait).0)
    }

    /// Closes the client: cancels what waits, tells every hold that it is lost and releases it at
    /// the store. Returns when the store has confirmed that, or after the request timeout. Gives whether
    /// all was released; see [`crate::Client::close`].
    pub fn close(&self) -> bool {
        let (wait, unused) = handle::start_close(self.inner.shared());
        uncancelled(|| {
            if let Some(wait) = wait {
                self.driver.wait(wait);
            }
            self.driver.part();
        });
        unused && self.inner.shared().left_nothing()
    }

    /// Closes the client when nothing is held and nobody waits any more, or when `limit` has
    /// passed; see [`crate::Client::drain`]. Gives whether all was released in time.
    pub fn drain(&self, limit: Duration) -> bool {
        cork::end();
        let began = Instant::now();
        let mut drained = self.inner.shared().drain_more();
        while !drained && !self.is_closed() && began.elapsed() < limit {
            uncancelled(|| thread::sleep(DRAIN_LOOK));
            drained = self.inner.shared().drain_more();
        }
        self.close() && drained
    }

    /// Whether the client is closed.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed()
    }

    /// Whether nothing is held, waited for or being released; see [`crate::Client::is_idle`].
    pub fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    #[cfg(unix)]
    pub(crate) fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// The same client for async code. Its futures may be polled by any executor and need no
    /// runtime, but for [`crate::Client::drain`] and [`crate::Client::close_on_sigterm`]; a
    /// background thread drives the connection while no blocking caller does.
    ///
    /// ```
    /// use fencelock::blocking::Client;
    ///
    /// let client = Client::connect("memory:")?;
    /// let asynchronous = client.asynchronous();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    /// let guard = runtime.block_on(async { asynchronous.lock("both")?.acquire().await })?;
    /// client.adopt(guard).release()?;
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn asynchronous(&self) -> &crate::Client {
        &self.inner
    }

    /// Makes a blocking guard of one that was acquired through [`Client::asynchronous`].
    ///
    /// # Panics
    /// When the guard is another client's.
    pub fn adopt(&self, guard: crate::Guard) -> Guard {
        let same = Arc::ptr_eq(guard.shared(), self.inner.shared());
        assert!(same, "the guard belongs to another client");
        Guard::new(guard, self.driver.clone())
    }

    /// What the client has counted since it was made.
    pub fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }

    /// What the store can and cannot do.
    pub fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    /// The 16 hexadecimal digits under which the store knows this client.
    pub fn id(&self) -> &str {
        self.inner.id()
    }
}

impl Builder {
    /// Connects a [`blocking::Client`](Client).
    ///
    /// # Errors
    /// As [`Client::connect`](crate::Client::connect).
    ///
    /// ```
    /// let client = fencelock::Client::builder("memory:").connect_blocking()?;
    /// client.lock("x")?.acquire()?.release()?;
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn connect_blocking(self) -> Result<Client> {
        let (inner, driver) = Driver::connect(self.resolve()?)?;
        Ok(Client { inner, driver })
    }
}
