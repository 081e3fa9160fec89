//! The store of a run, and what can be done to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use fencelock::WaiterInfo;
use fencelock::blocking::Client;
use fencelock_testkit::{Proxy, RedisServer, ZooKeeper, eventually};

use crate::history::{History, LIMIT};
use crate::run::Kind;
use crate::run::several::Several;
use crate::run::want::Want;
use crate::shim::{Shim, WrongClock};

/// The lease of every client, so that it notices soon what is wrong.
pub const LEASE: Duration = Duration::from_millis(1500);
/// What else it is opened with.
const OPTIONS: &str = "claim=600ms&request_timeout=400ms&connect_timeout=30s";

/// Where the locks are.
enum Home {
    File(PathBuf),
    Redis(Box<RedisServer>),
    Several(Box<Several>),
    ZooKeeper(Box<ZooKeeper>),
}

/// The store of a run, with servers of its own.
pub struct Store {
    home: Home,
    pub(crate) clock: Option<WrongClock>,
    pub(crate) shim: Shim,
    history: History,
    /// How far the server's clock is ahead, in milliseconds.
    ahead: i64,
}

impl Store {
    /// Starts the store; its files lie in `folder`.
    ///
    /// # Errors
    /// When its server, or the C compiler for the clocks, is missing or fails.
    pub fn start(kind: Kind, folder: &Path, history: &History) -> io::Result<Store> {
        let shim = Shim::build(folder)?;
        let mut clock = None;
        let home = match kind {
            Kind::Sentinel => Home::Several(Box::new(Several::behind_sentinels()?)),
            Kind::Cluster => Home::Several(Box::new(Several::in_a_cluster()?)),
            Kind::Sqlite => Home::File(folder.join("locks.db")),
            Kind::ZooKeeper => Home::ZooKeeper(Box::new(ZooKeeper::start()?)),
            Kind::Redis => {
                let wrong = WrongClock::new(&shim, &folder.join("server-clock"))?;
                let environment = wrong.environment();
                let builder = environment
                    .iter()
                    .fold(RedisServer::builder(), |builder, (key, value)| builder.env(key, value));
                clock = Some(wrong);
                Home::Redis(Box::new(builder.start()?))
            }
        };
        Ok(Store { home, clock, shim, history: history.clone(), ahead: 0 })
    }

    /// A way to the store for one actor: through a proxy before each server.
    ///
    /// # Errors
    /// When no proxy can be started.
    pub fn way(&self) -> io::Result<(Vec<Proxy>, String)> {
        let options = format!("lease={}ms&{OPTIONS}", LEASE.as_millis());
        let (scheme, proxy) = match &self.home {
            Home::File(path) => {
                return Ok((Vec::new(), format!("sqlite:{}?{options}", path.display())));
            }
            Home::Several(servers) => {
                let (ways, url) = servers.way()?;
                return Ok((ways, format!("{url}&{options}")));
            }
            Home::Redis(server) => ("redis", Proxy::start(&server.address())?),
            Home::ZooKeeper(servers) => ("zk", Proxy::start(&servers.address(0))?),
        };
        let url = format!("{scheme}://{}?{options}", proxy.address());
        Ok((vec![proxy], url))
    }

    /// The store's URL, without what is between it and the actors.
    pub fn url(&self) -> String {
        match &self.home {
            Home::File(path) => format!("sqlite:{}", path.display()),
            Home::Redis(server) => server.url(),
            Home::Several(servers) => servers.url(),
            Home::ZooKeeper(servers) => servers.url(),
        }
    }

    /// Its servers, where one takes over from another.
    pub(crate) fn several(&mut self) -> Option<&mut Several> {
        match &mut self.home {
            Home::Several(servers) => Some(servers),
            _ => None,
        }
    }

    fn is_several(&self) -> bool {
        matches!(self.home, Home::Several(_))
    }

    /// Says that from here on the store may forget, or that it has come to rest.
    pub(crate) fn forgetting(&self, over: bool) {
        self.history.note(if over { "forgot" } else { "forgetting" }, "store", &[]);
    }

    /// Stops the server (SIGSTOP), where there is one.
    pub(crate) fn stop(&self) -> io::Result<()> {
        match &self.home {
            Home::File(_) | Home::Several(_) => Ok(()),
            Home::Redis(server) => server.stop(),
            Home::ZooKeeper(servers) => servers.stop(0),
        }
    }

    /// Lets a stopped one go on.
    pub(crate) fn cont(&self) -> io::Result<()> {
        match &self.home {
            Home::File(_) | Home::Several(_) => Ok(()),
            Home::Redis(server) => server.cont(),
            Home::ZooKeeper(servers) => servers.cont(0),
        }
    }

