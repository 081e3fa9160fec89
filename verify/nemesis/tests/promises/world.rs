//! A store that nobody else uses, its actors and their history.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fencelock::LockInfo;
use fencelock::blocking::Client;
use fencelock_nemesis::{Actor, History};
use fencelock_testkit::{Proxy, RedisServer, eventually, skip_servers};
use tempfile::TempDir;

/// Makes a test of each case on each store: `fn case(&mut World)`.
macro_rules! on_each_store {
    ($($case:ident,)*) => {
        mod sqlite { $(
            #[test]
            fn $case() { super::$case(&mut crate::world::World::sqlite()) }
        )* }
        mod redis { $(
            #[test]
            fn $case() {
                if let Some(mut world) = crate::world::World::redis() {
                    super::$case(&mut world)
                }
            }
        )* }
    };
}

/// Makes a test of each case on Redis alone.
macro_rules! on_redis {
    ($($case:ident,)*) => {
        mod only_redis { $(
            #[test]
            fn $case() {
                if let Some(mut world) = crate::world::World::redis() {
                    super::$case(&mut world)
                }
            }
        )* }
    };
}

pub(crate) use {on_each_store, on_redis};

/// The lock that a case is about.
pub const LOCK: &str = "shared";

/// Client options that let a test end soon. Half a second is what a busy machine needs.
pub const QUICK: &str = "lease=1500ms&claim=600ms&request_timeout=500ms";

pub struct World {
    pub server: Option<RedisServer>,
    pub history: History,
    memory: bool,
    folder: TempDir,
    names: AtomicU32,
}

impl World {
    /// For cases within one process.
    pub fn memory() -> World {
        let mut world = World::sqlite();
        world.memory = true;
        world
    }

    pub fn sqlite() -> World {
        World {
            server: None,
            history: History::watched(),
            memory: false,
            folder: tempfile::tempdir().unwrap(),
            names: AtomicU32::new(0),
        }
    }

    /// `None` when servers are left out.
    pub fn redis() -> Option<World> {
        if skip_servers() {
            return None;
        }
        let mut world = World::sqlite();
        world.server = Some(RedisServer::start().unwrap());
        Some(world)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn url(&self, options: &str) -> String {
        match &self.server {
            Some(server) => format!("{}?{options}", server.url()),
            None if self.memory => format!("memory:{}?{options}", self.file("").display()),
            None => format!("sqlite:{}?{options}", self.file("locks.db").display()),
        }
    }

    pub fn server(&mut self) -> &mut RedisServer {
        self.server.as_mut().unwrap()
    }

    /// A proxy before the server, and the URL of its way.
    pub fn proxy(&self, options: &str) -> (Proxy, String) {
        let proxy = Proxy::start(&self.server.as_ref().unwrap().address()).unwrap();
        let url = format!("redis://{}?{options}", proxy.address());
        (proxy, url)
    }

    /// An actor with one client, `c`.
    pub fn actor(&self, url: &str) -> Actor {
        let name = format!("a{}", self.names.fetch_add(1, Ordering::SeqCst));
        let mut actor = Actor::start(&self.history, &name);
        actor.ask(&format!("open c {url}"), "opened", "c");
        actor
    }

    /// A client of the test's own. The file may be busy for a while when others close it.
    pub fn client(&self, options: &str) -> Client {
        eventually("a connection", || Client::connect(self.url(options)).ok())
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
        let info = client.inspect(lock).unwrap();
        let empty = info.is_none_or(|it| it.holds.is_empty() && it.waiters.is_empty());
        empty.then_some(())
    });
}

/// Sleeps: for what must be shown not to happen.
pub fn pass(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

impl Drop for World {
    /// Keeps the history of a test that fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let name =
                format!("nemesis-{}-{}.history", std::process::id(), fencelock_nemesis::boot());
            let path = std::env::temp_dir().join(name);
            match self.history.save(&path) {
                Ok(()) => eprintln!("the history is in {}", path.display()),
                Err(error) => eprintln!("the history cannot be written: {error}"),
            }
            if let Ok(client) = Client::connect(self.url("")) {
                eprintln!("the store has {:#?}", client.inspect(LOCK));
            }
        }
    }
}
