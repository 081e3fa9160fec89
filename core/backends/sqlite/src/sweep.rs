//! Forgetting locks that have nothing to tell, and giving back the space.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use fencelock_engine::Name;
use fencelock_engine::store::Caller;
use rusqlite::params;

use crate::batch::Batch;
use crate::fault::Fault;
use crate::rows;
use crate::store::Store;

/// How many locks one step looks at: others want to write, too.
const NAMES: u32 = 128;
/// How many pages one step gives back.
const PAGES: u32 = 256;

/// When a file that was in use is cut once more.
const AGAIN: Duration = Duration::from_secs(1);

/// What a step came to.
pub(crate) struct Swept {
    /// When there is something to do again; `None` when the file has no locks.
    pub next: Option<Duration>,
    /// The ids of the clients that something was announced to.
    pub told: Vec<String>,
}

impl Store {
    /// Looks at some of the locks that are due, and forgets those that have nothing to tell. When
    /// none is due, gives pages back of which the file has more than it uses.
    pub(crate) fn sweep(&mut self, caller: &Caller, stop: &AtomicBool) -> Result<Swept, Fault> {
        let sql = "SELECT min(due) FROM fencelock_locks";
        let due: Option<i64> = self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        let now = rows::integer(self.now());
        let mut told = Vec::new();
        let next = match due {
            Some(due) if due <= now => {
                self.begin_writing(stop)?;
                let result = self.check_meta().and_then(|()| self.look_at_due(caller));
                told = self.end(result)?;
                Some(Duration::ZERO)
            }
            _ if self.shrink(stop)? => Some(Duration::ZERO),
            due => {
                let due = due.map(|due| Duration::from_micros(due.abs_diff(now)));
                self.uncut = self.uncut && !self.cut()?;
                let again = self.uncut.then_some(AGAIN);
                due.into_iter().chain(again).min()
            }
        };
        Ok(Swept { next, told })
    }

    fn look_at_due(&mut self, caller: &Caller) -> Result<Vec<String>, Fault> {
        let now = self.now();
        let names: Vec<String> = self
            .conn
            .prepare_cached(
                "SELECT name FROM fencelock_locks WHERE due <= ?1 ORDER BY due LIMIT ?2",
            )?
            .query_map(params![rows::integer(now), NAMES], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let mut batch = Batch::new(&self.conn, caller, now, self.floor, &self.path);
        for name in names {
            match Name::new(&*name) {
                Ok(name) => batch.look_at(&name)?,
                // Nobody can ask for it.
                Err(_) => {
                    let sql = "DELETE FROM fencelock_locks WHERE name = ?1";
                    self.conn.prepare_cached(sql)?.execute([name])?;
                }
            }
        }
        batch.save()
    }

    /// Gives some pages back to the file system, when most of them are free; true when it did. A
    /// file that was not made by us keeps its own setting, and free pages for what comes.
    fn shrink(&mut self, stop: &AtomicBool) -> Result<bool, Fault> {
        let free = self.pragma("freelist_count")?;
        if free < i64::from(PAGES)
            || free * 2 < self.pragma("page_count")?
            || self.pragma("auto_vacuum")? != INCREMENTAL
        {
            return Ok(false);
        }
        self.begin_writing(stop)?;
        let result = self.check_meta().and_then(|()| {
            // Each row that is asked for gives back one page.
            let mut pages = self.conn.prepare(&format!("PRAGMA incremental_vacuum({PAGES})"))?;
            let mut rows = pages.query([])?;
            while rows.next()?.is_some() {}
            Ok(())
        });
        self.end(result)?;
        self.uncut = true;
        Ok(self.pragma("freelist_count")? < free)
    }

    /// The pages that were given back are still in the file until what the log says of them was
    /// carried out. False while somebody reads or writes.
    fn cut(&self) -> rusqlite::Result<bool> {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.conn.query_row(sql, [], |row| row.get(0))?;
        Ok(busy == 0)
    }

    fn pragma(&self, what: &str) -> rusqlite::Result<i64> {
        self.conn.prepare_cached(&format!("PRAGMA {what}"))?.query_row([], |row| row.get(0))
    }
}

/// What `PRAGMA auto_vacuum` says of a file whose pages can be given back.
const INCREMENTAL: i64 = 2;
