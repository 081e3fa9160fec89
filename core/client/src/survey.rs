//! What an operator should know of a store's servers.

use fencelock_engine::finding::Finding;

use crate::Result;
#[cfg(feature = "redis")]
use crate::url::ClientOptions;
#[cfg(any(feature = "redis", feature = "zookeeper"))]
use crate::url::Kind;
use crate::url::StoreUrl;

/// Asks the servers of a store what they are like, as `fencelock doctor` shows it: findings, what they
/// mean for locks, and what to do. It leaves nothing behind. A store without servers, such as a
/// SQLite file, has none to tell.
///
/// # Errors
/// `InvalidArgument` for a URL that cannot be read; `Unavailable` and `Misconfigured` when no server
/// could be asked.
pub async fn survey(url: impl AsRef<str>) -> Result<Vec<Finding>> {
    let (url, options) = StoreUrl::split(url.as_ref())?;
    match url.kind {
        #[cfg(feature = "redis")]
        Kind::Redis => fencelock_redis::findings(redis(&url, &options)?).await,
        #[cfg(feature = "zookeeper")]
        Kind::ZooKeeper => {
            let mut zookeeper = fencelock_zookeeper::Options::from_url(&url.text)?;
            // The session is the lease.
            zookeeper.session_timeout = options.lease.unwrap_or(zookeeper.session_timeout);
            let limit = options.connect_timeout;
            zookeeper.connect_timeout = limit.unwrap_or(zookeeper.connect_timeout);
            Ok(fencelock_zookeeper::survey(zookeeper).await?.findings())
        }
        _ => {
            let _ = options;
            Ok(Vec::new())
        }
    }
}

#[cfg(feature = "redis")]
fn redis(url: &StoreUrl, options: &ClientOptions) -> Result<fencelock_redis::Options> {
    let mut redis = fencelock_redis::Options::from_url(&url.text)?;
    redis.connect_timeout = options.connect_timeout.unwrap_or(redis.connect_timeout);
    redis.check()?;
    Ok(redis)
}

/// Asks each server of a quorum what it is like, as `fencelock quorum status` shows it. It changes nothing.
///
/// # Errors
/// `InvalidArgument` for a URL that cannot be read, or is no `redis+quorum://`. A server that cannot be reached is
/// no error here.
#[cfg(feature = "redis")]
pub async fn quorum_status(url: impl AsRef<str>) -> Result<fencelock_redis::QuorumStatus> {
    let (url, options) = StoreUrl::split(url.as_ref())?;
    fencelock_redis::quorum_status(redis(&url, &options)?).await
}

/// Lets the servers of a quorum vote at once, for the list and the `max_lease` of this URL, as `fencelock quorum
/// init` does; gives what they are like then.
///
/// Where a server has forgotten a vote whose lease goes on, two clients may then hold one lock, told apart by their
/// tokens alone. It is for servers that are new, or while all clients have been stopped for the longest lease.
///
/// # Errors
/// As [`quorum_status`].
#[cfg(feature = "redis")]
pub async fn quorum_init(url: impl AsRef<str>) -> Result<fencelock_redis::QuorumStatus> {
    let (url, options) = StoreUrl::split(url.as_ref())?;
    fencelock_redis::quorum_init(redis(&url, &options)?).await
}
