//! A client.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::acquiring::Acquiring;
use crate::ending::call;
use crate::error::Result;
use crate::hold::Hold;
use crate::info::{Broken, Capabilities, LockInfo};
use crate::lock::{Lock, LockOptions};

/// A connection to a store, for all threads of the process. When the last object that belongs to it is
/// dropped, it is closed in the background. In a forked child, connect anew.
#[derive(uniffi::Object)]
pub struct Client(fencelock_support::Client);

impl Client {
    pub(crate) fn new(client: fencelock_support::Client) -> Arc<Client> {
        Arc::new(Client(client))
    }

    pub(crate) fn support(&self) -> &fencelock_support::Client {
        &self.0
    }
}

#[uniffi::export]
impl Client {
    /// The 16 hexadecimal digits under which the store knows this client.
    pub fn id(&self) -> String {
        self.0.id().to_owned()
    }

    /// The lock `name`. Asks the store nothing.
    ///
    /// Errors: `InvalidArgument` for the name, or the owner in the options; `Closed` in a forked child.
    #[uniffi::method(default(options = None))]
    pub fn lock(&self, name: String, options: Option<LockOptions>) -> Result<Arc<Lock>> {
        Lock::new(self.0.lock(&name)?, options.unwrap_or_default())
    }

    /// Goes on with a hold of an explicit owner, by its ticket; blocks.
    ///
    /// Errors: `NotHeld` when that hold has ended; `InvalidArgument` when the text is no ticket;
    /// `Unsupported`, `Unavailable`.
    pub fn attach(&self, ticket: String) -> Result<Arc<Hold>> {
        Ok(Hold::new(self.0.attach(&ticket)?))
    }

    /// As `attach`, without blocking: await `ended`, then fetch the `hold`.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread; all else comes from `ended`.
    pub fn begin_attach(&self, ticket: String) -> Result<Arc<Acquiring>> {
        Ok(Acquiring::begin(|done| self.0.attach_async(ticket, done))?)
    }

    /// The state of a lock, for people; nothing when the store knows nothing of it. Blocks.
    ///
    /// Errors: `InvalidArgument` for the name; `Unavailable`, `Misconfigured`, `Closed`.
    pub fn inspect(&self, name: String) -> Result<Option<LockInfo>> {
        Ok(self.0.inspect(&name)?.map(LockInfo::from))
    }

    /// As `inspect`, without blocking.
    pub async fn inspect_async(&self, name: String) -> Result<Option<LockInfo>> {
        let info = call(|done| Ok(Some(self.0.inspect_async(name, done)))).await?;
        Ok(info.map(LockInfo::from))
    }

    /// The names of at most `limit` locks that begin with `prefix`. Blocks.
    ///
    /// Errors: `InvalidArgument` for a limit of 0; `Unavailable`, `Misconfigured`, `Closed`.
    #[uniffi::method(default(prefix = "", limit = 1000))]
    pub fn list(&self, prefix: String, limit: u32) -> Result<Vec<String>> {
        Ok(self.0.list(&prefix, limit as usize)?)
    }

    /// As `list`, without blocking.
    #[uniffi::method(default(prefix = "", limit = 1000))]
    pub async fn list_async(&self, prefix: String, limit: u32) -> Result<Vec<String>> {
        Ok(call(|done| Ok(Some(self.0.list_async(prefix, limit as usize, done)))).await?)
    }

    /// Ends the holds on a lock that were seen under `token` (that of `inspect`, or of a hold), whoever has
    /// them, and none that came after it: so a break may be repeated. For operators: whoever held it is
    /// told, but may be in the middle of a write. Blocks.
    ///
    /// Errors: `InvalidArgument` for the name; `Unavailable`, `Misconfigured`, `Closed`.
    pub fn break_lock(&self, name: String, token: u64) -> Result<Broken> {
        Ok(self.0.break_lock(&name, token)?.into())
    }

    /// As `break_lock`, without blocking.
    pub async fn break_lock_async(&self, name: String, token: u64) -> Result<Broken> {
        let broken = call(|done| Ok(Some(self.0.break_lock_async(name, token, done)))).await?;
        Ok(broken.into())
    }

    /// Ends one hold of a lock or a semaphore, by the id and the token that `inspect` shows. The others
    /// stay. As `break_lock` otherwise. Blocks.
    ///
    /// Errors: `InvalidArgument` for the name, and for what is no hold's id; `Unavailable`,
    /// `Misconfigured`, `Closed`.
    pub fn break_hold(&self, name: String, token: u64, hold: String) -> Result<Broken> {
        Ok(self.0.break_hold(&name, token, &hold)?.into())
    }

    /// As `break_hold`, without blocking.
    pub async fn break_hold_async(&self, name: String, token: u64, hold: String) -> Result<Broken> {
        let begin = |done: Box<dyn FnOnce(_) + Send>| {
            self.0.break_hold_async(name, token, &hold, done).map(Some)
        };
        Ok(call(begin).await?.into())
    }

    /// The store's time. Blocks.
    ///
    /// Errors: `Unavailable`, `Misconfigured`, `Closed`.
    pub fn ping(&self) -> Result<SystemTime> {
        Ok(SystemTime::UNIX_EPOCH + self.0.ping()?)
    }

    /// As `ping`, without blocking.
    pub async fn ping_async(&self) -> Result<SystemTime> {
        let since = call(|done| Ok(Some(self.0.ping_async(done)))).await?;
        Ok(SystemTime::UNIX_EPOCH + since)
    }

    /// Closes the client: ends what waits with `Closed`, tells every hold that it is lost, and releases
    /// it at the store, for which it blocks. Safe at any time from any thread, and to repeat. Gives whether
    /// all was released: nothing was held or waited for, and the store has confirmed it.
    pub fn shut_down(&self) -> bool {
        self.0.close()
    }

    /// As `shut_down`, without blocking.
    pub async fn shut_down_async(&self) -> Result<bool> {
        Ok(call(|done| Ok(Some(self.0.close_async(done)))).await?)
    }

    /// Takes no new owners, waits until nothing is held and nobody waits, for at most `limit`, then shuts
    /// down. Gives whether all was released in time. Blocks.
    pub fn drain(&self, limit: Duration) -> bool {
        self.0.drain(limit)
    }

    /// As `drain`, without blocking.
    ///
    /// Errors: `Unavailable` when the operating system gives no thread.
    pub async fn drain_async(&self, limit: Duration) -> Result<bool> {
        let drain = |done: Box<dyn FnOnce(_) + Send>| {
            self.0.drain_async(limit, |all| done(Ok(all))).map(|()| None)
        };
        Ok(call(drain).await?)
    }

    /// Whether the client was shut down.
    pub fn is_shut_down(&self) -> bool {
        self.0.is_closed()
    }

    /// Whether nothing is held, waited for or being released.
    pub fn is_idle(&self) -> bool {
        self.0.is_idle()
    }

    /// What was counted, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.0.metrics().to_prometheus()
    }

    /// What the store can and cannot do.
    pub fn capabilities(&self) -> Capabilities {
        self.0.capabilities().into()
    }
}
