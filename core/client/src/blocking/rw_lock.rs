//! A lock that readers share, for threads.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::request::Mode;

use crate::blocking::{Driver, Guard, Lock};
use crate::lock::Limit;
use crate::{OwnerId, Result};

/// A read-write lock on a store, for threads; see [`crate::RwLock`].
///
/// What is left out here, such as cancel tokens, [`RwLock::reader`] and [`RwLock::writer`] have.
///
/// ```
/// use fencelock::{ErrorKind, blocking::Client};
///
/// let client = Client::connect("memory:")?;
/// let prices = client.rw_lock("prices")?;
/// let reader = prices.read()?;
///
/// // Another thread reads beside this one, and does not write.
/// let other = prices.clone();
/// std::thread::spawn(move || {
///     assert!(other.try_read().is_ok());
///     assert_eq!(other.try_write().unwrap_err().kind(), ErrorKind::Contended);
/// })
/// .join()
/// .unwrap();
/// reader.release()?;
/// prices.write()?.release()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RwLock {
    inner: crate::RwLock,
    driver: Arc<Driver>,
}

impl RwLock {
    pub(crate) fn new(inner: crate::RwLock, driver: Arc<Driver>) -> RwLock {
        RwLock { inner, driver }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// Gives holds an explicit lease; see [`crate::Lock::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> RwLock {
        RwLock { inner: self.inner.lease(lease), ..self }
    }

    /// Puts a ceiling over the renewal; see [`crate::Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, ceiling: Duration) -> RwLock {
        RwLock { inner: self.inner.max_hold(ceiling), ..self }
    }

    /// Acquires for an explicit owner; see [`crate::RwLock::owner`].
    #[must_use]
    pub fn owner(self, owner: OwnerId) -> RwLock {
        RwLock { inner: self.inner.owner(owner), ..self }
    }

    /// Acquires for a numbered owner of this client; see [`crate::Lock::local_owner`].
    #[must_use]
    pub fn local_owner(self, number: u64) -> RwLock {
        RwLock { inner: self.inner.local_owner(number), ..self }
    }

    /// Makes every acquisition its own owner; see [`crate::RwLock::non_reentrant`].
    #[must_use]
    pub fn non_reentrant(self) -> RwLock {
        RwLock { inner: self.inner.non_reentrant(), ..self }
    }

    /// Acquires the lock to read; see [`crate::RwLock::read`].
    ///
    /// # Errors
    /// As there.
    pub fn read(&self) -> Result<Guard> {
        self.wait(Mode::Shared, Limit::Forever)
    }

    /// Acquires the lock to read if nobody writes or waits; see [`crate::RwLock::try_read`].
    ///
    /// # Errors
    /// As there.
    pub fn try_read(&self) -> Result<Guard> {
        self.wait(Mode::Shared, Limit::Try)
    }

    /// Acquires the lock to read, waiting for at most `limit`; see [`crate::RwLock::read_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn read_timeout(&self, limit: Duration) -> Result<Guard> {
        self.wait(Mode::Shared, Limit::For(limit))
    }

    /// Acquires the lock to write; see [`crate::RwLock::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self) -> Result<Guard> {
        self.wait(Mode::Exclusive, Limit::Forever)
    }

    /// Acquires the lock to write if it is free; see [`crate::RwLock::try_write`].
    ///
    /// # Errors
    /// As there.
    pub fn try_write(&self) -> Result<Guard> {
        self.wait(Mode::Exclusive, Limit::Try)
    }

    /// Acquires the lock to write, waiting for at most `limit`; see [`crate::RwLock::write_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn write_timeout(&self, limit: Duration) -> Result<Guard> {
        self.wait(Mode::Exclusive, Limit::For(limit))
    }

    /// The read side; see [`crate::RwLock::reader`].
    pub fn reader(&self) -> Lock {
        Lock::new(self.inner.reader(), self.driver.clone())
    }

    /// The write side; see [`crate::RwLock::writer`].
    pub fn writer(&self) -> Lock {
        Lock::new(self.inner.writer(), self.driver.clone())
    }

    /// The same lock for async code; see [`blocking::Client::asynchronous`](super::Client).
    pub fn asynchronous(&self) -> &crate::RwLock {
        &self.inner
    }

    fn wait(&self, mode: Mode, limit: Limit) -> Result<Guard> {
        Guard::wait(self.inner.side().start_as(mode, limit)?, &self.driver)
    }
}
