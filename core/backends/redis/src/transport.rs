//! The store as the driver of an engine sees it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::redis::{Codec, cluster};
use fencelock_engine::request::Request;
use fencelock_engine::transport::{Capabilities, Doubt, Farewell, Sink, Transport, Watcher};
use fencelock_engine::{ClientId, Error, LaneId, Name, Place};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::cluster::Cluster;
use crate::options::{Address, Options};
use crate::quorum::Quorum;
use crate::session;
use crate::shared::Shared;
use crate::sync;

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

/// What a quorum can do: co-holders of one owner would not know its token, and no reader or permit is counted
/// at several servers.
const QUORUM: Capabilities = Capabilities {
    store: "redis quorum",
    owners: false,
    shared: false,
    permits: false,
    ..CAPABILITIES
};

/// What Redis can do where it is so.
pub fn capabilities(options: &Options) -> Capabilities {
    if matches!(options.address, Address::Quorum(_)) { QUORUM } else { CAPABILITIES }
}

/// The longest lease that may be asked for, where it must be agreed on.
pub fn longest_lease(options: &Options) -> Option<Duration> {
    match &options.address {
        Address::Quorum(quorum) => Some(quorum.max_lease),
        _ => None,
    }
}

/// Where a name's place is, of a cluster: an engine must know it before it is asked for a lock.
pub fn places(options: &Options) -> Option<fn(&Name) -> Place> {
    matches!(options.address, Address::Cluster(_)).then_some(cluster::place)
}

/// Connections to a Redis server, to each master of a cluster, or to each server of a quorum, made anew by
/// themselves when they break.
///
/// Closing or dropping it ends its tasks.
pub struct RedisTransport(Kind);

enum Kind {
    One(One),
    Many(Cluster),
    Most(Quorum),
}

/// One server.
struct One {
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
    if matches!(options.address, Address::Cluster(_)) {
        let cluster = Cluster::open(options, client, sink, runtime)?;
        return Ok(Arc::new(RedisTransport(Kind::Many(cluster))));
    }
    if matches!(options.address, Address::Quorum(_)) {
        let quorum = Quorum::open(options, client, sink, runtime)?;
        return Ok(Arc::new(RedisTransport(Kind::Most(quorum))));
    }
    let plain = !options.address.is_tls();
    let codec = Codec::new(client.clone(), &options.prefix)?;
    let shared = Shared::new(codec, sink).confirmed(sync::terms(&options, &client)?);
    let shared = Arc::new(shared);
    let task = runtime.spawn(session::run(options, client, Arc::clone(&shared))).abort_handle();
    Ok(Arc::new(RedisTransport(Kind::One(One { shared, plain, task }))))
}

impl Transport for RedisTransport {
    fn enqueue(&self, request: Request) {
        match &self.0 {
            Kind::One(one) => one.shared.enqueue(request),
            Kind::Many(cluster) => cluster.enqueue(request),
            Kind::Most(quorum) => quorum.enqueue(request),
        }
    }

    fn flush(&self) {
        match &self.0 {
            Kind::One(one) => one.shared.flush(),
            Kind::Many(cluster) => cluster.flush(),
            Kind::Most(quorum) => quorum.flush(),
        }
    }

    fn reconnect(&self, doubt: Doubt) {
        match &self.0 {
            Kind::One(one) => one.shared.doubt(doubt),
            Kind::Many(cluster) => cluster.doubt(doubt),
            // Each server is doubted by itself.
            Kind::Most(_) => {}
        }
    }

    fn server(&self, lane: LaneId) -> Option<String> {
        match &self.0 {
            Kind::One(_) | Kind::Most(_) => None,
            Kind::Many(cluster) => cluster.server(lane),
        }
    }

    fn close(&self) {
        match &self.0 {
            Kind::One(one) => {
                one.shared.close();
                one.task.abort();
            }
            Kind::Many(cluster) => cluster.close(),
            Kind::Most(quorum) => quorum.close(),
        }
    }

    fn farewell(&self) -> Option<Farewell> {
        match &self.0 {
            Kind::Most(quorum) => Some(quorum.farewell()),
            Kind::One(_) | Kind::Many(_) => None,
        }
    }

    /// Of a cluster, or a quorum, not all comes by the sockets of the requests.
    fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        match &self.0 {
            Kind::One(one) => cfg!(unix) && one.plain && one.shared.watch(watcher),
            Kind::Many(_) | Kind::Most(_) => false,
        }
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
