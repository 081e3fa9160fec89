//! A lock that readers share.

use fencelock::blocking;

use crate::Result;
use crate::client::Client;
use crate::lock::Lock;

/// A read-write lock: its two sides are ordinary [`Lock`]s, with all that those have. Cheap to clone.
///
/// See [`fencelock::RwLock`] for the rules.
#[derive(Clone, Debug)]
pub struct RwLock {
    inner: blocking::RwLock,
    client: Client,
}

impl Client {
    /// The read-write lock `name`. Asks the store nothing.
    ///
    /// # Errors
    /// `InvalidArgument` for the name; `Closed` in a forked child.
    pub fn rw_lock(&self, name: &str) -> Result<RwLock> {
        Ok(RwLock { inner: self.blocking().rw_lock(name)?, client: self.clone() })
    }
}

impl RwLock {
    /// The lock's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The side whose every acquire reads.
    pub fn reader(&self) -> Lock {
        Lock::new(self.inner.reader(), self.client.clone())
    }

    /// The side that writes: the lock of this name.
    pub fn writer(&self) -> Lock {
        Lock::new(self.inner.writer(), self.client.clone())
    }
}
