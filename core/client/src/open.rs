//! Opening the store that a URL names. The only place that knows the backends.

use std::sync::Arc;
use std::time::Duration;

use fencelock_engine::transport::{Capabilities, Transport};
use fencelock_engine::{Keeping, Name, Options, Place};
use tokio::runtime::Handle;

#[cfg(any(feature = "redis", feature = "zookeeper"))]
use crate::errors::no_runtime;
use crate::shared::Shared;
use crate::url::{ClientOptions, Kind, StoreUrl};
use crate::{Error, ErrorKind, Result};

/// Options that only one store has.
#[derive(Clone, Default)]
pub(crate) struct StoreOptions {
    pub(crate) key_prefix: Option<String>,
    #[cfg(feature = "redis")]
    pub(crate) credentials: Option<Arc<dyn fencelock_redis::Credentials>>,
    #[cfg(feature = "redis")]
    pub(crate) redis: Option<fencelock_redis::Options>,
}

impl StoreOptions {
    /// The store's URL, unless the options are given as such.
    pub(crate) fn url(&self, text: &str) -> Result<(StoreUrl, ClientOptions)> {
        #[cfg(feature = "redis")]
        if let Some(redis) = &self.redis {
            let scheme = match redis.address {
                fencelock_redis::Address::Sentinel(_) => "redis+sentinel",
                fencelock_redis::Address::Cluster(_) => "redis+cluster",
                fencelock_redis::Address::Quorum(_) => "redis+quorum",
                _ => "redis",
            };
            let text = format!("{scheme}://{}", redis.address);
            let url = StoreUrl { kind: Kind::Redis, text };
            return Ok((url, ClientOptions::default()));
        }
        StoreUrl::split(text)
    }
}

/// A store that can be opened.
pub(crate) enum Store {
    #[cfg(feature = "memory")]
    Memory(fencelock_memory::Options),
    #[cfg(feature = "sqlite")]
    Sqlite(fencelock_sqlite::Options),
    #[cfg(feature = "redis")]
    Redis(Box<fencelock_redis::Options>),
    #[cfg(feature = "zookeeper")]
    ZooKeeper(Box<fencelock_zookeeper::Options>),
}

