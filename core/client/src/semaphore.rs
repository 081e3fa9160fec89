//! A semaphore: so many at a time.

use std::time::Duration;

use fencelock_engine::request::Mode;

use crate::guard::Guard;
use crate::lock::{Limit, Lock};
use crate::outcome::{inspected, resized};
use crate::{LockInfo, Result};

/// A semaphore on a store, with the options of its acquisitions: a number of permits, of which each
/// acquisition takes one or several until its guard is released or lost. Cheap to clone.
///
/// Acquisitions wait in one queue, first come, first served: a small request never passes a larger one
/// that waits. Permits have no owner: whoever acquires again takes more of them, and may wait for its
/// own. Those of a client that dies are free again when their lease has ended.
///
/// Those of one client hand permits on to each other, without asking the store: while others wait, for 10 ms
/// at a time. At most eight of a client's acquisitions stand in the store's queue, the others behind them.
///
/// Each guard has a token that no other one has. It names the grant, and is
/// no fence: several are valid at a time, and a resource that refused smaller ones would refuse them. To
/// fence, take one of several locks instead.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
/// use fencelock::{Client, ErrorKind};
///
/// let client = Client::connect("memory:").await?;
/// let mailers = client.semaphore("mailers", 3)?;
///
/// let two = mailers.acquire_many(2).await?;
/// let one = mailers.acquire().await?;
/// assert_eq!(mailers.available_permits().await?, 0);
/// assert_eq!(mailers.try_acquire().await.unwrap_err().kind(), ErrorKind::Contended);
///
/// two.release().await?;
/// assert_eq!(mailers.available_permits().await?, 2);
/// # drop(one); Ok(()) }
/// ```
#[derive(Clone)]
pub struct Semaphore {
    lock: Lock,
    of: u32,
}

impl Semaphore {
    pub(crate) fn new(lock: Lock, of: u32) -> Semaphore {
        Semaphore { lock, of }
    }

    /// The semaphore's name.
    pub fn name(&self) -> &str {
        self.lock.name()
    }

    /// How many permits it has, as this handle was told.
    pub fn permits(&self) -> u32 {
        self.of
    }