    /// Kills the server, or a master. One of Redis has lost what it knew; one of ZooKeeper has it still.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill(&mut self) -> io::Result<()> {
        match &mut self.home {
            Home::File(_) => Ok(()),
            Home::Redis(_) => self.forget(RedisServer::kill),
            Home::Several(servers) => {
                self.history.note("forgetting", "store", &[]);
                let master = servers.master_of("stock").unwrap_or(0);
                servers.server(master).kill()
            }
            Home::ZooKeeper(servers) => servers.kill(0),
        }
    }

    /// Starts a killed one, and waits until it serves; of several, until all are back.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self) -> io::Result<()> {
        match &mut self.home {
            Home::File(_) => Ok(()),
            Home::Redis(server) => server.restart(),
            Home::Several(servers) => {
                // Another takes over first.
                let dead = servers.servers().iter().position(|it| !it.answers());
                let Some(dead) = dead else { return Ok(()) };
                eventually("another master", || {
                    servers.master_of("stock").filter(|it| *it != dead)
                });
                servers.server(dead).restart()?;
                eventually("all servers are back", || servers.is_whole().then_some(()));
                self.history.note("forgot", "store", &[]);
                Ok(())
            }
            Home::ZooKeeper(servers) => servers.restart(0),
        }
    }

    /// Does what makes the store forget.
    pub(crate) fn forget(
        &mut self,
        how: impl FnOnce(&mut RedisServer) -> io::Result<()>,
    ) -> io::Result<()> {
        let Home::Redis(server) = &mut self.home else { return Ok(()) };
        self.history.note("forgetting", "store", &[]);
        how(server)?;
        self.history.note("forgot", "store", &[]);
        Ok(())
    }

    /// Runs a command; one that the server refuses is no failure of the run.
    pub(crate) fn command(&self, words: &[&str]) {
        if let Home::Redis(server) = &self.home {
            let _ = server.cli(words);
        }
    }

    /// Sets the server's clock forward or back.
    pub(crate) fn step(&mut self, millis: i64) -> io::Result<()> {
        let Some(clock) = &self.clock else { return Ok(()) };
        self.ahead += millis;
        let fields: &[(&str, &dyn std::fmt::Display)] = &[("ms", &millis)];
        match millis > 0 {
            true => self.history.note("leaping", "store", fields),
            false => self.history.note("setting-back", "store", fields),
        }
        clock.shift(self.ahead)?;
        if millis > 0 {
            self.history.note("leapt", "store", fields);
        }
        Ok(())
    }

    /// A transaction that somebody else has open on the file, until it is dropped. `None` when
    /// another has one: it may be of a process that is stopped, which only we can let go on.
    pub(crate) fn busy(&self) -> io::Result<Option<rusqlite::Connection>> {
        let Home::File(path) = &self.home else { return Ok(None) };
        let connection = rusqlite::Connection::open(path).map_err(io::Error::other)?;
        connection.busy_timeout(Duration::from_millis(20)).map_err(io::Error::other)?;
        match connection.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => Ok(Some(connection)),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                Ok(None)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// What is left although nobody wants anything any more.
    pub(crate) fn residue(&self, wants: &[Want], living: &BTreeSet<String>) -> Option<String> {
        let url = self.url();
        let look = || -> Result<Option<String>, fencelock::Error> {
            let client = Client::connect(&url)?;
            for want in wants.iter().copied() {
                let (Want::Lock(lock) | Want::ReadWrite(lock) | Want::Semaphore(lock, _)) = want;
                let Some(info) = client.inspect(lock)? else { continue };
                // Those of the dead stay until they are passed over.
                let hold = info.holds.iter().find(|it| living.contains(&it.client));
                // One that left at a master which was replaced meanwhile stands there until it is passed over.
                let stands = |it: &&WaiterInfo| !(it.silent && self.is_several());
                let mut waiters = info.waiters.iter().filter(stands);
                let waiter = waiters.find(|it| living.contains(&it.client));
                if hold.is_some() || waiter.is_some() {
                    return Ok(Some(format!("residue at {lock}: {hold:?} {waiter:?}")));
                }
                // Nothing is missing, either.
                let whole = match want {
                    Want::Semaphore(_, of) => client.semaphore(lock, of)?.taking(of),
                    _ => client.lock(lock)?,
                };
                whole.acquire_timeout(LIMIT)?.release()?;
            }
            Ok(None)
        };
        let end = Instant::now() + LIMIT;
        loop {
            let found = look().unwrap_or_else(|error| Some(format!("residue: {error}")));
            if found.is_none() || Instant::now() > end {
                return found;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
