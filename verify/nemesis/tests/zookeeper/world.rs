//! An ensemble that nobody else uses, its actors and their history.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use fencelock::LockInfo;
use fencelock::blocking::Client;
use fencelock_nemesis::{Actor, History};
use fencelock_testkit::{ZooKeeper, ZooKeeperBuilder, eventually, skip_servers};
use tempfile::TempDir;

/// The lock that a case is about: as with Curator, a path.
pub const LOCK: &str = "distributed/shared";

/// For sessions that are to end soon.
pub const QUICK: &str = "lease=2s&request_timeout=1s&connect_timeout=30s";
/// For sessions that are to outlive what is done to the servers on a busy machine.
pub const PATIENT: &str = "lease=25s&request_timeout=25s&connect_timeout=30s";

pub struct World {
    pub servers: ZooKeeper,
    pub history: History,
    folder: TempDir,
    names: AtomicU32,
}

impl World {
    /// `None` when servers are left out.
    pub fn new(servers: usize) -> Option<World> {
        if skip_servers() {
            return None;
        }
        Some(World::of(ZooKeeper::builder().servers(servers)))
    }

    pub fn of(builder: ZooKeeperBuilder) -> World {
        World {
            servers: builder.start().unwrap(),
            history: History::watched(),
            folder: tempfile::tempdir().unwrap(),
            names: AtomicU32::new(0),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn url(&self, options: &str) -> String {
        format!("{}?{options}", self.servers.url())
    }

    /// The way to some of the servers only.
    pub fn url_of(&self, some: &[usize], options: &str) -> String {
        let addresses: Vec<String> = some.iter().map(|&at| self.servers.address(at)).collect();
        format!("zk://{}?{options}", addresses.join(","))
    }

    /// An actor with one client, `c`.
    pub fn actor(&self, url: &str) -> Actor {
        self.actor_behind(&[], url)
    }

    /// An actor elsewhere: behind the words of `prefix`.
    pub fn actor_behind(&self, prefix: &[String], url: &str) -> Actor {
        let name = format!("a{}", self.names.fetch_add(1, Ordering::SeqCst));
        let mut actor = Actor::start_behind(&self.history, &name, prefix);
        actor.ask(&format!("open c {url}"), "opened", "c");
        actor
    }

    /// A client of the test's own.
    pub fn client(&self) -> Client {
        eventually("a connection", || Client::connect(self.url(PATIENT)).ok())
    }
}

/// Waits until the store shows a lock as `wanted` says.
pub fn shows<T>(client: &Client, what: &str, wanted: impl Fn(&LockInfo) -> Option<T>) -> T {
    eventually(what, || client.inspect(LOCK).ok().flatten().as_ref().and_then(&wanted))
}

/// Waits until so many wait for the lock.
pub fn queued(client: &Client, count: usize) {
    shows(client, "waiters", |info| (info.waiters.len() == count).then_some(()));
}

/// Waits until the lock has neither holds nor waiters.
pub fn nothing_left(client: &Client, lock: &str) {
    eventually("an empty lock", || {
        let info = client.inspect(lock).ok()?;
        let empty = info.is_none_or(|it| it.holds.is_empty() && it.waiters.is_empty());
        empty.then_some(())
    });
}

impl Drop for World {
    /// Keeps the history of a test that fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let name =
                format!("nemesis-zk-{}-{}.history", std::process::id(), fencelock_nemesis::boot());
            let path = std::env::temp_dir().join(name);
            match self.history.save(&path) {
                Ok(()) => eprintln!("the history is in {}", path.display()),
                Err(error) => eprintln!("the history cannot be written: {error}"),
            }
            for at in 0..self.servers.count() {
                eprintln!("server {at} is {:?}", self.servers.role(at));
            }
        }
    }
}
