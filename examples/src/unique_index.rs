//! Instead of a lock: a unique index.
//!
//! 'At most one for each person' is a constraint on data. The database keeps it for every program
//! that ever writes there, also for those that know nothing of a lock.

use rusqlite::{Connection, ErrorCode};

/// Makes the table: the index is the rule.
///
/// # Errors
/// When the database refuses.
pub fn prepare(shop: &Connection) -> rusqlite::Result<()> {
    shop.execute_batch("CREATE TABLE coupon (person TEXT NOT NULL UNIQUE)")
}

/// Gives `person` a coupon; false when they have one.
///
/// # Errors
/// When the database refuses for another reason.
pub fn claim(shop: &Connection, person: &str) -> rusqlite::Result<bool> {
    match shop.execute("INSERT INTO coupon (person) VALUES (?1)", [person]) {
        Ok(_) => Ok(true),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}
