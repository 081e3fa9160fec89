//! Forgetting idle locks.

use std::sync::atomic::AtomicBool;

use fencelock_engine::request::Release;
use fencelock_engine::store::Record;
use fencelock_engine::{HoldId, Name};
use rusqlite::params;

use crate::batch::Post;
use crate::fault::Fault;
use crate::rows;
use crate::store::Store;

/// After so many transactions a few names are looked at.
const EVERY: u32 = 256;
/// How many.
const NAMES: u32 = 512;
/// A lock used within a day is not looked at; the rules decide about the others.
const DAY: u64 = 24 * 3600 * 1_000_000;

/// How far the search for idle locks has come; it goes round.
#[derive(Default)]
pub(crate) struct Sweep {
    count: u32,
    after: String,
}

impl Store {
    /// Counts a transaction, and now and then forgets locks that nobody used for a day. The
    /// highest token of those is noted, so that the time of a later boot begins above it.
    pub(crate) fn sweep(&mut self, stop: &AtomicBool) -> Result<(), Fault> {
        self.sweep.count += 1;
        if self.sweep.count < EVERY {
            return Ok(());
        }
        self.sweep.count = 0;
        let before = self.now().saturating_sub(DAY);
        let idle = self.next_idle(before)?;
        if idle.is_empty() {
            return Ok(());
        }
        self.begin_writing(stop)?;
        let result = self.check_meta().and_then(|()| self.forget(&idle));
        self.end(result)
    }

    fn next_idle(&mut self, before: u64) -> Result<Vec<Name>, Fault> {
        let names: Vec<(String, u64)> = self
            .conn
            .prepare_cached(
                "SELECT name, last FROM fencelock_locks WHERE name > ?1 ORDER BY name LIMIT ?2",
            )?
            .query_map(params![self.sweep.after, NAMES], |row| {
                Ok((row.get(0)?, rows::number(row, 1)?))
            })?
            .filter_map(Result::ok)
            .collect();
        self.sweep.after = match names.last() {
            Some((name, _)) if names.len() == NAMES as usize => name.clone(),
            _ => String::new(),
        };
        let idle = names.into_iter().filter(|(_, last)| *last < before);
        Ok(idle.filter_map(|(name, _)| Name::new(name).ok()).collect())
    }

    fn forget(&self, idle: &[Name]) -> Result<(), Fault> {
        let now = self.now();
        for name in idle {
            let Ok(Some(mut record)) = rows::load(&self.conn, name) else { continue };
            let old = record.clone();
            // Holds and waiters that nobody has contacted since they ended go first.
            record.release(now, &nothing(name), &mut Post::default());
            if record.is_collectable(now) {
                self.raise_floor(&record)?;
                rows::forget(&self.conn, name)?;
            } else {
                rows::save(&self.conn, name, Some(&old), &record)?;
            }
        }
        Ok(())
    }

    fn raise_floor(&self, record: &Record) -> Result<(), Fault> {
        self.conn
            .prepare_cached("UPDATE fencelock_meta SET floor = max(floor, ?1)")?
            .execute([rows::integer(record.last)])?;
        Ok(())
    }
}

/// The release of a hold that does not exist: a contact, no more.
fn nothing(name: &Name) -> Release {
    Release { lock: name.clone(), hold: HoldId(0), used: 0, told: false, lost: false, losses: 0 }
}
