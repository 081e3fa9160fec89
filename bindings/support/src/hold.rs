//! A hold that a host shares freely.

use std::sync::Arc;
use std::time::Duration;

use fencelock::blocking::{self, Releasing};

use crate::operation::Operation;
use crate::{Abandoned, LossReason, Result};

/// A held lock. Clones are the same hold; when the last one is dropped unreleased, it is released in
/// the background.
#[derive(Clone, Debug)]
pub struct Hold(Arc<blocking::Guard>);

impl AsRef<Hold> for Hold {
    fn as_ref(&self) -> &Hold {
        self
    }
}

impl Hold {
    pub(crate) fn new(guard: blocking::Guard) -> Hold {
        Hold(Arc::new(guard))
    }

    /// The name of the lock.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The fencing token.
    pub fn token(&self) -> u64 {
        self.0.token().get()
    }

    /// The token, if the hold can be trusted at this moment.
    ///
    /// # Errors
    /// `Lost` when the hold has ended.
    pub fn check(&self) -> Result<u64> {
        Ok(self.0.check()?.get())
    }

    /// Whether the hold can be trusted at this moment.
    pub fn is_valid(&self) -> bool {
        self.0.is_valid()
    }

    /// Whether the holder was told that the hold is lost; does not look at the clock.
    pub fn is_lost(&self) -> bool {
        self.0.is_lost()
    }

    /// How long the hold can be trusted from now on if it is not renewed.
    pub fn remaining(&self) -> Duration {
        self.0.remaining()
    }

    /// Whether the owner had the lock already.
    pub fn is_reentry(&self) -> bool {
        self.0.is_reentry()
    }

    /// Whether the previous holder was lost.
    pub fn previous_abandoned(&self) -> Abandoned {
        self.0.previous_abandoned()
    }

    /// Whether another client waits for the lock, as far as is known.
    pub fn is_wanted(&self) -> bool {
        self.0.is_wanted()
    }

    /// Calls back once when the hold ends before its release; at once when it has. On the thread
    /// that learns of it: as with [`Operation::start`], it must be short and must not block.
    pub fn on_lost(&self, callback: impl FnOnce(LossReason) + Send + 'static) {
        self.0.on_lost(callback);
    }

    /// Calls back once when another client waits for the lock; as [`Hold::on_lost`].
    pub fn on_wanted(&self, callback: impl FnOnce() + Send + 'static) {
        self.0.on_wanted(callback);
    }

    /// Sets the lease from now on; never shortens it.
    ///
    /// # Errors
    /// As [`fencelock::Guard::extend`].
    pub fn extend(&self, lease: Duration) -> Result<()> {
        self.0.extend(lease)
    }

    /// See [`Hold::extend`].
    pub fn extend_async(
        &self,
        lease: Duration,
        done: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Operation {
        let guard = self.0.clone();
        Operation::start(async move { guard.asynchronous().extend(lease).await }, done)
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// `NotHeld` when it was released before, and as [`fencelock::Guard::release`].
    pub fn release(&self) -> Result<()> {
        self.0.release_ref()
    }

    /// Begins the release; `None` when it is done already.
    ///
    /// # Errors
    /// As [`Hold::release`].
    pub fn begin_release(&self) -> Result<Option<Releasing>> {
        self.0.begin_release()
    }

    /// See [`Hold::release`]. The release begins at once and is not undone by a cancel.
    pub fn release_async(&self, done: impl FnOnce(Result<()>) + Send + 'static) -> Operation {
        Operation::start(self.0.asynchronous().release_ref(), done)
    }

    /// A text with which another process goes on with this hold.
    ///
    /// # Errors
    /// `InvalidArgument` unless the owner is an explicit one.
    pub fn ticket(&self) -> Result<String> {
        Ok(self.0.ticket()?.to_string())
    }
}
