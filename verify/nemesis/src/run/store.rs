//! The store of a run, and what can be done to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use fencelock::blocking::Client;
use fencelock_testkit::{Proxy, RedisServer, ZooKeeper};

use crate::history::{History, LIMIT};
use crate::run::Kind;
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

    /// A way to the store for one actor: through a proxy, where there is a server.
    ///
    /// # Errors
    /// When no proxy can be started.
    pub fn way(&self) -> io::Result<(Option<Proxy>, String)> {
        let options = format!("lease={}ms&{OPTIONS}", LEASE.as_millis());
        let (scheme, proxy) = match &self.home {
            Home::File(path) => {
                return Ok((None, format!("sqlite:{}?{options}", path.display())));
            }
            Home::Redis(server) => ("redis", Proxy::start(&server.address())?),
            Home::ZooKeeper(servers) => ("zk", Proxy::start(&servers.address(0))?),
        };
        let url = format!("{scheme}://{}?{options}", proxy.address());
        Ok((Some(proxy), url))
    }

    /// The store's URL, without what is between it and the actors.
    pub fn url(&self) -> String {
        match &self.home {
            Home::File(path) => format!("sqlite:{}", path.display()),
            Home::Redis(server) => server.url(),
            Home::ZooKeeper(servers) => servers.url(),
        }
    }

    /// Stops the server (SIGSTOP), where there is one.
    pub(crate) fn stop(&self) -> io::Result<()> {
        match &self.home {
            Home::File(_) => Ok(()),
            Home::Redis(server) => server.stop(),
            Home::ZooKeeper(servers) => servers.stop(0),
        }
    }

    /// Lets a stopped one go on.
    pub(crate) fn cont(&self) -> io::Result<()> {
        match &self.home {
            Home::File(_) => Ok(()),
            Home::Redis(server) => server.cont(),
            Home::ZooKeeper(servers) => servers.cont(0),
        }
    }

    /// Kills the server. One of Redis has lost what it knew; one of ZooKeeper has it still.
    ///
    /// # Errors
    /// When it is not running.
    pub fn kill(&mut self) -> io::Result<()> {
        match &mut self.home {
            Home::File(_) => Ok(()),
            Home::Redis(_) => self.forget(RedisServer::kill),
            Home::ZooKeeper(servers) => servers.kill(0),
        }
    }

    /// Starts a killed one, and waits until it serves.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn restart(&mut self) -> io::Result<()> {
        match &mut self.home {
            Home::File(_) => Ok(()),
            Home::Redis(server) => server.restart(),
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
                let waiter = info.waiters.iter().find(|it| living.contains(&it.client));
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
