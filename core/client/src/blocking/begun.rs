//! An acquire that has begun: for hosts that must give something up before they block, such as an
//! interpreter's lock, and would rather not when nothing blocks.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::begun::Started;
use crate::blocking::{Driver, Guard, Interrupt};

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

    /// As [`Acquiring::wait`], for at most `limit`: gives itself back, with its place in the queue,
    /// when that was too short. For hosts whose threads should rest in a place of their own.
    ///
    /// # Errors
    /// As [`Acquiring::wait`].
    pub fn wait_for(self, limit: Duration) -> Result<Begun> {
        let Acquiring { started, driver } = self;
        let Started::Pending { mut wait, lock, by } = started else {
            return Ok(Begun::new(started, &driver));
        };
        let interrupt = Interrupt { every: limit, stop: &mut || true };
        let started = match driver.wait_unless(&mut wait, Some(interrupt)) {
            Some((outcome, now)) => {
                Started::Granted(Started::finish(wait, lock, by, outcome, now)?)
            }
            None => Started::Pending { wait, lock, by },
        };
        Ok(Begun::new(started, &driver))
    }

    /// The same wait as a future, which any executor may poll; a background thread drives the
    /// connection while no blocking caller does.
    ///
    /// # Errors
    /// As [`Acquiring::wait`].
    pub async fn asynchronous(self) -> Result<Guard> {
        let Acquiring { started, driver } = self;
        started.guard().await.map(|guard| Guard::new(guard, driver))
    }
}

impl std::fmt::Debug for Acquiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Acquiring")
    }
}
