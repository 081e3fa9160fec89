//! A library, connected, and what it calls a lock.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fencelock::{Client, Guard, Lock};
use redis::aio::MultiplexedConnection;
use rslock::{LockGuard, LockManager};

use crate::machine::locked_version;
use crate::{Result, bare};

/// The lease of those that want one from their user.
const LEASE: Duration = Duration::from_secs(30);
/// How often one that has nothing better asks again.
const AGAIN: Duration = Duration::from_millis(1);

/// A library, connected.
pub(super) struct Library {
    kind: Kind,
    /// Beside the lock, for what it protects; nothing where that would be on several servers.
    wire: Option<MultiplexedConnection>,
}

enum Kind {
    Fencelock(Client),
    Rslock(LockManager),
    Bare,
}

/// A lock of it.
#[derive(Clone)]
pub(super) enum Key {
    Fencelock(Lock),
    Rslock(LockManager, String, Duration),
    Bare(MultiplexedConnection, String, Duration),
}

/// A lock that is held.
pub(super) enum Held {
    Fencelock(Guard),
    Rslock(LockGuard),
    Bare(MultiplexedConnection, String),
}

impl Library {
    pub async fn connect(name: &str, url: &str) -> Result<Library> {
        let one = !url.contains("+quorum://");
        let wire = if one { Some(bare::multiplexed(url).await?) } else { None };
        let kind = match name {
            "fencelock" => Kind::Fencelock(Client::connect(url).await?),
            // Every grant is the server's.
            "fencelock-no-handoff" => {
                Kind::Fencelock(Client::builder(url).local_run(0, Duration::ZERO).connect().await?)
            }
            "rslock" => Kind::Rslock(LockManager::new(vec![url])),
            "redis" => Kind::Bare,
            _ => return Err(format!("no library: {name}").into()),
        };
        Ok(Library { kind, wire })
    }

    pub fn version(&self) -> &str {
        match self.kind {
            Kind::Fencelock(_) => env!("CARGO_PKG_VERSION"),
            Kind::Rslock(_) => locked_version("rslock"),
            Kind::Bare => locked_version("redis"),
        }
    }

    /// A connection to the server beside the lock.
    pub fn wire(&self) -> Result<MultiplexedConnection> {
        self.wire.clone().ok_or_else(|| "what is protected is on one server".into())
    }

    /// Whether it has no lock, but only what the server does at once.
    pub fn is_bare(&self) -> bool {
        matches!(self.kind, Kind::Bare)
    }

    pub fn key(&self, name: &str) -> Result<Key> {
        Ok(match &self.kind {
            Kind::Fencelock(client) => Key::Fencelock(client.lock(name)?),
            Kind::Rslock(manager) => Key::Rslock(manager.clone(), name.to_owned(), LEASE),
            Kind::Bare => Key::Bare(self.wire()?, name.to_owned(), LEASE),
        })
    }

    /// The sides of a read-write lock, the readers' first; `None` where that is not offered.
    pub fn sides(&self, name: &str) -> Result<Option<(Key, Key)>> {
        let Kind::Fencelock(client) = &self.kind else { return Ok(None) };
        let lock = client.rw_lock(name)?;
        Ok(Some((Key::Fencelock(lock.reader()), Key::Fencelock(lock.writer()))))
    }

    /// One of so many permits; `None` where that is not offered.
    pub fn permit(&self, name: &str, of: u32) -> Result<Option<Key>> {
        let Kind::Fencelock(client) = &self.kind else { return Ok(None) };
        Ok(Some(Key::Fencelock(client.semaphore(name, of)?.taking(1))))
    }

    /// Enters a lock that is held, again and again, while `held` locks are; `None` where that is not
    /// offered.
    pub async fn reenter(
        &self,
        name: &str,
        held: usize,
        span: Duration,
    ) -> Result<Option<(u64, Duration)>> {
        let Kind::Fencelock(client) = &self.kind else { return Ok(None) };
        let lock = client.lock(name)?;
        let mut holds = vec![lock.acquire().await?];
        for at in 1..held {
            holds.push(client.lock(format!("{name}-{at}"))?.acquire().await?);
        }
        let (start, mut count) = (Instant::now(), 0);
        while start.elapsed() < span {
            for _ in 0..100 {
                drop(black_box(lock.acquire().await?));
            }
            count += 100;
        }
        let took = start.elapsed();
        for hold in holds {
            hold.release().await?;
        }
        Ok(Some((count, took)))
    }
}

impl Key {
    /// The same lock with another lease.
    pub fn lease(self, lease: Option<Duration>) -> Key {
        let Some(lease) = lease else { return self };
        match self {
            Key::Fencelock(lock) => Key::Fencelock(lock.lease(lease)),
            Key::Rslock(manager, name, _) => Key::Rslock(manager, name, lease),
            Key::Bare(wire, name, _) => Key::Bare(wire, name, lease),
        }
    }

    pub async fn acquire(&self) -> Result<Held> {
        Ok(match self {
            Key::Fencelock(lock) => Held::Fencelock(lock.acquire().await?),
            Key::Rslock(manager, name, lease) => {
                Held::Rslock(manager.acquire(name.as_str(), *lease).await?)
            }
            Key::Bare(wire, name, lease) => {
                let mut wire = wire.clone();
                let mut set = redis::cmd("SET");
                set.arg(name).arg("x").arg("NX").arg("PX").arg(lease.as_millis() as u64);
                while set.query_async::<Option<String>>(&mut wire).await?.is_none() {
                    tokio::time::sleep(AGAIN).await;
                }
                Held::Bare(wire, name.clone())
            }
        })
    }
}

impl Held {
    pub async fn release(self) -> Result<()> {
        match self {
            Held::Fencelock(guard) => guard.release().await?,
            Held::Rslock(guard) => guard.release().await,
            Held::Bare(mut wire, name) => {
                redis::cmd("DEL").arg(name).exec_async(&mut wire).await?;
            }
        }
        Ok(())
    }
}
