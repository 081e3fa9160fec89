//! Making a client.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;

use crate::alarm;
use crate::builder::{Builder, Resolved};
use crate::client::Client;
use crate::errors::no_runtime;
use crate::handle::Handle;
use crate::open::Store;
use crate::shared::{Link, Shared};
use crate::{Error, ErrorKind, Result};

impl Client {
    /// Connects with the default options, and waits until the store has answered.
    ///
    /// Must be called in a tokio runtime; the client's background work lives there.
    ///
    /// # Errors
    /// `InvalidArgument` for a URL that cannot be read, `Unsupported` for a store that this build
    /// does not have, `Misconfigured` at once for a wrong password, a missing permission and the
    /// like, `Unavailable` when the store did not answer within the connect timeout.
    ///
    /// # Cancel safety
    /// Dropping the future gives the connection up.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use fencelock::{Client, ErrorKind};
    ///
    /// assert!(Client::connect("memory:").await.is_ok());
    /// let error = Client::connect("carrier-pigeon://roof").await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    /// # }
    /// ```
    pub async fn connect(url: impl AsRef<str>) -> Result<Client> {
        Client::builder(url).connect().await
    }

    /// Options for a client of the store at `url`. Nothing is checked before
    /// [`Builder::connect`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
    /// use std::time::Duration;
    ///
    /// let client = fencelock::Client::builder("memory:")
    ///     .lease(Duration::from_secs(10))
    ///     .label("billing")
    ///     .connect()
    ///     .await?;
    /// # drop(client); Ok(()) }
    /// ```
    pub fn builder(url: impl AsRef<str>) -> Builder {
        Builder::new(url.as_ref())
    }
}

impl Builder {
    /// Connects and waits until the store has answered. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// As [`Client::connect`].
    ///
    /// # Cancel safety
    /// Dropping the future gives the connection up.
    pub async fn connect(self) -> Result<Client> {
        let resolved = self.resolve()?;
        let (limit, url) = (resolved.patience(), resolved.url.to_string());
        let client = open(resolved)?;
        answered(&client, limit, &url).await?;
        Ok(client)
    }

    /// Makes the client without waiting for the store, and without failing if it is not there yet:
    /// acquires wait for it. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// `InvalidArgument`, `Unsupported`.
    pub fn connect_lazy(self) -> Result<Client> {
        open(self.resolve()?)
    }
}

fn open(resolved: Resolved) -> Result<Client> {
    let runtime = Runtime::try_current().map_err(|_| no_runtime())?;
    let (client, store) = prepare(resolved)?;
    store.open(client.shared(), Some(&runtime))?;
    alarm::spawn_task(client.shared(), &runtime);
    Ok(client)
}

/// A client that has no transport and no alarm yet, and the store that it is to have.
pub(crate) fn prepare(resolved: Resolved) -> Result<(Client, Store)> {
    let Resolved { url, mut options, label, connect_timeout, store } = resolved;
    let mut store = Store::new(&url, store, connect_timeout, options.lease)?;
    options.keeping = store.keeping();
    options.max_lease = store.longest_lease().unwrap_or(options.max_lease);
    options.check()?;
    store.count_with(&options);
    options.confirm_grants = store.waits_for_replicas(options.request_timeout);
    let shared = Shared::new(options, &label, store.capabilities())?;
    if let Some(places) = store.places() {
        shared.with(|core, _| core.engine.set_places(places))?;
    }
    Ok((Client { handle: Arc::new(Handle { shared }) }, store))
}

/// Waits until the store has answered, has refused, or the limit has passed.
pub(crate) async fn answered(client: &Client, limit: Duration, url: &str) -> Result<()> {
    let mut link = client.shared().link();
    let settled = link.wait_for(|link| !matches!(link, Link::Down(_)));
    // An error of the inner one cannot be: the sender lives in the client, which is here.
    if let Ok(Ok(link)) = tokio::time::timeout(limit, settled).await {
        return match &*link {
            Link::Refused(error) => Err(error.clone()),
            Link::Up | Link::Down(_) => Ok(()),
        };
    }
    let why = match &*client.shared().link().borrow() {
        Link::Down(Some(reason)) => format!(": {reason}"),
        _ => String::new(),
    };
    Err(Error::new(
        ErrorKind::Unavailable,
        format!(
            "no answer from {url} within {}{why}; is the address right and the store running?",
            humantime::format_duration(limit)
        ),
    ))
}
