//! One lock's record, out of its rows and back into them.

use std::collections::BTreeMap;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::store::{Record, StoredHold, StoredWaiter};
use fencelock_engine::{ClientId, HoldId, Name, OwnerId};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

type Result<T> = rusqlite::Result<T>;

/// Reads a record; `None` when the file has none.
pub(crate) fn load(conn: &Connection, name: &Name) -> Result<Option<Record>> {
    let mut record = conn
        .prepare_cached(
            "SELECT owner, token, last, abandoned, losses, released, ticket
             FROM fencelock_locks WHERE name = ?1",
        )?
        .query_row([name.as_str()], |row| {
            Ok(Record {
                owner: owner(row, 0)?,
                holds: Vec::new(),
                token: number(row, 1)?,
                last: number(row, 2)?,
                abandoned: match row.get(3)? {
                    0 => Abandoned::No,
                    1 => Abandoned::Yes,
                    2 => Abandoned::Unknown,
                    other => return Err(rusqlite::Error::IntegralValueOutOfRange(3, other)),
                },
                losses: row.get(4)?,
                released: optional(row, 5, HoldId::parse)?,
                ticket: number(row, 6)?,
                waiters: Vec::new(),
            })
        })
        .optional()?;
    if let Some(record) = &mut record {
        record.holds = conn
            .prepare_cached(
                "SELECT hold, client, label, polling, deadline, lease, asked, claim
                 FROM fencelock_holds WHERE name = ?1",
            )?
            .query_map([name.as_str()], hold)?
            .collect::<Result<_>>()?;
        record.waiters = conn
            .prepare_cached(
                "SELECT hold, client, label, polling, owner, ticket, heard, silent, lease, claim,
                     silence
                 FROM fencelock_waiters WHERE name = ?1 ORDER BY ticket, hold",
            )?
            .query_map([name.as_str()], waiter)?
            .collect::<Result<_>>()?;
    }
    Ok(record)
}

/// Writes what differs between `old` (absent when `None`) and `new`.
pub(crate) fn save(
    conn: &Connection,
    name: &Name,
    old: Option<&Record>,
    new: &Record,
) -> Result<()> {
    let empty = Record::default();
    let before = old.unwrap_or(&empty);
    if old.is_none() || head(before) != head(new) {
        let abandoned = match new.abandoned {
            Abandoned::No => 0,
            Abandoned::Yes => 1,
            Abandoned::Unknown => 2,
        };
        conn.prepare_cached(
            "INSERT OR REPLACE INTO fencelock_locks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            name.as_str(),
            new.owner.as_ref().map(OwnerId::as_str),
            integer(new.token),
            integer(new.last),
            abandoned,
            new.losses,
            new.released.map(|hold| hold.to_string()),
            integer(new.ticket),
        ])?;
    }
    save_holds(conn, name, &before.holds, &new.holds)?;
    save_waiters(conn, name, &before.waiters, &new.waiters)
}

/// Forgets a lock on which nobody holds or waits.
pub(crate) fn forget(conn: &Connection, name: &Name) -> Result<()> {
    for sql in [
        "DELETE FROM fencelock_locks WHERE name = ?1",
        "DELETE FROM fencelock_holds WHERE name = ?1",
        "DELETE FROM fencelock_waiters WHERE name = ?1",
    ] {
        conn.prepare_cached(sql)?.execute([name.as_str()])?;
    }
    Ok(())
}

fn head(record: &Record) -> impl PartialEq + '_ {
    let Record { owner, token, last, abandoned, losses, released, ticket, .. } = record;
    (owner, token, last, abandoned, losses, released, ticket)
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
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
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
        ])?;
    }
    for hold in gone.keys() {
        conn.prepare_cached("DELETE FROM fencelock_holds WHERE name = ?1 AND hold = ?2")?
            .execute(params![name.as_str(), hold.to_string()])?;
    }
    Ok(())
}

fn save_waiters(
    conn: &Connection,
    name: &Name,
    old: &[StoredWaiter],
    new: &[StoredWaiter],
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    let mut gone: BTreeMap<HoldId, &StoredWaiter> =
        old.iter().map(|waiter| (waiter.hold, waiter)).collect();
    for waiter in new {
        if gone.remove(&waiter.hold) == Some(waiter) {
            continue;
        }
        conn.prepare_cached(
            "INSERT OR REPLACE INTO fencelock_waiters
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
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
    })
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
