//! A hold, for threads.

use std::sync::Arc;
use std::time::Duration;

use crate::begun::Started;
use crate::blocking::{Driver, Interrupt, Releasing};
use crate::errors::cancelled;
use crate::outcome::{extended, released};
use crate::ticket::Ticket;
use crate::{Abandoned, LossReason, Lost, Mode, Result, Token, Wanted};

/// A held lock, for threads; see [`crate::Guard`]. Dropping it releases the lock without waiting
/// for the store's answer.
///
/// ```
/// # let client = fencelock::blocking::Client::connect("memory:")?;
/// let guard = client.lock("account/17")?.acquire()?;
/// println!("writing under token {}", guard.check()?);
/// guard.release()?;
/// # Ok::<(), fencelock::Error>(())
/// ```
#[must_use = "dropping the guard releases the lock"]
#[derive(Debug)]
pub struct Guard {
    inner: crate::Guard,
    driver: Arc<Driver>,
}

impl Guard {
    pub(crate) fn new(inner: crate::Guard, driver: Arc<Driver>) -> Guard {
        Guard { inner, driver }
    }

    pub(crate) fn wait(started: Started, driver: &Arc<Driver>) -> Result<Guard> {
        Guard::wait_unless(started, driver, None)
    }

    /// As [`Guard::wait`]; `Cancelled` when it was interrupted.
    pub(crate) fn wait_unless(
        started: Started,
        driver: &Arc<Driver>,
        interrupt: Option<Interrupt<'_>>,
    ) -> Result<Guard> {
        let inner = match started {
            Started::Granted(guard) => guard,
            Started::Pending { mut wait, lock, by } => {
                let Some((outcome, now)) = driver.wait_unless(&mut wait, interrupt) else {
                    return Err(cancelled());
                };
                Started::finish(wait, lock, by, outcome, now)?
            }
        };
        Ok(Guard { inner, driver: driver.clone() })
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The fencing token; see [`crate::Guard::token`].
    pub fn token(&self) -> Token {
        self.inner.token()
    }

    /// The token, if the hold can be trusted at this moment; see [`crate::Guard::check`].
    ///
    /// # Errors
    /// `Lost` when the hold has ended.
    pub fn check(&self) -> Result<Token> {
        self.inner.check()
    }

    /// Whether the hold can be trusted at this moment.
    pub fn is_valid(&self) -> bool {
        self.inner.is_valid()
    }

    /// Whether the holder was told that the hold is lost; see [`crate::Guard::is_lost`].
    pub fn is_lost(&self) -> bool {
        self.inner.is_lost()
    }

    /// How long the hold can be trusted from now on if it is not renewed; zero when it has ended.
    pub fn remaining(&self) -> Duration {
        self.inner.remaining()
    }

    /// Resolves when the hold ends before its release: a future for a caller that has an executor.
    pub fn lost(&self) -> Lost {
        self.inner.lost()
    }

    /// Calls `callback` once when the hold ends before its release; see
    /// [`crate::Guard::on_lost`].
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) {
        self.inner.on_lost(callback);
    }

    /// Resolves when another client waits for this lock; see [`crate::Guard::wanted`].
    pub fn wanted(&self) -> Wanted {
        self.inner.wanted()
    }

    /// Calls `callback` once when another client waits for this lock; see
    /// [`crate::Guard::on_wanted`].
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) {
        self.inner.on_wanted(callback);
    }

    /// Whether another client waits for this lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.inner.is_wanted()
    }

    /// Whether the previous holder was lost; see [`crate::Guard::previous_abandoned`].
    pub fn previous_abandoned(&self) -> Abandoned {
        self.inner.previous_abandoned()
    }

    /// Whether the owner had the lock already, in this client, when this hold was granted.
    pub fn is_reentry(&self) -> bool {
        self.inner.is_reentry()
    }

    /// Sets the hold's lease from now on; see [`crate::Guard::extend`].
    ///
    /// # Errors
    /// As there.
    pub fn extend(&self, lease: Duration) -> Result<()> {
        extended(self.driver.wait(self.inner.start_extend(lease)?).0)
    }

    /// How the hold shares the lock now.
    pub fn mode(&self) -> Mode {
        self.inner.mode()
    }

    /// Reads from now on instead of writing; see [`crate::Guard::downgrade`].
    ///
    /// # Errors
    /// As there.
    ///
    /// ```
    /// # let client = fencelock::blocking::Client::connect("memory:")?;
    /// let guard = client.rw_lock("downgraded")?.write()?;
    /// guard.downgrade()?;
    /// guard.try_upgrade()?; // nobody else reads
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn downgrade(&self) -> Result<()> {
        self.convert(Mode::Shared)
    }

    /// Writes from now on instead of reading, if nobody else holds the lock; see
    /// [`crate::Guard::try_upgrade`].
    ///
    /// # Errors
    /// As there.
    pub fn try_upgrade(&self) -> Result<()> {
        self.convert(Mode::Exclusive)
    }

    fn convert(&self, to: Mode) -> Result<()> {
        match self.inner.start_conversion(to)? {
            None => Ok(()),
            Some(wait) => self.inner.finish_conversion(self.driver.wait(wait).0),
        }
    }

    /// Releases the lock and waits until the store, or the next local holder, has it; see
    /// [`crate::Guard::release`].
    ///
    /// # Errors
    /// As there.
    pub fn release(self) -> Result<()> {
        self.release_ref()
    }

    /// As [`Guard::release`], for a guard that threads share.
    ///
    /// # Errors
    /// As there; `NotHeld` when it was released before.
    pub fn release_ref(&self) -> Result<()> {
        match self.inner.start_release()? {
            None => Ok(()),
            Some(wait) => released(self.driver.wait(wait).0),
        }
    }

    /// Begins the release; `None` when it is done already, as of a re-entry, or when the next
    /// waiter of this client has it.
    ///
    /// # Errors
    /// As [`Guard::release_ref`].
    ///
    /// ```
    /// # let client = fencelock::blocking::Client::connect("memory:")?;
    /// let guard = client.lock("begun")?.acquire()?;
    /// if let Some(releasing) = guard.begin_release()? {
    ///     releasing.wait()?;
    /// }
    /// # Ok::<(), fencelock::Error>(())
    /// ```
    pub fn begin_release(&self) -> Result<Option<Releasing>> {
        Ok(self.inner.start_release()?.map(|wait| Releasing::new(wait, self.driver.clone())))
    }

    /// The same guard for async code: its futures may be polled by any executor.
    pub fn asynchronous(&self) -> &crate::Guard {
        &self.inner
    }

    /// A text that lets another process go on with this hold; see [`crate::Guard::ticket`].
    ///
    /// # Errors
    /// As there.
    pub fn ticket(&self) -> Result<Ticket> {
        self.inner.ticket()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.inner.abandon() {
            self.driver.send(self.inner.shared());
        }
    }
}
