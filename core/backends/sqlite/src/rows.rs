//! One lock's record, out of its rows and back into them.

use std::collections::BTreeMap;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::Mode;
use fencelock_engine::store::{Keep, Queue, Record, StoredHold, StoredWaiter};
use fencelock_engine::{ClientId, HoldId, Name, OwnerId};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params, params_from_iter};

/// The mode of who shares a lock, as it is written.
const SHARED: &str = "shared";

type Result<T> = rusqlite::Result<T>;

/// A record, and how long it is kept.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub record: Record,
    pub keep: Keep,
}

/// Reads a record; `None` when the file has none.
pub(crate) fn load(conn: &Connection, name: &Name) -> Result<Option<Kept>> {
    let kept = conn
        .prepare_cached(
            "SELECT owner, token, last, used, abandoned, losses, released, ticket, until,
                 due
             FROM fencelock_locks WHERE name = ?1",
        )?
        .query_row([name.as_str()], |row| {
            let until: Option<i64> = row.get(8)?;
            let until = until.map(|_| number(row, 8)).transpose()?;
            let keep = Keep { until, due: number(row, 9)? };
            let record = Record {
                owner: owner(row, 0)?,
                holds: Vec::new(),
                token: number(row, 1)?,
                last: number(row, 2)?,
                used: number(row, 3)?,
                abandoned: match row.get(4)? {
                    0 => Abandoned::No,
                    1 => Abandoned::Yes,
                    2 => Abandoned::Unknown,
                    other => return Err(rusqlite::Error::IntegralValueOutOfRange(4, other)),
                },
                losses: row.get(5)?,
                released: optional(row, 6, HoldId::parse)?,
                ticket: number(row, 7)?,
                waiters: Queue::default(),
            };
            Ok(Kept { record, keep })
        })
        .optional()?;
    let Some(mut kept) = kept else { return Ok(None) };
    {
        let record = &mut kept.record;
        record.holds = conn
            .prepare_cached(
                "SELECT hold, client, label, polling, deadline, lease, asked, claim,
                     local_waiters, mode, token, owner
                 FROM fencelock_holds WHERE name = ?1",
            )?
            .query_map([name.as_str()], hold)?
            .collect::<Result<_>>()?;
        for hold in record.holds.iter_mut().filter(|hold| hold.mode == Mode::Exclusive) {
            hold.token = record.token;
            hold.owner.clone_from(&record.owner);
        }
        record.waiters = conn
            .prepare_cached(
                "SELECT hold, client, label, polling, owner, ticket, heard, silent, lease, claim,
                     silence, local_waiters, mode
                 FROM fencelock_waiters WHERE name = ?1 ORDER BY ticket, hold",
            )?
            .query_map([name.as_str()], waiter)?
            .collect::<Result<_>>()?;
    }
    Ok(Some(kept))
}

/// Writes what differs between `old` (absent when `None`) and `new`.
pub(crate) fn save(conn: &Connection, name: &Name, old: Option<&Kept>, new: &Kept) -> Result<()> {
    save_head(conn, name, old, new)?;
    let empty = Record::default();
    let before = old.map_or(&empty, |old| &old.record);
    save_holds(conn, name, &before.holds, &new.record.holds)?;
    save_waiters(conn, name, &before.waiters, &new.record.waiters)
}

