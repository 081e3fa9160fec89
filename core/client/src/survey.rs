//! What an operator should know of a store's servers.

use fencelock_engine::finding::Finding;

use crate::Result;
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
        Kind::Redis => {
            let mut redis = fencelock_redis::Options::from_url(&url.text)?;
            redis.connect_timeout = options.connect_timeout.unwrap_or(redis.connect_timeout);
            redis.check()?;
            Ok(fencelock_redis::survey(redis).await?.findings())
        }
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
