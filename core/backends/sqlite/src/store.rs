//! The data: one connection, and transactions on it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fencelock_engine::reply::{Failure, Reply};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::store::Caller;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension};

use crate::batch::Batch;
use crate::clock::Clock;
use crate::culprit;
use crate::fault::{Fault, is_busy};
use crate::options::{Options, Synchronous};
use crate::schema;

/// How often a busy database is tried at the least, however long that takes.
const ATTEMPTS: u32 = 16;

/// How long the first and the longest pause are between two looks at a locked file. Shorter than
/// SQLite's own, which cost a hand-over milliseconds.
const NAP: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(5));
/// How often it is looked whether the path still leads to the open file.
const CHECK_PATH: Duration = Duration::from_secs(1);

/// What requests came to.
pub(crate) struct Done {
    /// A reply for each, in order.
    pub replies: Vec<(RequestId, Result<Reply, Failure>)>,
    /// The ids of the clients that something was announced to.
    pub told: Vec<String>,
}

/// An open file.
pub(crate) struct Store {
    pub(crate) conn: Connection,
    path: PathBuf,
    file: Option<(u64, u64)>,
    checked: Instant,
    clock: Clock,
    ahead: i64,
    patience: Duration,
    version: i64,
    pub(crate) sweep: crate::sweep::Sweep,
}

