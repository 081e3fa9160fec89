//! Calls that have begun: for hosts that must give something up before they block, such as an
//! interpreter's lock, and would rather not when nothing blocks.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::begun::Started;
use crate::blocking::{Driver, Guard, Interrupt};
use crate::cancel::cancelled;
use crate::guard::released;
use crate::wait::Wait;

/// An acquire that has begun; from [`Lock::begin`](crate::blocking::Lock::begin).
#[must_use = "dropping it gives up the lock, or the place in the queue"]
#[derive(Debug)]
pub enum Begun {
    /// It has ended already: a re-entry, a local hand-off, or a store in memory.
    Granted(Guard),
    /// The store is to be asked, or others are to be waited for. Nothing is sent before
    /// [`Acquiring::wait`].
    Waiting(Acquiring),
}

/// An acquire that waits; dropping it leaves the queue.
#[must_use = "dropping it leaves the queue"]
pub struct Acquiring {
    started: Started,
    driver: Arc<Driver>,
}

impl Begun {
    pub(crate) fn new(started: Started, driver: &Arc<Driver>) -> Begun {
        match started {
            Started::Granted(guard) => Begun::Granted(Guard::new(guard, driver.clone())),
            started => Begun::Waiting(Acquiring { started, driver: driver.clone() }),
        }
    }
}

impl Acquiring {
    /// Waits for the end.
    ///
    /// # Errors
    /// As [`Lock::acquire_timeout`](crate::blocking::Lock::acquire_timeout).
    pub fn wait(self) -> Result<Guard> {
        Guard::wait(self.started, &self.driver)
    }

    /// As [`Acquiring::wait`], asking `stop` on this thread each `every` whether to give up.
    ///
    /// # Errors
    /// `Cancelled` when `stop` said so, and those of [`Acquiring::wait`].
    pub fn wait_unless(self, every: Duration, mut stop: impl FnMut() -> bool) -> Result<Guard> {
        let interrupt = Interrupt { every, stop: &mut stop };
        Guard::wait_unless(self.started, &self.driver, Some(interrupt))
    }
}

impl std::fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acquiring")
    }
}

/// A release that has begun and goes on in the background if it is dropped; from
/// [`Guard::begin_release`].
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
    /// As [`Guard::release`].
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
