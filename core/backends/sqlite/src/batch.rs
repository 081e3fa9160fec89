//! Requests executed within one transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fencelock_engine::Name;
use fencelock_engine::reply::{Body, Push, Refusal, RefusalKind};
use fencelock_engine::request::Op;
use fencelock_engine::store::{Announce, Caller, Delivery, Record, revoke_unsupported};
use rusqlite::Connection;

use crate::fault::Fault;
use crate::rows;

/// The records that a transaction has loaded; each is read once and written once.
pub(crate) struct Batch<'a> {
    conn: &'a Connection,
    caller: &'a Caller,
    now: u64,
    path: &'a Path,
    records: BTreeMap<Name, Entry>,
    post: Post,
}

struct Entry {
    /// As it is in the file.
    old: Option<Record>,
    new: Record,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(
        conn: &'a Connection,
        caller: &'a Caller,
        now: u64,
        path: &'a Path,
    ) -> Batch<'a> {
        Batch { conn, caller, now, path, records: BTreeMap::new(), post: Post::default() }
    }

    /// Executes one request.
    pub(crate) fn execute(&mut self, op: &Op) -> Result<Result<Body, Refusal>, Fault> {
        let (now, caller) = (self.now, self.caller);
        Ok(match op {
            Op::Acquire(ask) => self
                .touch(&ask.lock, |record, post| record.acquire(now, caller, ask, post))?
                .and_then(|state| state.map(Body::Acquire)),
            Op::Beat(beats) => {
                let mut states = Vec::with_capacity(beats.len());
                for beat in beats {
                    let state = self
                        .touch(&beat.lock, |record, post| record.beat(now, caller, beat, post))?;
                    states.push(state.and_then(|state| state));
                }
                Ok(Body::Beat(states))
            }
            Op::Release(release) => self
                .touch(&release.lock, |record, post| record.release(now, release, post))?
                .map(Body::Release),
            Op::Break(name) => {
                self.touch(name, |record, post| record.break_all(now, name, post))?.map(Body::Break)
            }
            Op::Inspect(name) => match self.load(name)? {
                Ok(entry) => {
                    let info = (entry.old.is_some() || entry.new != Record::default())
                        .then(|| entry.new.inspect(now, name));
                    Ok(Body::Inspect(info))
                }
                Err(refusal) => Err(refusal),
            },
            Op::List { prefix, limit } => Ok(Body::List(self.list(prefix, *limit)?)),
            Op::Revoke(_) => Err(revoke_unsupported()),
            Op::Time => Ok(Body::Time),
        })
    }

    /// Writes back what changed, and gives the clients that something was announced to.
    pub(crate) fn save(self) -> Result<Vec<String>, Fault> {
        for (name, entry) in &self.records {
            let old = entry.old.as_ref();
            // Of a lock that nobody could take nothing is worth keeping.
            if old.is_some() || entry.new != Record::default() {
                rows::save(self.conn, name, old, &entry.new)?;
            }
        }
        Ok(self.post.told.into_iter().collect())
    }

    fn touch<T>(
        &mut self,
        name: &Name,
        change: impl FnOnce(&mut Record, &mut Post) -> T,
    ) -> Result<Result<T, Refusal>, Fault> {
        if let Err(refusal) = self.load(name)? {
            return Ok(Err(refusal));
        }
        let entry = self.records.entry(name.clone()).or_insert_with(Entry::none);
        Ok(Ok(change(&mut entry.new, &mut self.post)))
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
            let new = old.clone().unwrap_or_default();
            self.records.insert(name.clone(), Entry { old, new });
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
            let made = entry.old.is_none() && entry.new != Record::default();
            if made && name.as_str().starts_with(prefix) {
                names.push(name.clone());
            }
        }
        names.sort();
        names.truncate(limit);
        Ok(names)
    }
}

impl Entry {
    fn none() -> Entry {
        Entry { old: None, new: Record::default() }
    }
}

/// Notes who is to look at the file. A client of this process is woken after the commit; one of
/// another process sees that the file has changed. Either counts as reached.
#[derive(Default)]
pub(crate) struct Post {
    told: BTreeSet<String>,
}

impl Announce for Post {
    fn announce(&mut self, client: &str, _push: Push) -> Delivery {
        self.told.insert(client.to_owned());
        Delivery::Delivered
    }
}