    /// Gives holds an explicit lease; see [`Lock::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Semaphore {
        Semaphore { lock: self.lock.lease(lease), ..self }
    }

    /// Puts a ceiling over the renewal; see [`Lock::max_hold`].
    #[must_use]
    pub fn max_hold(self, ceiling: Duration) -> Semaphore {
        Semaphore { lock: self.lock.max_hold(ceiling), ..self }
    }

    /// Follows the number of those who hold or wait, where it is another than this handle's: for who cannot
    /// know of a [`resize`](Semaphore::resize). The handle's own counts when nobody does, and is the most
    /// that one acquire takes. More than there are is `InvalidArgument` then, as after a resize.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let one = client.semaphore("adopted", 5)?.acquire().await?;
    /// let seats = client.semaphore("adopted", 2)?.adopting();
    /// let two = seats.acquire_many(2).await?;
    /// assert_eq!(seats.available_permits().await?, 2);
    /// # drop((one, two)); Ok(()) }
    /// ```
    #[must_use]
    pub fn adopting(self) -> Semaphore {
        Semaphore { lock: self.lock.adopting(), ..self }
    }

    /// Takes a permit, waiting as long as it takes.
    ///
    /// # Errors
    /// As [`Lock::acquire`]; `Misconfigured` too while others hold or wait who named another number of
    /// permits, or while the name is a lock's.
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn acquire(&self) -> Result<Guard> {
        self.acquire_many(1).await
    }

    /// Takes a permit if one is free and nobody waits.
    ///
    /// # Errors
    /// `Contended` when none is free, or others wait; and those of [`Lock::try_acquire`] and
    /// [`Semaphore::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::try_acquire`].
    pub async fn try_acquire(&self) -> Result<Guard> {
        self.try_acquire_many(1).await
    }

    /// Takes a permit, waiting for at most `limit`.
    ///
    /// # Errors
    /// As [`Lock::acquire_timeout`] and [`Semaphore::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn acquire_timeout(&self, limit: Duration) -> Result<Guard> {
        self.acquire_many_timeout(1, limit).await
    }

    /// Takes `count` permits at once, waiting as long as it takes. They are given back together.
    ///
    /// # Errors
    /// `InvalidArgument` unless `count` is 1 to the number of permits; and those of
    /// [`Semaphore::acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn acquire_many(&self, count: u32) -> Result<Guard> {
        self.taking(count).start(Limit::Forever)?.guard().await
    }

    /// Takes `count` permits at once if so many are free and nobody waits.
    ///
    /// # Errors
    /// As [`Semaphore::acquire_many`] and [`Semaphore::try_acquire`].
    ///
    /// # Cancel safety
    /// As [`Lock::try_acquire`].
    pub async fn try_acquire_many(&self, count: u32) -> Result<Guard> {
        self.taking(count).start(Limit::Try)?.guard().await
    }

    /// Takes `count` permits at once, waiting for at most `limit`.
    ///
    /// # Errors
    /// As [`Semaphore::acquire_many`] and [`Semaphore::acquire_timeout`].
    ///
    /// # Cancel safety
    /// As [`Lock::acquire`].
    pub async fn acquire_many_timeout(&self, count: u32, limit: Duration) -> Result<Guard> {
        self.taking(count).start(Limit::For(limit))?.guard().await
    }

    /// This handle's number, or the one that it [adopts](Semaphore::adopting), less what the store says is taken at the time of asking. Good for display,
    /// never for a decision: it may change before the answer arrives, who waits comes first, and whether
    /// others say the same number, only an acquire finds out.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub async fn available_permits(&self) -> Result<u32> {
        Ok(self.free(inspected(self.lock.start_inspect()?.await.0)?))
    }

    /// Gives the semaphore `of` permits, 1 to 1,000,000, until nobody holds or waits; `false` when nobody
    /// does, and whoever comes next says how many there are. Of more, whoever fits now enters at once. Of
    /// fewer, nobody loses a permit, and nobody enters until enough have come back; who waits for more than
    /// there are fails with `InvalidArgument`. It is set, not added: to say it again changes nothing.
    ///
    /// Everybody who comes after it must name the new number, or [adopt](Semaphore::adopting) it: this
    /// handle keeps the one it was told.
    ///
    /// # Errors
    /// `InvalidArgument` for the number; `Misconfigured` while the name is a lock's; `Unsupported`,
    /// `Unavailable`, `Closed`.
    ///
    /// # Cancel safety
    /// Once polled, it may happen although the future is dropped.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let one = client.semaphore("seats", 1)?.acquire().await?;
    /// assert!(client.semaphore("seats", 1)?.resize(2).await?);
    /// let other = client.semaphore("seats", 2)?.acquire().await?;
    /// # drop((one, other)); Ok(()) }
    /// ```
    pub async fn resize(&self, of: u32) -> Result<bool> {
        resized(self.lock.start_resize(of)?.await.0)
    }

    /// How many permits a lock's state leaves.
    pub(crate) fn free(&self, info: Option<LockInfo>) -> u32 {
        let Some(info) = info else { return self.of };
        let waiting = info.waiters.iter().map(|waiter| waiter.mode);
        let number = info.holds.iter().map(|hold| hold.mode).chain(waiting).find_map(number_of);
        let of = number.filter(|_| self.lock.adopts()).unwrap_or(self.of);
        info.holds.iter().filter_map(|hold| hold.mode.permits()).fold(of, u32::saturating_sub)
    }

    /// A handle whose every acquire takes `count` permits, with the options that are set now. For code
    /// that takes any lock; owners mean nothing to it, and an explicit one is refused.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// # let client = fencelock::Client::connect("memory:").await?;
    /// let pair = client.semaphore("ports", 4)?.taking(2);
    /// let both = (pair.acquire().await?, pair.acquire().await?);
    /// assert!(pair.try_acquire().await.is_err());
    /// # drop(both); Ok(()) }
    /// ```
    pub fn taking(&self, count: u32) -> Lock {
        self.lock.with_mode(Mode::Permits { count, of: self.of })
    }

    pub(crate) fn lock(&self) -> &Lock {
        &self.lock
    }
}

/// How many permits there are, as a hold or a waiter says.
fn number_of(mode: Mode) -> Option<u32> {
    match mode {
        Mode::Permits { of, .. } => Some(of),
        Mode::Exclusive | Mode::Shared => None,
    }
}

impl std::fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Semaphore")
            .field("name", &self.name())
            .field("permits", &self.of)
            .finish_non_exhaustive()
    }
}
