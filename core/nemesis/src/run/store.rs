//! The store of a run, and what can be done to it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{io, thread};

use fencelock::blocking::Client;
use fencelock_testkit::{Proxy, RedisServer};

use crate::history::{History, LIMIT};
use crate::run::Kind;
use crate::shim::{Shim, WrongClock};

/// The locks that the actors want, besides those of the windows.
pub(crate) const LOCKS: [&str; 3] = ["stock", "report", "invoice"];

/// Clients that notice soon what is wrong.
const OPTIONS: &str = "lease=1500ms&claim=600ms&request_timeout=400ms&connect_timeout=30s";

/// The store of a run.
pub(crate) struct Store {
    pub server: Option<RedisServer>,
    pub clock: Option<WrongClock>,
    pub shim: Shim,
    file: PathBuf,
    history: History,
    /// How far the server's clock is ahead, in milliseconds.
    ahead: i64,
}

impl Store {
    pub fn start(kind: Kind, folder: &Path, history: &History) -> io::Result<Store> {
        let shim = Shim::build(folder)?;
        let (mut server, mut clock) = (None, None);
        if kind == Kind::Redis {
            let wrong = WrongClock::new(&shim, &folder.join("server-clock"))?;
            let environment = wrong.environment();
            let builder = environment
                .iter()
                .fold(RedisServer::builder(), |builder, (key, value)| builder.env(key, value));
            server = Some(builder.start()?);
            clock = Some(wrong);
        }
        let file = folder.join("locks.db");
        Ok(Store { server, clock, shim, file, history: history.clone(), ahead: 0 })
    }

    /// A way to the store for one actor: through a proxy, where there is a server.
    pub fn way(&self) -> io::Result<(Option<Proxy>, String)> {
        match &self.server {
            Some(server) => {
                let proxy = Proxy::start(&server.address())?;
                let url = format!("redis://{}?{OPTIONS}", proxy.address());
                Ok((Some(proxy), url))
            }
            None => Ok((None, format!("sqlite:{}?{OPTIONS}", self.file.display()))),
        }
    }

    /// Does what makes the store forget.
    pub fn forget(
        &mut self,
        how: impl FnOnce(&mut RedisServer) -> io::Result<()>,
    ) -> io::Result<()> {
        let Some(server) = &mut self.server else { return Ok(()) };
        self.history.note("forgetting", "store", &[]);
        how(server)?;
        self.history.note("forgot", "store", &[]);
        Ok(())
    }

    /// Runs a command; one that the server refuses is no failure of the run.
    pub fn command(&self, words: &[&str]) {
        if let Some(server) = &self.server {
            let _ = server.cli(words);
        }
    }

    /// Sets the server's clock forward or back.
    pub fn step(&mut self, millis: i64) -> io::Result<()> {
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
    pub fn busy(&self) -> io::Result<Option<rusqlite::Connection>> {
        let connection = rusqlite::Connection::open(&self.file).map_err(io::Error::other)?;
        connection.busy_timeout(std::time::Duration::from_millis(20)).map_err(io::Error::other)?;
        match connection.execute_batch("BEGIN IMMEDIATE") {
            Ok(()) => Ok(Some(connection)),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
                Ok(None)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    /// What is left although nobody wants anything any more.
    pub fn residue(&self, living: &BTreeSet<String>) -> Option<String> {
        let url = match &self.server {
            Some(server) => server.url(),
            None => format!("sqlite:{}", self.file.display()),
        };
        let look = || -> Result<Option<String>, fencelock::Error> {
            let client = Client::connect(&url)?;
            for lock in LOCKS {
                let Some(info) = client.inspect(lock)? else { continue };
                // Those of the dead stay until they are passed over.
                let hold = info.holds.iter().find(|it| living.contains(&it.client));
                let waiter = info.waiters.iter().find(|it| living.contains(&it.client));
                if hold.is_some() || waiter.is_some() {
                    return Ok(Some(format!("residue at {lock}: {hold:?} {waiter:?}")));
                }
                client.lock(lock)?.acquire_timeout(LIMIT)?.release()?;
            }
            Ok(None)
        };
        let end = Instant::now() + LIMIT;
        loop {
            let found = look().unwrap_or_else(|error| Some(format!("residue: {error}")));
            if found.is_none() || Instant::now() > end {
                return found;
            }
            thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}