fn save_head(conn: &Connection, name: &Name, old: Option<&Kept>, new: &Kept) -> Result<()> {
    let Kept { record, keep } = new;
    let abandoned = match record.abandoned {
        Abandoned::No => 0,
        Abandoned::Yes => 1,
        Abandoned::Unknown => 2,
    };
    if old.is_none_or(|old| head(old) != head(new)) {
        // An update leaves the index on `due` alone, unless `due` itself is set.
        let sql = match old {
            Some(_) => {
                "UPDATE fencelock_locks SET owner = ?2, token = ?3, last = ?4, used = ?5,
                     abandoned = ?6, losses = ?7, released = ?8, ticket = ?9, until = ?10
                 WHERE name = ?1"
            }
            None => {
                "INSERT INTO fencelock_locks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
            }
        };
        let mut save = conn.prepare_cached(sql)?;
        let due = integer(keep.due);
        let due: &[&dyn ToSql] = if old.is_none() { &[&due] } else { &[] };
        let head: [&dyn ToSql; 10] = [
            &name.as_str(),
            &record.owner.as_ref().map(OwnerId::as_str),
            &integer(record.token),
            &integer(record.last),
            &integer(record.used),
            &abandoned,
            &record.losses,
            &record.released.map(|hold| hold.to_string()),
            &integer(record.ticket),
            &keep.until.map(integer),
        ];
        save.execute(params_from_iter(head.iter().chain(due)))?;
    }
    match old {
        Some(old) if old.keep.due != keep.due => put_off(conn, name, keep.due),
        _ => Ok(()),
    }
}

/// Sets when a lock is looked at for whether it may be forgotten.
pub(crate) fn put_off(conn: &Connection, name: &Name, due: u64) -> Result<()> {
    conn.prepare_cached("UPDATE fencelock_locks SET due = ?2 WHERE name = ?1")?
        .execute(params![name.as_str(), integer(due)])?;
    Ok(())
}

/// Forgets a lock on which nobody holds or waits.
pub(crate) fn forget(conn: &Connection, name: &Name) -> Result<()> {
    for sql in [
        "DELETE FROM fencelock_locks WHERE name = ?1",
        "DELETE FROM fencelock_holds WHERE name = ?1",
        "DELETE FROM fencelock_waiters WHERE name = ?1",
        "DELETE FROM fencelock_news WHERE name = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([name.as_str()])?;
    }
    Ok(())
}

fn head(kept: &Kept) -> impl PartialEq + '_ {
    let Record { owner, token, last, used, abandoned, losses, released, ticket, .. } = &kept.record;
    (owner, token, last, used, abandoned, losses, released, ticket, kept.keep.until)
}

fn save_holds(
    conn: &Connection,
    name: &Name,
    old: &[StoredHold],
    new: &[StoredHold],
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let mut gone: BTreeMap<HoldId, &StoredHold> =
        old.iter().map(|hold| (hold.hold, hold)).collect();
    for hold in new {
        if gone.remove(&hold.hold) == Some(hold) {
            continue;
        }
        conn.prepare_cached(
            "INSERT OR REPLACE INTO fencelock_holds
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        )?
        .execute(params![
            name.as_str(),
            hold.hold.to_string(),
            hold.client.id(),
            hold.client.label(),
            hold.polling,
            integer(hold.deadline),
            integer(hold.lease),
            integer(hold.asked),
            hold.claim,
            hold.local_waiters,
            written(hold.mode),
            (hold.mode != Mode::Exclusive).then(|| integer(hold.token)),
            hold.owner.as_ref().filter(|_| hold.mode != Mode::Exclusive).map(OwnerId::as_str),
        ])?;
    }
    for hold in gone.keys() {
        conn.prepare_cached("DELETE FROM fencelock_holds WHERE name = ?1 AND hold = ?2")?
            .execute(params![name.as_str(), hold.to_string()])?;
    }
    Ok(())
}

fn save_waiters(conn: &Connection, name: &Name, old: &Queue, new: &Queue) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let mut gone: BTreeMap<HoldId, &StoredWaiter> =
        old.iter().map(|waiter| (waiter.hold, waiter)).collect();
    for waiter in new.iter() {
        if gone.remove(&waiter.hold) == Some(waiter) {
            continue;
        }
        conn.prepare_cached(
            "INSERT OR REPLACE INTO fencelock_waiters
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute(params![
            name.as_str(),
            waiter.hold.to_string(),
            waiter.client.id(),
            waiter.client.label(),
            waiter.polling,
            waiter.owner.as_ref().map(OwnerId::as_str),
            integer(waiter.ticket),
            integer(waiter.heard),
            waiter.silent,
            integer(waiter.lease),
            integer(waiter.claim),
            integer(waiter.silence),
            waiter.local_waiters,
            written(waiter.mode),
        ])?;
    }
    for hold in gone.keys() {
        conn.prepare_cached("DELETE FROM fencelock_waiters WHERE name = ?1 AND hold = ?2")?
            .execute(params![name.as_str(), hold.to_string()])?;
    }
    Ok(())
}

