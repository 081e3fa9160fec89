//! A lock that readers share.

use std::time::Duration;

use fencelock_engine::request::Mode;

use crate::guard::Guard;
use crate::lock::{Limit, Lock};
use crate::{OwnerId, Result};

/// A read-write lock on a store, with the options of its acquisitions: any number of readers hold it
/// together, or one writer alone. Cheap to clone; a clone with other options is the same lock, and
/// [`Client::lock`](crate::Client::lock) of the same name is its write side.
///
/// Readers and writers wait in one queue, first come, first served, so a stream of readers never keeps
/// a writer out. Only who re-enters passes it, and writers of one client may follow each other for
/// some 10 ms, as with any lock; readers of one client share a hold at the store while nobody waits, and
/// come in together. An explicit lease ends its reader alone; the loss of what they share is told to each.
///
/// # Re-entry
/// Who writes may write and read again, and who reads may read again, past writers that wait. Each level
/// keeps its mode: who reads inside a write and releases the write, reads on, and others may read beside
/// it. Who reads and asks to write is told
/// [`WouldDeadlock`](crate::ErrorKind::WouldDeadlock) at once, as it would wait for itself: release
/// first, or write from the start. The same for a write that waits while its owner is let in to read.
///
/// # Fencing
/// A writer's token is greater than all before it; a reader's is greater than every earlier writer's, and
/// smaller than every later one's. A resource keeps two numbers: the greatest token of a writer that it
/// has seen, and the greatest of anybody. It refuses a write below the second, a read below the first.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// use fencelock::{Client, ErrorKind};
///
/// let client = Client::connect("memory:").await?;
/// let prices = client.rw_lock("prices")?;
///
/// let reader = prices.read().await?;
/// let other = prices.clone().non_reentrant(); // as another task
/// let beside = other.try_read().await?;
/// assert!(beside.token() >= reader.token());
/// assert_eq!(other.try_write().await.unwrap_err().kind(), ErrorKind::Contended);
/// assert_eq!(prices.try_write().await.unwrap_err().kind(), ErrorKind::WouldDeadlock);
///
/// reader.release().await?;
/// beside.release().await?;
/// let writer = prices.write().await?;
/// assert_eq!(prices.read().await?.token(), writer.token()); // re-entry
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RwLock {
    lock: Lock,
}

impl RwLock {
    /// A lock that has no such handle yet.
    pub(crate) fn of(lock: Lock) -> Result<RwLock> {
        lock.set_read_write()?;
        Ok(RwLock { lock })
    }

    fn new(lock: Lock) -> RwLock {
        RwLock { lock }
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// Gives holds an explicit lease; see [`Lock::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> RwLock {
        RwLock::new(self.lock.lease(lease))
    }

    /// Puts a ceiling over the renewal; see [`Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, ceiling: Duration) -> RwLock {
        RwLock::new(self.lock.max_hold(ceiling))
    }

    /// Acquires for an explicit owner; see [`Lock::owner`]. Where owners do not travel
    /// ([`Capabilities::owners`](crate::Capabilities::owners)), only within this client.
    #[must_use]
    pub fn owner(self, owner: OwnerId) -> RwLock {
        RwLock::new(self.lock.owner(owner))
    }

    /// Acquires for a numbered owner of this client; see [`Lock::local_owner`].
    #[must_use]
    pub fn local_owner(self, number: u64) -> RwLock {
        RwLock::new(self.lock.local_owner(number))
    }

    /// Makes every acquisition its own owner; see [`Lock::non_reentrant`]. Reads within reads then wait
    /// behind a writer that waits for the first.
    #[must_use]
    pub fn non_reentrant(self) -> RwLock {
        RwLock::new(self.lock.non_reentrant())
    }

    /// Acquires the lock to read, waiting as long as it takes while somebody writes, or waited to
    /// before.
    ///
    /// # Errors
    /// As [`Lock::acquire`]; `Misconfigured` too while the name is a semaphore's.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn read(&self) -> Result<Guard> {
        self.lock.start_as(Mode::Shared, Limit::Forever)?.guard().await
    }

    /// Acquires the lock to read if nobody writes or waits, without waiting for others.
    ///
    /// # Errors
    /// As [`Lock::try_acquire`]; `Misconfigured` too while the name is a semaphore's.
    ///
    /// # Cancel safety
    /// As [`Lock::try_acquire`].
    pub async fn try_read(&self) -> Result<Guard> {
        self.lock.start_as(Mode::Shared, Limit::Try)?.guard().await
    }

    /// Acquires the lock to read, waiting for at most `limit`.
    ///
    /// # Errors
    /// As [`Lock::acquire_timeout`]; `Misconfigured` too while the name is a semaphore's.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn read_timeout(&self, limit: Duration) -> Result<Guard> {
        self.lock.start_as(Mode::Shared, Limit::For(limit))?.guard().await
    }

    /// Acquires the lock to write, waiting as long as it takes.
    ///
    /// # Errors
    /// `WouldDeadlock` when the owner reads, or is let in to read while this call waits; and those of
    /// [`RwLock::read`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn write(&self) -> Result<Guard> {
        self.lock.acquire().await
    }

    /// Acquires the lock to write if it is free, without waiting for others.
    ///
    /// # Errors
    /// `WouldDeadlock` when the owner reads; and those of [`RwLock::try_read`].
    ///
    /// # Cancel safety
    /// As [`Lock::try_acquire`].
    pub async fn try_write(&self) -> Result<Guard> {
        self.lock.try_acquire().await
    }

    /// Acquires the lock to write, waiting for at most `limit`.
    ///
    /// # Errors
    /// As [`RwLock::write`] and [`RwLock::read_timeout`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn write_timeout(&self, limit: Duration) -> Result<Guard> {
        self.lock.acquire_timeout(limit).await
    }

    /// The read side: a handle whose every acquire reads, with the options that are set now. For code
    /// that takes any lock.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let reader = client.rw_lock("sides")?.non_reentrant().reader();
    /// let both = (reader.acquire().await?, reader.acquire().await?);
    /// # drop(both); Ok(()) }
    /// ```
    pub fn reader(&self) -> Lock {
        self.lock.with_mode(Mode::Shared)
    }

    /// The write side, as [`Client::lock`](crate::Client::lock) gives it, with the options that are set
    /// now.
    pub fn writer(&self) -> Lock {
        self.lock.clone()
    }

    pub(crate) fn side(&self) -> &Lock {
        &self.lock
    }
}

impl std::fmt::Debug for RwLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RwLock").field("name", &self.name()).finish_non_exhaustive()
    }
}
