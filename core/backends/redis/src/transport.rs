//! The store as the driver of an engine sees it.

use std::fmt;
use std::sync::Arc;

use fencelock_engine::redis::Codec;
use fencelock_engine::request::Request;
use fencelock_engine::transport::{Capabilities, Doubt, Sink, Transport, Watcher};
use fencelock_engine::{ClientId, Error};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::options::Options;
use crate::session;
use crate::shared::Shared;

/// What Redis can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    store: "redis",
    processes: true,
    durable: true,
    owners: true,
    leases: true,
    abandoned: true,
    paths: false,
    shared: true,
    permits: true,
};

/// A connection to a Redis server, made anew by itself when it breaks.
///
/// Closing or dropping it ends its task.
pub struct RedisTransport {
    shared: Arc<Shared>,
    /// TLS writes when it reads and keeps what it has read: its socket does not tell all.
    plain: bool,
    task: AbortHandle,
}

/// Starts connecting, on `runtime`, and returns at once: what becomes of it comes to `sink`.
///
/// # Errors
/// When an option is wrong. A server that cannot be reached is no error here.
pub fn open(
    options: Options,
    client: ClientId,
    sink: Arc<dyn Sink>,
    runtime: &Handle,
) -> Result<Arc<RedisTransport>, Error> {
    options.check()?;
    let plain = !options.address.is_tls();
    let codec = Codec::new(client.clone(), &options.prefix)?;
    let shared = Arc::new(Shared::new(codec, sink));
    let task = runtime.spawn(session::run(options, client, Arc::clone(&shared))).abort_handle();
    Ok(Arc::new(RedisTransport { shared, plain, task }))
}

impl Transport for RedisTransport {
    fn enqueue(&self, request: Request) {
        self.shared.enqueue(request);
    }

    fn flush(&self) {
        self.shared.flush();
    }

    fn reconnect(&self, doubt: Doubt) {
        self.shared.doubt(doubt);
    }

    fn close(&self) {
        self.shared.close();
        self.task.abort();
    }

    fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        cfg!(unix) && self.plain && self.shared.watch(watcher)
    }
}

impl Drop for RedisTransport {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for RedisTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisTransport").finish_non_exhaustive()
    }
}
