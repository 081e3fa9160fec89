//! A semaphore, for threads.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::blocking::{Driver, Guard, Lock};
use crate::lock::Limit;
use crate::outcome::{inspected, resized};

/// A semaphore on a store, for threads; see [`crate::Semaphore`].
///
/// What is left out here, such as cancel tokens, [`Semaphore::taking`] has.
///
/// ```
/// use fencelock::{ErrorKind, blocking::Client};
///
/// let client = Client::connect("memory:")?;
/// let mailers = client.semaphore("mailers", 3)?;
/// let guard = mailers.acquire_many(2)?;
/// assert_eq!(mailers.available_permits()?, 1);
/// assert_eq!(mailers.try_acquire_many(2).unwrap_err().kind(), ErrorKind::Contended);
/// guard.release()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    inner: crate::Semaphore,
    driver: Arc<Driver>,
}

impl Semaphore {
    pub(crate) fn new(inner: crate::Semaphore, driver: Arc<Driver>) -> Semaphore {
        Semaphore { inner, driver }
    }

    /// The semaphore's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// How many permits it has, as this handle was told.
    pub fn permits(&self) -> u32 {
        self.inner.permits()
    }

    /// Gives holds an explicit lease; see [`crate::Lock::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Semaphore {
        Semaphore { inner: self.inner.lease(lease), ..self }
    }

    /// Puts a ceiling over the renewal; see [`crate::Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, ceiling: Duration) -> Semaphore {
        Semaphore { inner: self.inner.max_hold(ceiling), ..self }
    }

    /// Follows the number of those who hold or wait; see [`crate::Semaphore::adopting`].
    #[must_use]
    pub fn adopting(self) -> Semaphore {
        Semaphore { inner: self.inner.adopting(), ..self }
    }

    /// Takes a permit; see [`crate::Semaphore::acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire(&self) -> Result<Guard> {
        self.acquire_many(1)
    }

    /// Takes a permit if one is free; see [`crate::Semaphore::try_acquire`].
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire(&self) -> Result<Guard> {
        self.try_acquire_many(1)
    }

    /// Takes a permit, waiting for at most `limit`; see [`crate::Semaphore::acquire_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire_timeout(&self, limit: Duration) -> Result<Guard> {
        self.acquire_many_timeout(1, limit)
    }

    /// Takes `count` permits at once; see [`crate::Semaphore::acquire_many`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire_many(&self, count: u32) -> Result<Guard> {
        self.wait(count, Limit::Forever)
    }

    /// Takes `count` permits at once if they are free; see [`crate::Semaphore::try_acquire_many`].
    ///
    /// # Errors
    /// As there.
    pub fn try_acquire_many(&self, count: u32) -> Result<Guard> {
        self.wait(count, Limit::Try)
    }

    /// Takes `count` permits at once, waiting for at most `limit`; see
    /// [`crate::Semaphore::acquire_many_timeout`].
    ///
    /// # Errors
    /// As there.
    pub fn acquire_many_timeout(&self, count: u32, limit: Duration) -> Result<Guard> {
        self.wait(count, Limit::For(limit))
    }

    /// How many permits are free; see [`crate::Semaphore::available_permits`].
    ///
    /// # Errors
    /// As there.
    pub fn available_permits(&self) -> Result<u32> {
        let outcome = self.driver.wait(self.inner.lock().start_inspect()?).0;
        Ok(self.inner.free(inspected(outcome)?))
    }

    /// Gives the semaphore another number of permits; see [`crate::Semaphore::resize`].
    ///
    /// # Errors
    /// As there.
    pub fn resize(&self, of: u32) -> Result<bool> {
        resized(self.driver.wait(self.inner.lock().start_resize(of)?).0)
    }

    /// A handle whose every acquire takes `count` permits; see [`crate::Semaphore::taking`].
    pub fn taking(&self, count: u32) -> Lock {
        Lock::new(self.inner.taking(count), self.driver.clone())
    }

    /// The same semaphore for async code; see [`blocking::Client::asynchronous`](super::Client).
    pub fn asynchronous(&self) -> &crate::Semaphore {
        &self.inner
    }

    fn wait(&self, count: u32, limit: Limit) -> Result<Guard> {
        Guard::wait(self.inner.taking(count).start(limit)?, &self.driver)
    }
}
