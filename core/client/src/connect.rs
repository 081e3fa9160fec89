//! Making a client.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle as Runtime;

use crate::alarm::Alarm;
use crate::builder::{Builder, Resolved};
use crate::client::Client;
use crate::open::Store;
use crate::shared::{Handle, Link, Shared};
use crate::{Error, ErrorKind, Result};

/// Connects, and waits until the store has answered.
pub(crate) async fn connect(builder: Builder) -> Result<Client> {
    let resolved = builder.resolve()?;
    let (limit, url) = (resolved.patience(), resolved.url.to_string());
    let client = open(resolved)?;
    answered(&client, limit, &url).await?;
    Ok(client)
}

/// Makes the client without waiting for the store.
pub(crate) fn connect_lazy(builder: Builder) -> Result<Client> {
    open(builder.resolve()?)
}

fn open(resolved: Resolved) -> Result<Client> {
    let runtime = Runtime::try_current().map_err(|_| no_runtime())?;
    let (client, store) = prepare(resolved)?;
    store.open(client.shared(), Some(&runtime))?;
    Alarm::spawn_task(client.shared(), &runtime);
    Ok(client)
}

/// A client that has no transport and no alarm yet, and the store that it is to have.
pub(crate) fn prepare(resolved: Resolved) -> Result<(Client, Store)> {
    let Resolved { url, mut options, label, connect_timeout, store } = resolved;
    let store = Store::new(&url, store, connect_timeout, options.lease)?;
    options.keeping = store.keeping();
    let shared = Shared::new(options, &label, store.capabilities())?;
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

pub(crate) fn no_runtime() -> Error {
    Error::new(
        ErrorKind::InvalidArgument,
        "the async client must be connected in a tokio runtime; without one, use \
         fencelock::blocking",
    )
}