impl Store {
    /// Opens the file, makes the tables, and notes this boot. `path` is absolute.
    pub(crate) fn open(
        path: PathBuf,
        options: &Options,
        clock: Clock,
        stop: &AtomicBool,
    ) -> Result<Store, Fault> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&path, flags)?;
        // We wait ourselves: shorter naps, an end when the client closes, and a named culprit.
        conn.busy_timeout(Duration::ZERO)?;
        conn.set_prepared_statement_cache_capacity(64);
        let mut store = Store {
            file: None,
            conn,
            path,
            checked: Instant::now(),
            clock,
            ahead: 0,
            patience: options.busy_timeout,
            version: 0,
            sweep: Default::default(),
        };
        store.prepare(options.synchronous, stop)?;
        // Only now: SQLite makes a new file at its first use.
        store.file = identify(&store.path);
        Ok(store)
    }

    fn prepare(&mut self, synchronous: Synchronous, stop: &AtomicBool) -> Result<(), Fault> {
        let file = self.path.display();
        let mode = self.patiently(stop, |conn| {
            conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
        })?;
        if self.conn.is_readonly(MAIN_DB)? {
            return Err(Fault::Misconfigured(format!(
                "'{file}' cannot be written; make the file and its directory writable for this user"
            )));
        }
        if mode != "wal" {
            return Err(Fault::Misconfigured(format!(
                "'{file}' cannot use write-ahead logging (it stays in mode '{mode}'); put it on a \
                 local file system"
            )));
        }
        self.conn.execute_batch(match synchronous {
            Synchronous::Normal => "PRAGMA synchronous = NORMAL",
            Synchronous::Full => "PRAGMA synchronous = FULL",
        })?;
        if !self.knows_this_boot(stop)? {
            self.begin_writing(stop)?;
            let result = self.note_boot();
            self.end(result)?;
        }
        Ok(())
    }

    /// Whether the tables are there and belong to this boot: then there is nothing to write.
    fn knows_this_boot(&mut self, stop: &AtomicBool) -> Result<bool, Fault> {
        self.begin_reading(stop)?;
        let result = self.read_meta();
        let _ = self.conn.execute_batch("ROLLBACK");
        Ok(matches!(result?, Some(boot) if boot == self.clock.boot()))
    }

    /// Reads the file's own row: `None` when there is none. Gives the boot.
    fn read_meta(&mut self) -> Result<Option<String>, Fault> {
        let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'fencelock_meta'";
        if self.conn.query_row(table, [], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        // Alone, for a newer layout may have no other of our columns.
        let layout = self.conn.query_row("SELECT layout FROM fencelock_meta", [], |row| row.get(0));
        match layout.optional()? {
            Some(layout) => self.check_layout(layout)?,
            None => return Ok(None),
        }
        let (boot, ahead) =
            self.conn.query_row("SELECT boot, ahead FROM fencelock_meta", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        self.ahead = ahead;
        Ok(Some(boot))
    }

    fn check_layout(&self, layout: i64) -> Result<(), Fault> {
        let known = schema::LAYOUT;
        if layout == known {
            return Ok(());
        }
        let advice = if layout > known {
            "newer than that of this version; upgrade this client"
        } else {
            "older than that of this version; delete the file when no program uses it any more"
        };
        Err(Fault::Misconfigured(format!(
            "'{}' has layout {layout}, which is {advice}, or give the path of another file",
            self.path.display()
        )))
    }

    /// Makes the tables, and ends what an earlier boot left.
    fn note_boot(&mut self) -> Result<(), Fault> {
        let known = self.read_meta()?;
        if known.as_deref() == Some(self.clock.boot()) {
            return Ok(());
        }
        self.conn.execute_batch(schema::TABLES)?;
        let highest: i64 = self.conn.query_row(schema::HIGHEST, [], |row| row.get(0))?;
        if known.is_some() {
            self.conn.execute_batch(schema::NEW_BOOT)?;
        }
        self.ahead = self.clock.ahead(highest);
        self.conn.execute(
            "INSERT OR REPLACE INTO fencelock_meta VALUES (1, ?1, ?2, ?3, ?4)",
            (schema::LAYOUT, self.clock.boot(), self.ahead, highest),
        )?;
        Ok(())
    }

    /// The store's time.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.clock.micros().saturating_add(self.ahead)).unwrap_or(0)
    }

    /// Executes requests in one transaction, or none of them.
    pub(crate) fn run(
        &mut self,
        caller: &Caller,
        requests: &[Request],
        stop: &AtomicBool,
    ) -> Result<Done, Fault> {
        self.check_path()?;
        let reads =
            |op: &Op| matches!(op, Op::Inspect(_) | Op::List { .. } | Op::Revoke(_) | Op::Time);
        let writes = requests.iter().any(|request| !reads(&request.op));
        if writes {
            self.begin_writing(stop)?;
        } else {
            self.begin_reading(stop)?;
        }
        let result = self.batch(caller, requests);
        self.end(result)
    }

    fn batch(&mut self, caller: &Caller, requests: &[Request]) -> Result<Done, Fault> {
        self.check_meta()?;
        let now = self.now();
        let mut batch = Batch::new(&self.conn, caller, now, &self.path);
        let mut replies = Vec::with_capacity(requests.len());
        for request in requests {
            let result = batch.execute(&request.op)?;
            let result = result.map(|body| Reply { now, body }).map_err(Failure::Refused);
            replies.push((request.id, result));
        }
        Ok(Done { replies, told: batch.save()? })
    }

    /// Another process may have upgraded the file, or another machine may use it too.
    pub(crate) fn check_meta(&mut self) -> Result<(), Fault> {
        let (layout, ahead, same) = self
            .conn
            .prepare_cached("SELECT layout, ahead, boot = ?1 FROM fencelock_meta")?
            .query_row([self.clock.boot()], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get::<_, bool>(2)?))
            })?;
        self.check_layout(layout)?;
        if !same {
            return Err(Fault::Misconfigured(format!(
                "'{}' is used from another machine or sandbox at the same time; a SQLite store \
                 belongs to one machine: give each its own file, or use a server",
                self.path.display()
            )));
        }
        self.ahead = ahead;
        Ok(())
    }

    /// Whether another connection has written since this was last asked.
    pub(crate) fn changed(&mut self) -> Result<bool, Fault> {
        let version =
            self.conn.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(std::mem::replace(&mut self.version, version) != version)
    }

    /// Lets the next [`changed`](Store::changed) say yes, since what it said was not acted on.
    pub(crate) fn forget_version(&mut self) {
        self.version = 0;
    }

    /// Begins a transaction for reading, waiting within bounds while another connection recovers
    /// the file or closes it as the last one.
    pub(crate) fn begin_reading(&self, stop: &AtomicBool) -> Result<(), Fault> {
        self.patiently(stop, |conn| {
            conn.prepare_cached("BEGIN")?.execute([])?;
            // A deferred transaction only begins with its first read.
            let read = conn
                .prepare_cached("SELECT 1 FROM sqlite_schema LIMIT 1")?
                .query_row([], |_| Ok(()))
                .optional();
            if read.is_err() {
                let _ = conn.execute_batch("ROLLBACK");
            }
            read.map(drop)
        })
    }

    /// Begins a transaction for writing, waiting for other writers within bounds. Never one that
    /// reads first: that fails at once when another has written meanwhile.
    pub(crate) fn begin_writing(&self, stop: &AtomicBool) -> Result<(), Fault> {
        self.patiently(stop, |conn| conn.prepare_cached("BEGIN IMMEDIATE")?.execute([]).map(drop))
    }

    /// Commits what went well, rolls back what did not.
    pub(crate) fn end<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        let result = result.and_then(|value| {
            let committed = self.conn.prepare_cached("COMMIT").and_then(|mut c| c.execute([]));
            match committed {
                Ok(_) => Ok(value),
                Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) => {
                    Err(Fault::Sql(error))
                }
                Err(error) => Err(Fault::Doubtful(error)),
            }
        });
        if result.is_err() && !self.conn.is_autocommit() {
            // If even this fails, closing the connection rolls back.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        result
    }

    fn patiently<T>(
        &self,
        stop: &AtomicBool,
        attempt: impl Fn(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Fault> {
        let since = Instant::now();
        let mut nap = NAP.0;
        let mut attempts = 0;
        loop {
            attempts += 1;
            match attempt(&self.conn) {
                Err(error) if is_busy(&error) => {}
                result => return Ok(result?),
            }
            if stop.load(Ordering::Acquire) {
                return Err(Fault::Closing);
            }
            // A machine that stood still has waited for nothing yet.
            if since.elapsed() >= self.patience && attempts >= ATTEMPTS {
                return Err(Fault::Busy(culprit::name_writer(&self.path)));
            }
            // Not in step with the others who wait.
            let odd = u64::from(since.elapsed().subsec_nanos()) % 64;
            thread::sleep(nap + nap * odd as u32 / 64);
            nap = (nap * 2).min(NAP.1);
        }
    }

    /// SQLite goes on with a file that was deleted, alone.
    fn check_path(&mut self) -> Result<(), Fault> {
        if self.checked.elapsed() < CHECK_PATH {
            return Ok(());
        }
        self.checked = Instant::now();
        if self.file.is_some() && identify(&self.path) != self.file {
            return Err(Fault::Replaced);
        }
        Ok(())
    }
}

#[cfg(unix)]
fn identify(path: &std::path::Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identify(_path: &std::path::Path) -> Option<(u64, u64)> {
    None
}
