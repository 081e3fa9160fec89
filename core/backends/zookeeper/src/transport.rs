//! The store as the driver of an engine sees it.

use std::fmt;
use std::sync::Arc;

use fencelock_engine::request::Request;
use fencelock_engine::transport::{Capabilities, Doubt, Farewell, Sink, Transport};
use fencelock_engine::zookeeper::Machine;
use fencelock_engine::{ClientId, Error};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::fork::check_process;
use crate::options::Options;
use crate::session;
use crate::shared::Shared;

/// What ZooKeeper can do.
pub const CAPABILITIES: Capabilities = Capabilities {
    store: "zookeeper",
    processes: true,
    durable: true,
    owners: false,
    leases: false,
    abandoned: true,
    paths: true,
    shared: true,
    permits: true,
};

/// A session to an ensemble, replaced by itself when it is over.
///
/// Closing or dropping it ends its task.
pub struct ZooKeeperTransport {
    shared: Arc<Shared>,
    task: AbortHandle,
    /// Closed when the task has ended.
    ended: watch::Receiver<()>,
}

/// Starts connecting, on `runtime`, and returns at once: what becomes of it comes to `sink`.
///
/// # Errors
/// When an option is wrong; `Unsupported` in a process that was forked from one that had used
/// ZooKeeper. Servers that cannot be reached are no error here.
pub fn open(
    options: Options,
    client: ClientId,
    sink: Arc<dyn Sink>,
    runtime: &Handle,
) -> Result<Arc<ZooKeeperTransport>, Error> {
    options.check()?;
    check_process()?;
    let machine = Machine::new(options.machine(), client)?;
    let shared = Arc::new(Shared::new(machine, options.acl, sink));
    let (running, ended) = watch::channel(());
    let run = session::run(options, Arc::clone(&shared));
    let task = runtime.spawn(async move {
        let _running = running;
        run.await;
    });
    Ok(Arc::new(ZooKeeperTransport { shared, task: task.abort_handle(), ended }))
}

impl Transport for ZooKeeperTransport {
    fn enqueue(&self, request: Request) {
        self.shared.enqueue(request);
    }

    fn flush(&self) {
        self.shared.flush();
    }

    /// Closes the connection and takes the session up by another, to another server where the URL
    /// names several: holds and places in the queue are the session's, and stay. A session has one
    /// connection, so there is no looking first whether another is answered.
    fn reconnect(&self, doubt: Doubt) {
        self.shared.doubt(doubt);
    }

    fn close(&self) {
        if !self.shared.close() {
            self.task.abort();
        }
    }

    fn farewell(&self) -> Option<Farewell> {
        let mut ended = self.ended.clone();
        Some(Box::pin(async move { while ended.changed().await.is_ok() {} }))
    }
}

impl Drop for ZooKeeperTransport {
    fn drop(&mut self) {
        // One that was closed may be ending its session.
        if !self.shared.is_closed() {
            self.close();
        }
    }
}

impl fmt::Debug for ZooKeeperTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZooKeeperTransport").finish_non_exhaustive()
    }
}
