//! A semaphore: so many at a time.

use fencelock::blocking;

use crate::Result;
use crate::client::Client;
use crate::lock::Lock;
use crate::operation::Operation;

/// A number of permits. What takes some of them is an ordinary [`Lock`]. Cheap to clone.
///
/// See [`fencelock::Semaphore`] for the rules.
#[derive(Clone, Debug)]
pub struct Semaphore {
    inner: blocking::Semaphore,
    client: Client,
}

impl Client {
    /// The semaphore `name` with so many permits. Asks the store nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for the name or the number; `Closed` in a forked child.
    pub fn semaphore(&self, name: &str, permits: u32) -> Result<Semaphore> {
        let inner = self.blocking().semaphore(name, permits)?;
        Ok(Semaphore { inner, client: self.clone() })
    }
}

impl Semaphore {
    /// The semaphore's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// How many permits it has, as this handle was told.
    pub fn permits(&self) -> u32 {
        self.inner.permits()
    }

    /// A lock whose every acquire takes `count` permits. An owner means nothing to it, and an explicit
    /// one is refused by the acquire, as is a count that is not 1 to the number of permits.
    pub fn taking(&self, count: u32) -> Lock {
        Lock::new(self.inner.taking(count), self.client.clone())
    }

    /// A handle that follows the number of those who hold or wait; see
    /// [`fencelock::Semaphore::adopting`].
    #[must_use]
    pub fn adopting(self) -> Semaphore {
        Semaphore { inner: self.inner.adopting(), ..self }
    }

    /// Gives the semaphore `of` permits until nobody holds or waits; `false` when nobody does.
    ///
    /// # Errors
    /// As [`fencelock::Semaphore::resize`].
    pub fn resize(&self, of: u32) -> Result<bool> {
        self.inner.resize(of)
    }

    /// See [`Semaphore::resize`].
    pub fn resize_async(
        &self,
        of: u32,
        done: impl FnOnce(Result<bool>) + Send + 'static,
    ) -> Operation {
        let semaphore = self.inner.asynchronous().clone();
        Operation::start(async move { semaphore.resize(of).await }, done)
    }

    /// How many permits are free, by the store's word at the time of asking.
    ///
    /// # Errors
    /// As [`fencelock::Semaphore::available_permits`].
    pub fn available_permits(&self) -> Result<u32> {
        self.inner.available_permits()
    }

    /// See [`Semaphore::available_permits`].
    pub fn available_permits_async(
        &self,
        done: impl FnOnce(Result<u32>) + Send + 'static,
    ) -> Operation {
        let semaphore = self.inner.asynchronous().clone();
        Operation::start(async move { semaphore.available_permits().await }, done)
    }
}
