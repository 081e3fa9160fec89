//! Instead of a lock: a version check, also called compare-and-set or optimistic locking.
//!
//! Read, work as long as you like, and write only if nobody wrote in between. Nothing is held
//! meanwhile, so nothing expires; who comes second reads again. It suits rare conflicts.

use rusqlite::{Connection, params};

/// Makes the table with `units` in stock.
///
/// # Errors
/// When the database refuses.
pub fn prepare(shop: &Connection, units: i64) -> rusqlite::Result<()> {
    shop.execute_batch("CREATE TABLE stock (units INTEGER NOT NULL, version INTEGER NOT NULL)")?;
    shop.execute("INSERT INTO stock VALUES (?1, 1)", [units])?;
    Ok(())
}

/// Takes one unit; false when none is left.
///
/// # Errors
/// When the database refuses.
pub fn take_one(shop: &Connection) -> rusqlite::Result<bool> {
    loop {
        let (units, version): (i64, i64) =
            shop.query_row("SELECT units, version FROM stock", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        if units < 1 {
            return Ok(false);
        }
        let written = shop.execute(
            "UPDATE stock SET units = ?1, version = version + 1 WHERE version = ?2",
            params![units - 1, version],
        )?;
        if written == 1 {
            return Ok(true);
        }
    }
}
