//! A lock, for threads.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking::{Begun, Driver, Guard, Interrupt};
use crate::cancel::CancelToken;
use crate::lock::Limit;
use crate::outcome::inspected;
use crate::{OwnerId, Result};

/// A lock on a store, for threads; see [`crate::Lock`].
///
/// ```
/// use std::time::Duration;
/// use fencelock::{ErrorKind, blocking::Client};
///
/// let client = Client::connect("memory:")?;
/// let lock = client.lock("cache/rebuild")?;
/// let guard = lock.acquire()?;
///
/// // This thread re-enters, another has to wait.
/// assert!(lock.try_acquire()?.is_reentry());
/// let other = lock.clone();
/// std::thread::spawn(move || {
///     let error = other.acquire_timeout(Duration::from_millis(20)).unwrap_err();
///     assert_eq!(error.kind(), ErrorKind::TimedOut);
/// })
/// .join()
/// .unwrap();
/// # drop(guard);
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    inner: crate::Lock,
    driver: Arc<Driver>,
}

impl Lock {
    pub(crate) fn new(inner: crate::Lock, driver: Arc<Driver>) -> Lock {
        Lock { inner, driver }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Gives holds an explicit lease; see [`crate::Lock::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Lock {
        Lock { inner: self.inner.lease(lease), ..self }
    }

    /// Puts a ceiling over the renewal; see [`crate::Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, ceiling: Duration) -> Lock {
        Lock { inner: self.inner.max_hold(ceiling), ..self }
    }

    /// Acquires for an explicit owner; see [`crate::Lock::owner`].
    #[must_use]
    pub fn owner(self, owner: OwnerId) -> Lock {
        Lock { inner: self.inner.owner(owner), ..self }
    }

    /// Acquires for a numbered owner of this client; see [`crate::Lock::local_owner`].
    #[must_use]
    pub fn local_owner(self, number: u64) -> Lock {
        Lock { inner: self.inner.local_owner(number), ..self }
    }

    /// Makes every acquisition its own owner; see [`crate::Lock::non_reentrant`].
    #[must_use]
    pub fn non_reentrant(self) -> Lock {
        Lock { inner: self.inner.non_reentrant(), ..self }
    }

    /// Acquires the lock, waiting as long as it takes; see [`crate::Lock::acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire(&self) -> Result<Guard> {
        Guard::wait(self.inner.start(Limit::Forever)?, &self.driver)
    }

    /// Acquires the lock if it is free; see [`crate::Lock::try_acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(&self) -> Result<Guard> {
        Guard::wait(self.inner.start(Limit::Try)?, &self.driver)
    }

    /// Acquires the lock, waiting for at most `limit`; see [`crate::Lock::acquire_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire_timeout(&self, limit: Duration) -> Result<Guard> {
        Guard::wait(self.inner.start(Limit::For(limit))?, &self.driver)
    }

    /// Acquires the lock, waiting until `cancel` is cancelled by another thread.
    ///
    /// # Errors
    /// `Cancelled`, and those of [`Lock::acquire`].
    ///
    /// ```
    /// use fencelock::{CancelToken, ErrorKind, blocking::Client};
    ///
    /// let client = Client::connect("memory:")?;
    /// let lock = client.lock("cancelled")?.non_reentrant();
    /// let guard = lock.acquire()?;
    /// let cancel = CancelToken::new();
    /// let stop = cancel.clone();
    /// let ctrl_c = std::thread::spawn(move || stop.cancel());
    /// let error = lock.acquire_cancellable(&cancel).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # ctrl_c.join().unwrap(); drop(guard);
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn acquire_cancellable(&self, cancel: &CancelToken) -> Result<Guard> {
        cancel.check()?;
        let started = self.inner.start(Limit::Forever)?;
        let _armed = cancel.arm(&started);
        Guard::wait(started, &self.driver)
    }

    /// As [`Lock::acquire_cancellable`], waiting for at most `limit`.
    ///
    /// # Errors
    /// `Cancelled`, and those of [`Lock::acquire_timeout`].
    pub fn acquire_timeout_cancellable(
        &self,
        limit: Duration,
        cancel: &CancelToken,
    ) -> Result<Guard> {
        cancel.check()?;
        let started = self.inner.start(Limit::For(limit))?;
        let _armed = cancel.arm(&started);
        Guard::wait(started, &self.driver)
    }

    /// Acquires the lock, waiting for at most `limit` (as long as it takes without one), and asks
    /// `stop` on this thread each `every` whether to give up: for hosts that must look after
    /// something while they wait, such as an interpreter's signals.
    ///
    /// # Errors
    /// `Cancelled` when `stop` said so, and those of [`Lock::acquire_timeout`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use fencelock::{ErrorKind, blocking::Client};
    ///
    /// let client = Client::connect("memory:")?;
    /// let lock = client.lock("interrupted")?.non_reentrant();
    /// let guard = lock.acquire()?;
    /// let error = lock.acquire_unless(None, Duration::from_millis(5), || true).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Cancelled);
    /// # drop(guard);
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn acquire_unless(
        &self,
        limit: Option<Duration>,
        every: Duration,
        mut stop: impl FnMut() -> bool,
    ) -> Result<Guard> {
        let limit = limit.map_or(Limit::Forever, Limit::For);
        let interrupt = Interrupt { every, stop: &mut stop };
        Guard::wait_unless(self.inner.start(limit)?, &self.driver, Some(interrupt))
    }

    /// Begins to acquire, waiting for at most `limit` (as long as it takes without one; zero is a
    /// try): gives the guard when nothing has to be waited for.
    ///
    /// # Errors
    /// Those of [`Lock::acquire_timeout`].
    ///
    /// ```
    /// use fencelock::blocking::{Begun, Client};
    ///
    /// let client = Client::connect("memory:")?;
    /// let lock = client.lock("begun")?;
    /// let guard = match lock.begin(None)? {
    ///     Begun::Granted(guard) => guard,
    ///     Begun::Waiting(acquiring) => acquiring.wait()?,
    /// };
    /// assert!(matches!(lock.begin(None)?, Begun::Granted(_)));
    /// # drop(guard);
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn begin(&self, limit: Option<Duration>) -> Result<Begun> {
        let limit = match limit {
            None => Limit::Forever,
            Some(Duration::ZERO) => Limit::Try,
            Some(limit) => Limit::For(limit),
        };
        Ok(Begun::new(self.inner.start(limit)?, &self.driver))
    }

    /// The same lock for async code; see [`blocking::Client::asynchronous`](super::Client).
    pub fn asynchronous(&self) -> &crate::Lock {
        &self.inner
    }

    /// Whether anybody holds the lock; see [`crate::Lock::is_locked`].
    ///
    /// # Errors
    /// As there.
    pub fn is_locked(&self) -> Result<bool> {
        let outcome = self.driver.wait(self.inner.start_inspect()?).0;
        Ok(inspected(outcome)?.is_some_and(|info| !info.holds.is_empty()))
    }

    /// How many holds this thread (or the explicit owner) has on the lock in this client.
    pub fn hold_count(&self) -> usize {
        self.inner.hold_count()
    }

    /// How many of these are in this handle's mode; see [`crate::Lock::side_count`].
    pub fn side_count(&self) -> usize {
        self.inner.side_count()
    }

    /// Whether anybody holds the lock through this client; see [`crate::Lock::is_held`].
    pub fn is_held(&self) -> bool {
        self.inner.is_held()
    }
}
