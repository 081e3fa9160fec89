//! The blocking client.

use std::sync::Arc;
use std::time::Duration;

use crate::blocking::{Driver, Guard, Lock};
use crate::builder::Builder;
use crate::client::{broken, inspected, listed, pinged};
use crate::ticket::Ticket;
use crate::{Capabilities, LockInfo, Metrics, Name, Result};

/// A connection to a store, for threads. Cheap to clone; all clones are the same client.
///
/// ```
/// use fencelock::blocking::Client;
///
/// let client = Client::connect("memory:")?;
/// let guard = client.lock("reports/nightly")?.acquire()?;
/// assert!(guard.is_valid());
/// guard.release()?;
/// client.close();
/// # Ok::<(), fencelock::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    inner: crate::Client,
    driver: Arc<Driver>,
}

impl Client {
    /// Connects with the default options, and waits until the store has answered.
    ///
    /// # Errors
    /// As [`crate::Client::connect`].
    pub fn connect(url: impl AsRef<str>) -> Result<Client> {
        Client::builder(url).connect_blocking()
    }

    /// Options for a client of the store at `url`; end with [`Builder::connect_blocking`].
    pub fn builder(url: impl AsRef<str>) -> Builder {
        crate::Client::builder(url)
    }

    pub(crate) fn from_builder(builder: Builder) -> Result<Client> {
        let (inner, driver) = Driver::connect(builder.resolve()?)?;
        Ok(Client { inner, driver })
    }

    /// The lock `name`; see [`crate::Client::lock`].
    ///
    /// # Errors
    /// `InvalidArgument` for the name.
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Ok(Lock::new(self.inner.lock(name)?, self.driver.clone()))
    }

    /// Goes on with a hold of an explicit owner; see [`crate::Client::attach`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(&self, ticket: impl AsRef<str>) -> Result<Guard> {
        let ticket = Ticket::parse(ticket.as_ref())?;
        let lock = self.inner.lock(ticket.lock())?.owner(ticket.owner().clone());
        Guard::wait(lock.start_attach(ticket.token())?, &self.driver)
    }

    /// The state of a lock; see [`crate::Client::inspect`].
    ///
    /// # Errors
    /// As there.
    pub fn inspect(&self, name: impl AsRef<str>) -> Result<Option<LockInfo>> {
        let name = Name::new(name)?;
        let wait = self.inner.start(|core, now, cell| core.engine.inspect(now, &name, cell))?;
        inspected(self.driver.wait(wait).0)
    }

    /// The names of locks; see [`crate::Client::list`].
    ///
    /// # Errors
    /// As there.
    pub fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Name>> {
        let call =
            self.inner.start(|core, now, cell| core.engine.list(now, prefix, limit, cell))?;
        listed(self.driver.wait(call).0)
    }

    /// Ends every hold on a lock; see [`crate::Client::break_lock`] for its danger.
    ///
    /// # Errors
    /// As there.
    pub fn break_lock(&self, name: impl AsRef<str>) -> Result<usize> {
        let name = Name::new(name)?;
        let wait = self.inner.start(|core, now, cell| core.engine.break_lock(now, &name, cell))?;
        broken(self.driver.wait(wait).0)
    }

    /// The store's time since 1970.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    pub fn ping(&self) -> Result<Duration> {
        let wait = self.inner.start(|core, now, cell| core.engine.ping(now, cell))?;
        pinged(self.driver.wait(wait).0)
    }

    /// Closes the client: cancels what waits, tells every hold that it is lost and releases it at
    /// the store. Returns when the store has confirmed that, or after the request timeout.
    pub fn close(&self) {
        if let Some(wait) = self.inner.shared().start_close() {
            self.driver.wait(wait);
        }
    }

    /// What the client has counted since it was made.
    pub fn metrics(&self) -> Metrics {
        self.inner.metrics()
    }

    /// What the store can and cannot do.
    pub fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    /// The 16 hexadecimal digits under which the store knows this client.
    pub fn id(&self) -> &str {
        self.inner.id()
    }
}
