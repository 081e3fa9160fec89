//! Locks that several hold together.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::ending::call;
use crate::error::Result;
use crate::lock::{Lock, LockOptions};

/// A read-write lock: any number of readers hold it together, or one writer alone. Readers and writers
/// wait in one queue. Asks the store nothing until a side is acquired. For all threads.
#[derive(uniffi::Object)]
pub struct RwLock {
    lock: fencelock_support::RwLock,
    options: LockOptions,
}

#[uniffi::export]
impl Client {
    /// The read-write lock `name`, whose write side is the lock of that name. Asks the store nothing.
    ///
    /// Errors: `InvalidArgument` for the name, or the owner in the options; `Closed` in a forked child.
    #[uniffi::method(default(options = None))]
    pub fn rw_lock(&self, name: String, options: Option<LockOptions>) -> Result<Arc<RwLock>> {
        let options = options.unwrap_or_default();
        let lock = self.support().rw_lock(&name)?;
        // An owner that is none is refused here, and not by a side.
        Lock::new(lock.writer(), options.clone())?;
        Ok(Arc::new(RwLock { lock, options }))
    }

    /// The semaphore `name` with so many `permits`, 1 to 1,000,000. Asks the store nothing.
    ///
    /// Errors: `InvalidArgument` for the name or the number; `Closed` in a forked child.
    #[uniffi::method(default(lease = None, max_hold = None))]
    pub fn semaphore(
        &self,
        name: String,
        permits: u32,
        lease: Option<Duration>,
        max_hold: Option<Duration>,
    ) -> Result<Arc<Semaphore>> {
        let semaphore = self.support().semaphore(&name, permits)?;
        Ok(Arc::new(Semaphore { semaphore, lease, max_hold }))
    }
}

#[uniffi::export]
impl RwLock {
    /// The lock's name.
    pub fn name(&self) -> String {
        self.lock.name().to_owned()
    }

    /// The side whose every acquire reads. An owner that reads may read again at once; one that writes
    /// may do both.
    pub fn reader(&self) -> Result<Arc<Lock>> {
        Lock::new(self.lock.reader(), self.options.clone())
    }

    /// The side that writes. Its acquires fail with `WouldDeadlock` while their owner only reads.
    pub fn writer(&self) -> Result<Arc<Lock>> {
        Lock::new(self.lock.writer(), self.options.clone())
    }
}

/// A semaphore: so many permits, which who waits for takes in the order of arrival. Permits have no
/// owner. Those of a client that dies are free again when their lease has ended. For all threads.
#[derive(uniffi::Object)]
pub struct Semaphore {
    semaphore: fencelock_support::Semaphore,
    lease: Option<Duration>,
    max_hold: Option<Duration>,
}

#[uniffi::export]
impl Semaphore {
    /// The semaphore's name.
    pub fn name(&self) -> String {
        self.semaphore.name().to_owned()
    }

    /// How many permits it has, as this object was told.
    pub fn permits(&self) -> u32 {
        self.semaphore.permits()
    }

    /// A lock whose every acquire takes `count` permits together. Its hold gives them back together; its
    /// token names the grant, and is no fence. A count that is not 1 to the number of permits is refused
    /// by the acquire, with `InvalidArgument`; another number of permits than those who hold or wait said,
    /// with `Misconfigured`.
    #[uniffi::method(default(count = 1))]
    pub fn taking(&self, count: u32) -> Result<Arc<Lock>> {
        let options = LockOptions { owner: None, lease: self.lease, max_hold: self.max_hold };
        Lock::new(self.semaphore.taking(count), options)
    }

    /// The same semaphore, following the number of those who hold or wait where that is another than this
    /// object's, which counts when nobody does, and is the most that one acquire takes.
    pub fn adopting(&self) -> Arc<Semaphore> {
        let (lease, max_hold) = (self.lease, self.max_hold);
        let semaphore = self.semaphore.clone().adopting();
        Arc::new(Semaphore { semaphore, lease, max_hold })
    }

    /// Gives the semaphore another number of permits, 1 to 1,000,000, until nobody holds or waits; false
    /// when nobody does. Of more, whoever fits enters at once; of fewer, nobody loses one. Everybody who
    /// comes later must say it. Blocks.
    ///
    /// Errors: `InvalidArgument` for the number; `Misconfigured` while the name is a lock's;
    /// `Unsupported`, `Unavailable`, `Closed`.
    pub fn resize(&self, permits: u32) -> Result<bool> {
        Ok(self.semaphore.resize(permits)?)
    }

    /// As `resize`, without blocking.
    pub async fn resize_async(&self, permits: u32) -> Result<bool> {
        Ok(call(|done| Ok(Some(self.semaphore.resize_async(permits, done)))).await?)
    }

    /// How many permits are free, by the store's word; blocks. Good for display, never for a decision.
    ///
    /// Errors: `Unavailable`, `Misconfigured`, `Closed`.
    pub fn available_permits(&self) -> Result<u32> {
        Ok(self.semaphore.available_permits()?)
    }

    /// As `available_permits`, without blocking.
    pub async fn available_permits_async(&self) -> Result<u32> {
        Ok(call(|done| Ok(Some(self.semaphore.available_permits_async(done)))).await?)
    }
}
