//! One client for blocking and asynchronous calls.

use std::time::Duration;

#[cfg(unix)]
use fencelock::blocking::{HostLoop, Hosted};
use fencelock::{HoldId, Metrics, blocking};

use crate::hold::Hold;
use crate::operation::Operation;
use crate::options::ConnectOptions;
use crate::{Broken, Capabilities, Error, ErrorKind, LockInfo, Result};

/// A connection to a store. Cheap to clone; all clones are the same client. Closed in the background
/// when the last clone, with its locks and holds, is dropped.
///
/// A method `x_async` does what `x` does, and calls `done` as [`Operation::start`] says.
#[derive(Clone, Debug)]
pub struct Client(pub(crate) blocking::Client);

impl Client {
    /// Connects, and waits until the store has answered. In a forked child, connect anew.
    ///
    /// # Errors
    /// As [`fencelock::Client::connect`].
    pub fn connect(url: &str, options: ConnectOptions) -> Result<Client> {
        options.builder(url).connect_blocking().map(Client)
    }

    /// As [`Client::connect`], on a thread that lasts until it has connected or failed.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no thread; all else goes to `done`.
    pub fn connect_async(
        url: String,
        options: ConnectOptions,
        done: impl FnOnce(Result<Client>) + Send + 'static,
    ) -> Result<()> {
        on_thread("fencelock-connect", move || done(Client::connect(&url, options)))
    }

    /// Goes on with a hold of an explicit owner; see [`fencelock::Client::attach`].
    ///
    /// # Errors
    /// As there.
    pub fn attach(&self, ticket: &str) -> Result<Hold> {
        self.0.attach(ticket).map(Hold::new)
    }

    /// See [`Client::attach`].
    pub fn attach_async(
        &self,
        ticket: String,
        done: impl FnOnce(Result<Hold>) + Send + 'static,
    ) -> Operation {
        let client = self.0.clone();
        let attach = async move {
            let guard = client.asynchronous().attach(&ticket).await?;
            Ok(Hold::new(client.adopt(guard)))
        };
        Operation::start(attach, done)
    }

    /// The state of a lock; `None` when the store knows nothing of it.
    ///
    /// # Errors
    /// As [`fencelock::Client::inspect`].
    pub fn inspect(&self, name: &str) -> Result<Option<LockInfo>> {
        self.0.inspect(name)
    }

    /// See [`Client::inspect`].
    pub fn inspect_async(
        &self,
        name: String,
        done: impl FnOnce(Result<Option<LockInfo>>) + Send + 'static,
    ) -> Operation {
        let client = self.0.asynchronous().clone();
        Operation::start(async move { client.inspect(name).await }, done)
    }

    /// The names of locks that begin with `prefix`, at most `limit`.
    ///
    /// # Errors
    /// As [`fencelock::Client::list`].
    pub fn list(&self, prefix: &str, limit: usize) -> Result<Vec<String>> {
        Ok(names(self.0.list(prefix, limit)?))
    }

    /// See [`Client::list`].
    pub fn list_async(
        &self,
        prefix: String,
        limit: usize,
        done: impl FnOnce(Result<Vec<String>>) + Send + 'static,
    ) -> Operation {
        let client = self.0.asynchronous().clone();
        Operation::start(async move { Ok(names(client.list(&prefix, limit).await?)) }, done)
    }

    /// Ends the holds on a lock that were seen under `token`, whoever has them, and none that came
    /// after it.
    ///
    /// # Errors
    /// As [`fencelock::Client::break_lock`], which tells the danger.
    pub fn break_lock(&self, name: &str, token: u64) -> Result<Broken> {
        Ok(self.0.break_lock(name, token)?.into())
    }

    /// Ends one hold of a lock, by the id and the token that an inspection shows.
    ///
    /// # Errors
    /// `InvalidArgument` for what is no hold's id; otherwise as [`fencelock::Client::break_hold`].
    pub fn break_hold(&self, name: &str, token: u64, hold: &str) -> Result<Broken> {
        Ok(self.0.break_hold(name, token, hold_id(hold)?)?.into())
    }

    /// See [`Client::break_hold`].
    ///
    /// # Errors
    /// `InvalidArgument` for what is no hold's id.
    pub fn break_hold_async(
        &self,
        name: String,
        token: u64,
        hold: &str,
        done: impl FnOnce(Result<Broken>) + Send + 'static,
    ) -> Result<Operation> {
        let (client, hold) = (self.0.asynchronous().clone(), hold_id(hold)?);
        let ended = async move { Ok(client.break_hold(name, token, hold).await?.into()) };
        Ok(Operation::start(ended, done))
    }

    /// See [`Client::break_lock`].
    pub fn break_lock_async(
        &self,
        name: String,
        token: u64,
        done: impl FnOnce(Result<Broken>) + Send + 'static,
    ) -> Operation {
        let client = self.0.asynchronous().clone();
        Operation::start(async move { Ok(client.break_lock(name, token).await?.into()) }, done)
    }

    /// The store's time since 1970.
    ///
    /// # Errors
    /// `Unavailable`, `Misconfigured`, `Closed`.
    pub fn ping(&self) -> Result<Duration> {
        self.0.ping()
    }

    /// See [`Client::ping`].
    pub fn ping_async(&self, done: impl FnOnce(Result<Duration>) + Send + 'static) -> Operation {
        let client = self.0.asynchronous().clone();
        Operation::start(async move { client.ping().await }, done)
    }

    /// Closes the client: cancels what waits, tells every hold that it is lost, and releases it at
    /// the store. Safe while calls are under way, and to repeat. Gives whether all was released; see
    /// [`fencelock::Client::close`].
    pub fn close(&self) -> bool {
        self.0.close()
    }

    /// See [`Client::close`].
    pub fn close_async(&self, done: impl FnOnce(Result<bool>) + Send + 'static) -> Operation {
        let client = self.0.asynchronous().clone();
        Operation::start(async move { Ok(client.close().await) }, done)
    }

    /// Takes no new owners, waits until nothing is held and nobody waits, for at most `limit`, then
    /// closes. Gives whether all was released in time.
    pub fn drain(&self, limit: Duration) -> bool {
        self.0.drain(limit)
    }

    /// As [`Client::drain`], on a thread that lasts until it is done.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no thread.
    pub fn drain_async(
        &self,
        limit: Duration,
        done: impl FnOnce(bool) + Send + 'static,
    ) -> Result<()> {
        let client = self.clone();
        on_thread("fencelock-drain", move || done(client.drain(limit)))
    }

    /// Whether the client is closed.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether nothing is held, waited for or being released.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// What was counted.
    pub fn metrics(&self) -> Metrics {
        self.0.metrics()
    }

    /// What the store can and cannot do.
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    /// The 16 hexadecimal digits under which the store knows this client.
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Lets an event loop drive the connection; `None` when the store has none that it could, or
    /// another loop does.
    #[cfg(unix)]
    pub fn hosted_by(&self, turns: &HostLoop) -> Option<Hosted> {
        turns.serve(&self.0)
    }

    pub(crate) fn blocking(&self) -> &blocking::Client {
        &self.0
    }
}

fn hold_id(text: &str) -> Result<HoldId> {
    HoldId::parse(text).ok_or_else(|| {
        let text =
            format!("{text:?} is no hold's id: an inspection shows its 32 hexadecimal digits");
        Error::new(ErrorKind::InvalidArgument, text)
    })
}

fn names(names: Vec<fencelock::Name>) -> Vec<String> {
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

fn on_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    match std::thread::Builder::new().name(name.to_owned()).spawn(work) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the operating system gives no thread: {error}"),
        )),
    }
}