impl Store {
    /// Reads the URL's own options.
    pub(crate) fn new(
        url: &StoreUrl,
        options: StoreOptions,
        connect_timeout: Option<Duration>,
        lease: Duration,
    ) -> Result<Store> {
        #[cfg(feature = "redis")]
        let only_redis = options.key_prefix.is_some() || options.credentials.is_some();
        #[cfg(not(feature = "redis"))]
        let only_redis = options.key_prefix.is_some();
        if only_redis && url.kind != Kind::Redis {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                match options.key_prefix {
                    Some(_) => format!("a key prefix belongs to Redis, not to {url}"),
                    None => format!("credentials belong to Redis, not to {url}"),
                },
            ));
        }
        match url.kind {
            #[cfg(feature = "memory")]
            Kind::Memory => Ok(Store::Memory(fencelock_memory::Options::from_url(&url.text)?)),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite => Ok(Store::Sqlite(fencelock_sqlite::Options::from_url(&url.text)?)),
            #[cfg(feature = "redis")]
            Kind::Redis => {
                let given = options.redis.as_ref().map(|redis| redis.connect_timeout);
                let mut redis = match options.redis {
                    Some(redis) => redis,
                    None => fencelock_redis::Options::from_url(&url.text)?,
                };
                // One attempt takes no longer than all of them may.
                if let Some(limit) = connect_timeout {
                    redis.connect_timeout = given.map_or(limit, |given| given.min(limit));
                }
                if let Some(prefix) = options.key_prefix {
                    redis.prefix = prefix;
                }
                if let Some(credentials) = options.credentials {
                    redis.credentials = Some(credentials);
                }
                redis.check()?;
                Ok(Store::Redis(Box::new(redis)))
            }
            #[cfg(feature = "zookeeper")]
            Kind::ZooKeeper => {
                let mut zookeeper = fencelock_zookeeper::Options::from_url(&url.text)?;
                zookeeper.connect_timeout = connect_timeout.unwrap_or(zookeeper.connect_timeout);
                // A hold lasts as long as the session.
                zookeeper.session_timeout = lease;
                Ok(Store::ZooKeeper(Box::new(zookeeper)))
            }
            #[allow(unreachable_patterns)]
            _ => {
                let _ = (options, connect_timeout, lease);
                Err(Error::new(
                    ErrorKind::Unsupported,
                    format!(
                        "this build of fencelock has no {0}: turn its feature on",
                        url.scheme()
                    ),
                ))
            }
        }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        match self {
            #[cfg(feature = "memory")]
            Store::Memory(_) => fencelock_memory::CAPABILITIES,
            #[cfg(feature = "sqlite")]
            Store::Sqlite(_) => fencelock_sqlite::CAPABILITIES,
            #[cfg(feature = "redis")]
            Store::Redis(options) => fencelock_redis::capabilities(options),
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(_) => fencelock_zookeeper::CAPABILITIES,
        }
    }

    /// How it keeps holds.
    pub(crate) fn keeping(&self) -> Keeping {
        match self {
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(_) => Keeping::Session,
            #[allow(unreachable_patterns)]
            _ => Keeping::Leases,
        }
    }

    /// The longest lease that it keeps, where that is its own affair.
    pub(crate) fn longest_lease(&self) -> Option<Duration> {
        match self {
            #[cfg(feature = "redis")]
            Store::Redis(options) => fencelock_redis::longest_lease(options),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }

    /// What the client counts with is of use to a store that counts votes.
    pub(crate) fn count_with(&mut self, client: &Options) {
        match self {
            #[cfg(feature = "redis")]
            Store::Redis(options) => options.client = client.clone(),
            #[allow(unreachable_patterns)]
            _ => _ = client,
        }
    }

    /// Whether others confirm what it grants. It waits for them for a third of `limit` at the most: what is
    /// asked meanwhile waits as well, and a connection that is silent for longer than that is doubted.
    pub(crate) fn waits_for_replicas(&mut self, limit: Duration) -> bool {
        match self {
            #[cfg(feature = "redis")]
            Store::Redis(options) if options.sync_replicas.is_some() => {
                options.sync_timeout = options.sync_timeout.min(limit / 3);
                true
            }
            #[allow(unreachable_patterns)]
            _ => {
                let _ = limit;
                false
            }
        }
    }

    /// Whether a write to a connection that has broken raises SIGPIPE. The standard library asks
    /// the system not to, but not for what is written from several slices at once, which
    /// ZooKeeper's client does; the Redis store does not.
    pub(crate) fn raises_sigpipe(&self) -> bool {
        match self {
            #[cfg(feature = "memory")]
            Store::Memory(_) => false,
            #[cfg(feature = "sqlite")]
            Store::Sqlite(_) => false,
            #[cfg(feature = "redis")]
            Store::Redis(_) => false,
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(_) => true,
        }
    }

    /// Whether its connection is driven by a runtime.
    pub(crate) fn needs_runtime(&self) -> bool {
        match self {
            #[cfg(feature = "memory")]
            Store::Memory(_) => false,
            #[cfg(feature = "sqlite")]
            Store::Sqlite(_) => false,
            #[cfg(feature = "redis")]
            Store::Redis(_) => true,
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(_) => true,
        }
    }

    /// Where a name's place is, of a store whose names are spread over several servers.
    pub(crate) fn places(&self) -> Option<fn(&Name) -> Place> {
        match self {
            #[cfg(feature = "redis")]
            Store::Redis(options) => fencelock_redis::places(options),
            #[allow(unreachable_patterns)]
            _ => None,
        }
    }

    /// Opens it for a client. `runtime` is there for a store that needs one.
    pub(crate) fn open(self, shared: &Arc<Shared>, runtime: Option<&Handle>) -> Result<()> {
        let (id, sink) = (shared.id.clone(), shared.sink());
        let transport: Arc<dyn Transport> = match self {
            #[cfg(feature = "memory")]
            Store::Memory(options) => fencelock_memory::open(options, id, sink)?,
            #[cfg(feature = "sqlite")]
            Store::Sqlite(options) => fencelock_sqlite::open(options, id, sink)?,
            #[cfg(feature = "redis")]
            Store::Redis(options) => {
                let Some(runtime) = runtime else {
                    return Err(no_runtime());
                };
                fencelock_redis::open(*options, id, sink, runtime)?
            }
            #[cfg(feature = "zookeeper")]
            Store::ZooKeeper(options) => {
                let Some(runtime) = runtime else {
                    return Err(no_runtime());
                };
                fencelock_zookeeper::open(*options, id, sink, runtime)?
            }
        };
        let _ = runtime;
        shared.connect(transport);
        Ok(())
    }
}
