//! Requests executed within one transaction.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use fencelock_engine::Name;
use fencelock_engine::options::RETENTION;
use fencelock_engine::reply::{Body, Refusal, RefusalKind};
use fencelock_engine::request::{Acquire, Op};
use fencelock_engine::store::{Caller, Keep, Record, revoke_unsupported};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::news::Post;
use crate::rows::{self, Kept};

/// The records that a transaction has loaded; each is read once and written once.
pub(crate) struct Batch<'a> {
    conn: &'a Connection,
    caller: &'a Caller,
    now: u64,
    floor: u64,
    path: &'a Path,
    records: BTreeMap<Name, Entry>,
    post: Post,
}

struct Entry {
    /// As it is in the file.
    old: Option<Kept>,
    new: Kept,
    /// What becomes of it.
    fate: Fate,
}

#[derive(Clone, Copy)]
enum Fate {
    /// It was only looked at.
    Read,
    /// It was used, and is kept for so long when it has nothing to tell: as its latest release says,
    /// if there was one.
    Used(Option<Duration>),
    /// It was looked at for whether it may be forgotten, which it may not.
    Left,
    /// It may.
    Forgotten,
}

impl<'a> Batch<'a> {
    /// `floor`: no token of a lock that was forgotten lies above.
    pub(crate) fn new(
        conn: &'a Connection,
        caller: &'a Caller,
        now: u64,
        floor: u64,
        path: &'a Path,
    ) -> Batch<'a> {
        Batch { conn, caller, now, floor, path, records: BTreeMap::new(), post: Post::default() }
    }

    /// Executes one request.
    pub(crate) fn execute(&mut self, op: &Op) -> Result<Result<Body, Refusal>, Fault> {
        let (now, caller, floor) = (self.now, self.caller, self.floor);
        Ok(match op {
            Op::Acquire(ask) => {
                let retention = ask.after.as_ref().map(|after| after.retention);
                self.touch(&ask.lock, retention, |record, post| {
                    if record.last > 0 || floor <= now {
                        return record.acquire(now, caller, ask, post);
                    }
                    // The clock went back, and the lock may be one that was forgotten.
                    let ask = Acquire { floor: floor.max(ask.floor), ..ask.clone() };
                    record.acquire(now, caller, &ask, post)
                })?
                .and_then(|state| state.map(Body::Acquire))
            }
            Op::Beat(beats) => {
                let mut states = Vec::with_capacity(beats.len());
                for beat in beats {
                    let state = self.touch(&beat.lock, None, |record, post| {
                        record.beat(now, caller, beat, post)
                    })?;
                    states.push(state.and_then(|state| state));
                }
                Ok(Body::Beat(states))
            }
            Op::Release(release) => self
                .touch(&release.lock, Some(release.retention), |record, post| {
                    record.release(now, release, post)
                })?
                .map(Body::Release),
            Op::Convert(ask) => self
                .touch(&ask.lock, None, |record, post| record.convert(now, caller, ask, post))?
                .and_then(|state| state.map(Body::Convert)),
            Op::Resize(ask) => self
                .touch(&ask.lock, None, |record, post| record.resize(now, ask, post))?
                .and_then(|resized| resized.map(Body::Resize)),
            Op::Break(what) => self
                .touch(&what.lock, None, |record, post| record.break_lock(now, what, post))?
                .map(Body::Break),
            Op::Inspect(name) => match self.load(name)? {
                Ok(entry) => {
                    let info = entry.is_there().then(|| entry.new.record.inspect(now, name));
                    Ok(Body::Inspect(info))
                }
                Err(refusal) => Err(refusal),
            },
            Op::List { prefix, limit } => Ok(Body::List(self.list(prefix, *limit)?)),
            Op::Revoke(_) => Err(revoke_unsupported()),
            Op::Time => Ok(Body::Time),
        })
    }

    /// Looks at a lock that is due for whether it may be forgotten.
    pub(crate) fn look_at(&mut self, name: &Name) -> Result<(), Fault> {
        let now = self.now;
        if self.load(name)?.is_err() {
            // A person has to see to it.
            rows::put_off(self.conn, name, Keep::new(now).due)?;
        } else if let Some(entry) = self.records.get_mut(name) {
            let Kept { record, keep } = &mut entry.new;
            let over = keep.is_over(record, now, name, &mut self.post);
            entry.fate = if over { Fate::Forgotten } else { Fate::Left };
        }
        Ok(())
    }

    /// Writes back what changed, and gives the clients that something was announced to.
    pub(crate) fn save(mut self) -> Result<Vec<String>, Fault> {
        let mut floor = 0;
        for (name, entry) in &mut self.records {
            let Kept { record, keep } = &mut entry.new;
            match entry.fate {
                Fate::Read => continue,
                Fate::Left => {}
                Fate::Used(retention) => {
                    keep.used(record, self.now, retention.unwrap_or(RETENTION));
                }
                Fate::Forgotten => {
                    floor = floor.max(record.last);
                    rows::forget(self.conn, name)?;
                    continue;
                }
            }
            // Of a lock that nobody could take nothing is worth keeping.
            if entry.is_there() {
                rows::save(self.conn, name, entry.old.as_ref(), &entry.new)?;
            }
        }
        if floor > 0 {
            // The time of a later boot begins above the tokens of what was forgotten.
            self.conn
                .prepare_cached("UPDATE fencelock_meta SET floor = max(floor, ?1)")?
                .execute([rows::integer(floor)])?;
        }
        Ok(self.post.save(self.conn, self.now)?)
    }

    fn touch<T>(
        &mut self,
        name: &Name,
        retention: Option<Duration>,
        change: impl FnOnce(&mut Record, &mut Post) -> T,
    ) -> Result<Result<T, Refusal>, Fault> {
        if let Err(refusal) = self.load(name)? {
            return Ok(Err(refusal));
        }
        let now = self.now;
        let entry = self.records.entry(name.clone()).or_insert_with(|| Entry::new(None, now));
        let before = if let Fate::Used(before) = entry.fate { before } else { None };
        entry.fate = Fate::Used(retention.or(before));
        Ok(Ok(change(&mut entry.new.record, &mut self.post)))
    }

    fn load(&mut self, name: &Name) -> Result<Result<&Entry, Refusal>, Fault> {
        if !self.records.contains_key(name) {
            let old = match rows::load(self.conn, name) {
                Ok(old) => old,
                Err(error) if rows::is_damaged_row(&error) => {
                    return Ok(Err(self.damaged(name, &error)));
                }
                Err(error) => return Err(error.into()),
            };
            self.records.insert(name.clone(), Entry::new(old, self.now));
        }
        Ok(Ok(&self.records[name]))
    }

    fn damaged(&self, name: &Name, error: &rusqlite::Error) -> Refusal {
        Refusal {
            kind: RefusalKind::Misconfigured,
            message: format!(
                "the rows of lock '{name}' in '{}' are damaged ({error}); with nobody using the \
                 lock, delete them from the tables fencelock_locks, _holds and _waiters",
                self.path.display()
            ),
        }
    }

    /// The first names by their bytes.
    fn list(&self, prefix: &str, limit: usize) -> Result<Vec<Name>, Fault> {
        // Names compare by their bytes, so that those with the prefix stand together.
        let mut query = self
            .conn
            .prepare_cached("SELECT name FROM fencelock_locks WHERE name >= ?1 ORDER BY name")?;
        let mut rows = query.query([prefix])?;
        let mut names = Vec::new();
        while names.len() < limit {
            let Some(row) = rows.next()? else { break };
            let Ok(name) = row.get_ref(0)?.as_str() else { continue };
            if !name.starts_with(prefix) {
                break;
            }
            names.extend(Name::new(name).ok());
        }
        for (name, entry) in &self.records {
            // Made by this very transaction, not in the file yet.
            let made = entry.old.is_none() && entry.is_there();
            if made && name.as_str().starts_with(prefix) {
                names.push(name.clone());
            }
        }
        names.sort();
        names.sort();
        names.truncate(limit);
        Ok(names)
    }
}

impl Entry {
    fn new(old: Option<Kept>, now: u64) -> Entry {
        let none = || Kept { record: Record::default(), keep: Keep::new(now) };
        Entry { new: old.clone().unwrap_or_else(none), old, fate: Fate::Read }
    }

    /// Whether the file has it, or will have it.
    fn is_there(&self) -> bool {
        self.old.is_some() || self.new.record != Record::default()
    }
}
