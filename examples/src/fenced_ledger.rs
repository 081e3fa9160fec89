//! With a lock: the resource checks the fencing token.
//!
//! A lease can end while its holder is paused, and no lock service can stop a program that wakes
//! up late. The resource can: it remembers the highest token it has seen and refuses less.

use fencelock::Token;
use rusqlite::{Connection, params};

/// Makes the ledger.
///
/// # Errors
/// When the database refuses.
pub fn prepare(ledger: &Connection) -> rusqlite::Result<()> {
    ledger.execute_batch(
        "CREATE TABLE entry (text TEXT NOT NULL);
         CREATE TABLE fence (highest INTEGER NOT NULL);
         INSERT INTO fence VALUES (0)",
    )
}

/// Writes under a token; false when a later holder has written before. The check and the write
/// are one transaction.
///
/// # Errors
/// When the database refuses for another reason.
pub fn write(ledger: &mut Connection, token: Token, text: &str) -> rusqlite::Result<bool> {
    let change = ledger.transaction()?;
    let raised = change.execute(
        "UPDATE fence SET highest = ?1 WHERE highest <= ?1",
        params![token.get() as i64],
    )?;
    if raised == 0 {
        return Ok(false);
    }
    change.execute("INSERT INTO entry VALUES (?1)", [text])?;
    change.commit()?;
    Ok(true)
}
