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
use crate::clock::{Clock, wall};
use crate::culprit;
use crate::fault::{Fault, is_busy};
use crate::file;
use crate::news::{self, News};
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

/// By how much the store's time may come to differ from the wall clock, other than it is noted, in
/// microseconds: when the wall clock is set by more, it is noted anew. Another boot waits for so much longer.
pub(crate) const SKEW_SLACK: u64 = 100_000;

/// The boot that a file was last used in.
struct Noted {
    boot: String,
    /// The store's time minus the wall clock, as of the latest writing.
    skew: i64,
}

/// An open file.
pub(crate) struct Store {
    pub(crate) conn: Connection,
    pub(crate) path: PathBuf,
    file: Option<(u64, u64)>,
    checked: Instant,
    clock: Clock,
    ahead: i64,
    /// The store's time minus the wall clock, as the file has it.
    skew: i64,
    /// No token of a lock that was forgotten lies above.
    pub(crate) floor: u64,
    patience: Duration,
    version: i64,
    /// Pages were given back, and are in the file still.
    pub(crate) uncut: bool,
}

impl Store {
    /// Opens the file, makes the tables, and notes this boot. `path` is absolute.
    pub(crate) fn open(
        path: PathBuf,
        options: &Options,
        clock: Clock,
        stop: &AtomicBool,
    ) -> Result<Store, Fault> {
        // What goes wrong here SQLite finds as well, and it is told better from there.
        let _ = file::make(&path, options.file_mode);
        // Not SQLITE_OPEN_CREATE: SQLite would let everybody read what it makes.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
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
            skew: 0,
            floor: 0,
            patience: options.busy_timeout,
            version: 0,
            uncut: false,
        };
        store.prepare(options.synchronous, stop)?;
        store.file = file::identify(&store.path);
        Ok(store)
    }

    fn prepare(&mut self, synchronous: Synchronous, stop: &AtomicBool) -> Result<(), Fault> {
        let file = self.path.display();
        let mode = self.patiently(stop, |conn| {
            // Only where nobody has anything in it yet: a file of the user's own keeps its setting.
            if conn.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))? == 0 {
                conn.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
            }
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
        // The log is cut back to this when it has grown beyond it.
        self.conn.query_row("PRAGMA journal_size_limit = 4194304", [], |_| Ok(()))?;
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
        let result = match self.layout() {
            Ok(Some(schema::BEFORE)) => Ok(None),
            Ok(_) => self.read_meta(),
            Err(fault) => Err(fault),
        };
        let _ = self.conn.execute_batch("ROLLBACK");
        Ok(result?.is_some_and(|noted| noted.boot == self.clock.boot()))
    }

    /// The layout of the file; `None` when it has no tables yet.
    fn layout(&self) -> Result<Option<i64>, Fault> {
        let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'fencelock_meta'";
        if self.conn.query_row(table, [], |_| Ok(())).optional()?.is_none() {
            return Ok(None);
        }
        // Alone, for a newer layout may have no other of our columns.
        let layout = self.conn.query_row("SELECT layout FROM fencelock_meta", [], |row| row.get(0));
        Ok(layout.optional()?)
    }

    /// Reads the file's own row: `None` when there is none.
    fn read_meta(&mut self) -> Result<Option<Noted>, Fault> {
        match self.layout()? {
            Some(layout) => self.check_layout(layout)?,
            None => return Ok(None),
        }
        let (noted, ahead) =
            self.conn.query_row("SELECT boot, skew, ahead FROM fencelock_meta", [], |row| {
                Ok((Noted { boot: row.get(0)?, skew: row.get(1)? }, row.get(2)?))
            })?;
        self.ahead = ahead;
        Ok(Some(noted))
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

    /// Makes the tables, or what they lack of them, and ends what an earlier boot left.
    fn note_boot(&mut self) -> Result<(), Fault> {
        if self.layout()? == Some(schema::BEFORE) {
            self.conn.execute_batch(schema::UPGRADE)?;
        }
        let noted = self.read_meta()?;
        if noted.as_ref().is_some_and(|noted| noted.boot == self.clock.boot()) {
            return Ok(());
        }
        if let Some(noted) = &noted {
            self.check_over(noted)?;
        }
        self.conn.execute_batch(schema::TABLES)?;
        let highest: i64 = self.conn.query_row(schema::HIGHEST, [], |row| row.get(0))?;
        if noted.is_some() {
            self.conn.execute_batch(schema::NEW_BOOT)?;
        }
        self.ahead = self.clock.ahead(highest);
        let skew = self.present_skew();
        self.conn.execute(
            "INSERT OR REPLACE INTO fencelock_meta VALUES (1, ?1, ?2, ?3, ?4, ?5)",
            (schema::LAYOUT, self.clock.boot(), self.ahead, skew, highest),
        )?;
        Ok(())
    }

    /// The store's time minus the wall clock.
    fn present_skew(&self) -> i64 {
        self.clock.micros().saturating_add(self.ahead).saturating_sub(wall())
    }

    /// Notes it anew when the wall clock was set: by it another boot tells when our holds are over.
    /// Within a transaction that writes and has read the row.
    fn note_skew(&mut self) -> Result<(), Fault> {
        let skew = self.present_skew();
        if skew.abs_diff(self.skew) > SKEW_SLACK {
            self.conn.prepare_cached("UPDATE fencelock_meta SET skew = ?1")?.execute([skew])?;
            self.skew = skew;
        }
        Ok(())
    }

    /// Refuses while a hold of another boot may be live. After a restart none is; but another
    /// machine that shares the file has another boot id, too, and there they are.
    fn check_over(&self, noted: &Noted) -> Result<(), Fault> {
        let end: Option<i64> = self.conn.query_row(schema::LAST_END, [], |row| row.get(0))?;
        let Some(end) = end else { return Ok(()) };
        // What was noted may be off by so much.
        let slack = i64::try_from(SKEW_SLACK).unwrap_or(i64::MAX);
        let left = end.saturating_sub(noted.skew).saturating_sub(wall()).saturating_add(slack);
        match u64::try_from(left) {
            Ok(left) if left > 0 => Err(Fault::OtherBoot(Duration::from_micros(left))),
            _ => Ok(()),
        }
    }

    /// The store's time.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.clock.micros().saturating_add(self.ahead)).unwrap_or(0)
    }

    /// Executes requests in one transaction, or none of them. What writes anyway also deletes the
    /// news that were seen.
    pub(crate) fn run(
        &mut self,
        caller: &Caller,
        requests: &[Request],
        seen: &mut Vec<News>,
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
        let result = self.batch(caller, requests).and_then(|done| {
            if writes {
                self.note_skew()?;
                news::forget(&self.conn, seen)?;
            }
            Ok(done)
        });
        let done = self.end(result)?;
        if writes {
            seen.clear();
        }
        Ok(done)
    }

    /// Deletes news that were seen, when there are many.
    pub(crate) fn forget_news(
        &mut self,
        seen: &mut Vec<News>,
        stop: &AtomicBool,
    ) -> Result<(), Fault> {
        self.begin_writing(stop)?;
        let result = self.check_meta().and_then(|()| Ok(news::forget(&self.conn, seen)?));
        self.end(result)?;
        seen.clear();
        Ok(())
    }

    fn batch(&mut self, caller: &Caller, requests: &[Request]) -> Result<Done, Fault> {
        self.check_meta()?;
        let now = self.now();
        let mut batch = Batch::new(&self.conn, caller, now, self.floor, &self.path);
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
        let (layout, ahead, floor, same, skew) = self
            .conn
            .prepare_cached("SELECT layout, ahead, floor, boot = ?1, skew FROM fencelock_meta")?
            .query_row([self.clock.boot()], |row| {
                let floor: i64 = row.get(2)?;
                Ok((row.get(0)?, row.get(1)?, floor, row.get::<_, bool>(3)?, row.get(4)?))
            })?;
        self.check_layout(layout)?;
        if !same {
            return Err(Fault::Misconfigured(format!(
                "'{}' is used from another machine or sandbox at the same time; a SQLite store \
                 belongs to one machine: give each its own file, or use a server",
                self.path.display()
            )));
        }
        (self.ahead, self.skew) = (ahead, skew);
        self.floor = u64::try_from(floor).unwrap_or(0);
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
        if self.file.is_some() && file::identify(&self.path) != self.file {
            return Err(Fault::Replaced);
        }
        Ok(())
    }
}
