//! A release that has begun: for hosts that must give something up before they block.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::blocking::{Driver, Interrupt};
use crate::errors::cancelled;
use crate::outcome::released;
use crate::wait::Wait;

/// A release that has begun and goes on in the background if it is dropped; from
/// [`Guard::begin_release`](crate::blocking::Guard::begin_release).
#[must_use = "dropping it does not wait for the release"]
pub struct Releasing {
    wait: Wait,
    driver: Arc<Driver>,
}

impl Releasing {
    pub(crate) fn new(wait: Wait, driver: Arc<Driver>) -> Releasing {
        Releasing { wait, driver }
    }

    /// Waits until the store has it.
    ///
    /// # Errors
    /// As [`Guard::release`](crate::blocking::Guard::release).
    pub fn wait(self) -> Result<()> {
        released(self.driver.wait(self.wait).0)
    }

    /// As [`Releasing::wait`], asking `stop` on this thread each `every` whether to wait no longer.
    ///
    /// # Errors
    /// `Cancelled` when `stop` said so: the release goes on; and those of [`Releasing::wait`].
    pub fn wait_unless(mut self, every: Duration, mut stop: impl FnMut() -> bool) -> Result<()> {
        let interrupt = Interrupt { every, stop: &mut stop };
        match self.driver.wait_unless(&mut self.wait, Some(interrupt)) {
            Some((outcome, _)) => released(outcome),
            None => Err(cancelled()),
        }
    }
}

impl std::fmt::Debug for Releasing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Releasing")
    }
}
