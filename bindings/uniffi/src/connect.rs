//! Connecting.

use std::sync::Arc;
use std::time::Duration;

use crate::client::Client;
use crate::ending::Ending;
use crate::error::{Result, invalid};

/// Options of a client; what is not given has the value in brackets.
#[derive(Clone, Debug, Default, PartialEq, Eq, uniffi::Record)]
pub struct ConnectOptions {
    /// Lease of holds without an explicit one (30 s), renewed in the background.
    #[uniffi(default = None)]
    pub lease: Option<Duration>,
    /// Lease of a hold that was handed over, until its holder is heard from (3 s).
    #[uniffi(default = None)]
    pub claim: Option<Duration>,
    /// How long a request may go unanswered (3 s).
    #[uniffi(default = None)]
    pub request_timeout: Option<Duration>,
    /// How long connecting may take.
    #[uniffi(default = None)]
    pub connect_timeout: Option<Duration>,
    /// Shown beside the client's id wherever holders are listed.
    #[uniffi(default = None)]
    pub label: Option<String>,
    /// Redis: what every key begins with.
    #[uniffi(default = None)]
    pub key_prefix: Option<String>,
    /// How many times in a row a lock may pass within the client while others wait (64).
    #[uniffi(default = None)]
    pub local_run_grants: Option<u32>,
    /// For how long a lock may pass within the client while others wait (10 ms).
    #[uniffi(default = None)]
    pub local_run_time: Option<Duration>,
    /// How many acquires may wait at a time.
    #[uniffi(default = None)]
    pub max_waiters: Option<u32>,
}

impl From<ConnectOptions> for fencelock_support::ConnectOptions {
    fn from(options: ConnectOptions) -> fencelock_support::ConnectOptions {
        fencelock_support::ConnectOptions {
            lease: options.lease,
            claim: options.claim,
            request_timeout: options.request_timeout,
            connect_timeout: options.connect_timeout,
            label: options.label,
            key_prefix: options.key_prefix,
            local_run_grants: options.local_run_grants,
            local_run_time: options.local_run_time,
            max_waiters: options.max_waiters.map(|count| count as usize),
        }
    }
}

/// Connects to the store of a URL (`redis://host`, `zk://host`, `sqlite:file`, `memory:name`), and blocks
/// until it has answered.
///
/// Errors: `InvalidArgument` for the URL or an option; `Unavailable`, `Misconfigured`, `Unsupported`.
#[uniffi::export(default(options = None))]
pub fn connect(url: String, options: Option<ConnectOptions>) -> Result<Arc<Client>> {
    let options = options.unwrap_or_default().into();
    Ok(Client::new(fencelock_support::Client::connect(&url, options)?))
}

/// As `connect`, without blocking: await `ended`, then fetch the `client`.
///
/// Errors: `Unavailable` when the operating system gives no thread; all else comes from `ended`.
#[uniffi::export(default(options = None))]
pub fn begin_connect(url: String, options: Option<ConnectOptions>) -> Result<Arc<Connecting>> {
    let ending = Ending::new()?;
    let told = ending.clone();
    let options = options.unwrap_or_default().into();
    fencelock_support::Client::connect_async(url, options, move |client| told.end(client))?;
    Ok(Arc::new(Connecting(ending)))
}

/// A connect that is under way. When it is dropped unfetched, the client is closed.
#[derive(uniffi::Object)]
pub struct Connecting(Arc<Ending<fencelock_support::Client>>);

#[uniffi::export]
impl Connecting {
    /// Waits until the store has answered. To cancel this does not cancel the connect.
    ///
    /// Errors: as `connect`; `Cancelled`.
    pub async fn ended(&self) -> Result<()> {
        Ok(self.0.ended().await?)
    }

    /// Gives the client, once, after `ended`.
    ///
    /// Errors: as `ended`; `InvalidArgument` before it has ended, or when it was fetched already.
    pub fn client(&self) -> Result<Arc<Client>> {
        match self.0.fetch() {
            Some(result) => Ok(Client::new(result?)),
            None if self.0.is_open() => {
                Err(invalid("this connect has not ended: await `ended` first"))
            }
            None => Err(invalid("this client was fetched already")),
        }
    }

    /// Gives up: the wait ends with `Cancelled`, and a client that was not fetched is closed.
    pub fn cancel(&self) {
        self.0.revoke();
    }
}

impl Drop for Connecting {
    fn drop(&mut self) {
        self.cancel();
    }
}
