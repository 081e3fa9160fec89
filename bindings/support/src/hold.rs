//! A hold that a host shares freely.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock::blocking::{self, Releasing};

use crate::operation::Operation;
use crate::{Abandoned, Error, ErrorKind, LossReason, Mode, Result};

/// A held lock. Clones are the same hold; when the last one is dropped unreleased, it is released in
/// the background.
#[derive(Clone, Debug)]
pub struct Hold(Arc<Held>);

#[derive(Debug)]
struct Held {
    guard: blocking::Guard,
    /// How it was granted.
    granted: Mode,
    /// How often the owner has entered again under it; see [`Entries`](crate::Entries).
    again: AtomicU64,
}

impl AsRef<Hold> for Hold {
    fn as_ref(&self) -> &Hold {
        self
    }
}

impl Hold {
    pub(crate) fn new(guard: blocking::Guard) -> Hold {
        Hold(Arc::new(Held { granted: guard.mode(), guard, again: AtomicU64::new(0) }))
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.0.guard.name()
    }

    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.0.guard.token().get()
    }

    /// The token, if the hold can be trusted at this moment.
    ///
    /// # Errors
    /// `Lost` when the hold has ended.
    pub fn check(&self) -> Result<u64> {
        Ok(self.0.guard.check()?.get())
    }

    /// Whether the hold can be trusted at this moment.
    pub fn is_valid(&self) -> bool {
        self.0.guard.is_valid()
    }

    /// Whether the holder was told that the hold is lost; does not look at the clock.
    pub fn is_lost(&self) -> bool {
        self.0.guard.is_lost()
    }

    /// How long the hold can be trusted from now on if it is not renewed.
    pub fn remaining(&self) -> Duration {
        self.0.guard.remaining()
    }

    /// Whether the owner had the lock already.
    pub fn is_reentry(&self) -> bool {
        self.0.guard.is_reentry()
    }

    /// Whether the previous holder was lost.
    pub fn previous_abandoned(&self) -> Abandoned {
        self.0.guard.previous_abandoned()
    }

    /// Whether another client waits for the lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.0.guard.is_wanted()
    }

    /// Calls back once when the hold ends before its release; at once when it has. On the thread
    /// that learns of it: as with [`Operation::start`], it must be short and must not block.
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) {
        self.0.guard.on_lost(callback);
    }

    /// Calls back once when another client waits for the lock; as [`Hold::on_lost`].
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.guard.on_wanted(callback);
    }

    /// Sets the lease from now on; never shortens it.
    ///
    /// # Errors
    /// As [`fencelock::Guard::extend`].
    pub fn extend(&self, lease: Duration) -> Result<()> {
        self.0.guard.extend(lease)
    }

    /// See [`Hold::extend`].
    pub fn extend_async(
        &self,
        lease: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Operation {
        let hold = self.0.clone();
        Operation::start(async move { hold.guard.asynchronous().extend(lease).await }, done)
    }

    /// How the hold shares the lock now.
    pub fn mode(&self) -> Mode {
        self.0.guard.mode()
    }

    /// Reads from now on instead of writing, without letting a writer come between.
    ///
    /// # Errors
    /// As [`fencelock::Guard::downgrade`]; `Contended` too when the owner has entered again under this
    /// hold.
    pub fn downgrade(&self) -> Result<()> {
        self.once()?;
        self.0.guard.downgrade()
    }

    /// See [`Hold::downgrade`]. It begins at once and is not undone by a cancel.
    pub fn downgrade_async(&self, done: impl FnOnce(Result<()>) + Send + 'static) -> Operation {
        let hold = self.clone();
        let convert = async move {
            hold.once()?;
            hold.0.guard.asynchronous().downgrade().await
        };
        Operation::start(convert, done)
    }

    /// Writes from now on instead of reading, if nobody else holds the lock.
    ///
    /// # Errors
    /// As [`fencelock::Guard::try_upgrade`]; `Contended` too when the owner has entered again under this
    /// hold.
    pub fn try_upgrade(&self) -> Result<()> {
        self.once()?;
        self.0.guard.try_upgrade()
    }

    /// See [`Hold::try_upgrade`]. A cancel undoes it.
    pub fn try_upgrade_async(&self, done: impl FnOnce(Result<()>) + Send + 'static) -> Operation {
        let hold = self.clone();
        let convert = async move {
            hold.once()?;
            hold.0.guard.asynchronous().try_upgrade().await
        };
        Operation::start(convert, done)
    }

    /// Whether who enters the lock as it was granted would have what this hold is now.
    pub(crate) fn is_as_granted(&self) -> bool {
        self.0.granted == self.0.guard.mode()
    }

    /// The owner enters again under it, so often.
    pub(crate) fn enter(&self, times: u64) {
        self.0.again.fetch_add(times, Ordering::Relaxed);
    }

    /// The owner leaves what it entered again.
    pub(crate) fn leave(&self) {
        self.0.again.fetch_sub(1, Ordering::Relaxed);
    }

    /// Levels that the engine does not know of keep their mode, too.
    fn once(&self) -> Result<()> {
        match self.0.again.load(Ordering::Relaxed) {
            0 => Ok(()),
            _ => Err(Error::new(
                ErrorKind::Contended,
                "the owner has entered the lock again under this hold: leave that first",
            )),
        }
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// `NotHeld` when it was released before, and as [`fencelock::Guard::release`].
    pub fn release(&self) -> Result<()> {
        self.0.guard.release_ref()
    }

    /// Begins the release; `None` when it is done already.
    ///
    /// # Errors
    /// As [`Hold::release`].
    pub fn begin_release(&self) -> Result<Option<Releasing>> {
        self.0.guard.begin_release()
    }

    /// See [`Hold::release`]. The release begins at once and is not undone by a cancel.
    pub fn release_async(&self, done: impl FnOnce(Result<()>) + Send + 'static) -> Operation {
        Operation::start(self.0.guard.asynchronous().release_ref(), done)
    }

    /// A text with which another process goes on with this hold.
    ///
    /// # Errors
    /// `InvalidArgument` unless the owner is an explicit one.
    pub fn ticket(&self) -> Result<String> {
        Ok(self.0.guard.ticket()?.to_string())
    }
}
