//! With a lock: the resource checks the fencing token.
//!
//! A lease can end while its holder is paused, and no lock service can stop a program that wakes
//! up late. The resource can: it remembers the highest token it has seen and refuses less.
//!
//! Under a read-write lock it remembers two: the highest token of a writer, and the highest of
//! anybody. A writer that wakes up late is refused when somebody has read since, too: otherwise it
//! would write while others read. A reader that wakes up late is refused when somebody has written
//! since; other readers do not make it late.

use fencelock::Token;
use rusqlite::{Connection, params};

/// Makes the ledger.
///
/// # Errors
/// When the database refuses.
pub fn prepare(ledger: &Connection) -> rusqlite::Result<()> {
    ledger.execute_batch(
        "CREATE TABLE entry (text TEXT NOT NULL);
         CREATE TABLE fence (writer INTEGER NOT NULL, anybody INTEGER NOT NULL);
         INSERT INTO fence VALUES (0, 0)",
    )
}

/// Writes under a token; false when a later holder, a reader or a writer, has been here before. The
/// check and the write are one transaction.
///
/// # Errors
/// When the database refuses for another reason.
pub fn write(ledger: &mut Connection, token: Token, text: &str) -> rusqlite::Result<bool> {
    let change = ledger.transaction()?;
    let raised = change.execute(
        "UPDATE fence SET writer = ?1, anybody = ?1 WHERE anybody <= ?1",
        params![token.get() as i64],
    )?;
    if raised == 0 {
        return Ok(false);
    }
    change.execute("INSERT INTO entry VALUES (?1)", [text])?;
    change.commit()?;
    Ok(true)
}

/// Reads under a token; nothing when a later writer has been here before. The check and the read
/// are one transaction, which writes, too: it keeps earlier writers out from now on.
///
/// # Errors
/// When the database refuses for another reason.
pub fn read(ledger: &mut Connection, token: Token) -> rusqlite::Result<Option<Vec<String>>> {
    let look = ledger.transaction()?;
    let raised = look.execute(
        "UPDATE fence SET anybody = max(anybody, ?1) WHERE writer <= ?1",
        params![token.get() as i64],
    )?;
    if raised == 0 {
        return Ok(None);
    }
    let mut query = look.prepare("SELECT text FROM entry ORDER BY rowid")?;
    let entries = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    drop(query);
    look.commit()?;
    Ok(Some(entries))
}