fn hold(row: &Row<'_>) -> Result<StoredHold> {
    Ok(StoredHold {
        hold: text(row, 0, HoldId::parse)?,
        client: client(row, 1)?,
        polling: row.get(3)?,
        deadline: number(row, 4)?,
        lease: number(row, 5)?,
        asked: number(row, 6)?,
        claim: row.get(7)?,
        local_waiters: row.get(8)?,
        mode: mode(row, 9)?,
        token: row.get::<_, Option<i64>>(10)?.map(|_| number(row, 10)).transpose()?.unwrap_or(0),
        owner: owner(row, 11)?,
    })
}

fn waiter(row: &Row<'_>) -> Result<StoredWaiter> {
    Ok(StoredWaiter {
        hold: text(row, 0, HoldId::parse)?,
        client: client(row, 1)?,
        polling: row.get(3)?,
        owner: owner(row, 4)?,
        ticket: number(row, 5)?,
        heard: number(row, 6)?,
        silent: row.get(7)?,
        lease: number(row, 8)?,
        claim: number(row, 9)?,
        silence: number(row, 10)?,
        local_waiters: row.get(11)?,
        mode: mode(row, 12)?,
    })
}

/// How the mode of a hold or waiter is written; nothing for an exclusive one.
fn written(mode: Mode) -> Option<String> {
    match mode {
        Mode::Exclusive => None,
        Mode::Shared => Some(SHARED.to_owned()),
        Mode::Permits { count, of } => Some(format!("{count} of {of}")),
    }
}

fn mode(row: &Row<'_>, column: usize) -> Result<Mode> {
    let mode = optional(row, column, |text| {
        if text == SHARED {
            return Some(Mode::Shared);
        }
        let (count, of) = text.split_once(" of ")?;
        Some(Mode::Permits { count: count.parse().ok()?, of: of.parse().ok()? })
    })?;
    Ok(mode.unwrap_or_default())
}

fn owner(row: &Row<'_>, column: usize) -> Result<Option<OwnerId>> {
    optional(row, column, |owner| OwnerId::new(owner).ok())
}

/// A client's id and label, in this column and the next.
fn client(row: &Row<'_>, column: usize) -> Result<ClientId> {
    let label = row.get_ref(column + 1)?.as_str()?;
    text(row, column, |id| ClientId::new(u64::from_str_radix(id, 16).ok()?, label).ok())
}

fn text<T>(row: &Row<'_>, column: usize, read: impl FnOnce(&str) -> Option<T>) -> Result<T> {
    read(row.get_ref(column)?.as_str()?).ok_or_else(|| damaged(column))
}

fn optional<T>(
    row: &Row<'_>,
    column: usize,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>> {
    match row.get_ref(column)?.as_str_or_null()? {
        Some(value) => read(value).map(Some).ok_or_else(|| damaged(column)),
        None => Ok(None),
    }
}

fn damaged(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        column,
        Type::Text,
        "this is not what Fencelock writes here".into(),
    )
}

/// Times and tokens are far below 2^63; only a lease may be absurd.
pub(crate) fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(crate) fn number(row: &Row<'_>, column: usize) -> Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

/// Whether the row, rather than the file, is at fault: it must not cost other locks.
pub(crate) fn is_damaged_row(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    matches!(
        error,
        FromSqlConversionFailure(..)
            | IntegralValueOutOfRange(..)
            | InvalidColumnType(..)
            | Utf8Error(..)
    )
}
