//! What the locks protect: a ledger that looks at the fencing token.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// How long the file may be in use by others.
const PATIENCE: Duration = Duration::from_secs(30);

/// A ledger in a SQLite file of its own. For each lock it keeps the highest token of a writer, and the
/// highest of anybody. It takes a write only under a token that is not below the second, and lets read
/// only under one that is not below the first; each in one transaction.
#[derive(Debug)]
pub struct Ledger(Connection);

impl Ledger {
    /// Opens it, and makes it if it is not there.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn open(path: &Path) -> rusqlite::Result<Ledger> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        // What is written need not survive the machine.
        connection.pragma_update(None, "synchronous", "off")?;
        connection.execute_batch(
            "CREATE TABLE IF NOT EXISTS fence (lock TEXT PRIMARY KEY, writer INTEGER NOT NULL,
                                               token INTEGER NOT NULL);
             CREATE TABLE IF NOT EXISTS entry (lock TEXT NOT NULL, token INTEGER NOT NULL);",
        )?;
        Ok(Ledger(connection))
    }

    /// Writes an entry under `token`; false when it is refused.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn write(&mut self, lock: &str, token: u64) -> rusqlite::Result<bool> {
        let transaction = self.begin()?;
        let token = i64::try_from(token).unwrap_or(i64::MAX);
        let fenced = transaction.execute(
            "INSERT INTO fence VALUES (?1, ?2, ?2)
             ON CONFLICT DO UPDATE SET writer = excluded.writer, token = excluded.token
             WHERE excluded.token >= token",
            (lock, token),
        )?;
        if fenced == 1 {
            transaction.execute("INSERT INTO entry VALUES (?1, ?2)", (lock, token))?;
        }
        transaction.commit()?;
        Ok(fenced == 1)
    }

    /// Looks at the entries under `token`, beside others who read; false when it is refused.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn read(&mut self, lock: &str, token: u64) -> rusqlite::Result<bool> {
        let transaction = self.begin()?;
        let token = i64::try_from(token).unwrap_or(i64::MAX);
        let fenced = transaction.execute(
            "INSERT INTO fence VALUES (?1, 0, ?2)
             ON CONFLICT DO UPDATE SET token = max(token, excluded.token)
             WHERE excluded.token >= writer",
            (lock, token),
        )?;
        transaction.commit()?;
        Ok(fenced == 1)
    }

    /// A transaction that writes. Where several find what a writer left that was killed, SQLite tells all
    /// but one at once that the file is in use, whatever its time-out.
    fn begin(&mut self) -> rusqlite::Result<Transaction<'_>> {
        let end = Instant::now() + PATIENCE;
        loop {
            match Transaction::new_unchecked(&self.0, TransactionBehavior::Immediate) {
                Err(error)
                    if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                        && Instant::now() < end =>
                {
                    thread::sleep(Duration::from_millis(5));
                }
                begun => return begun,
            }
        }
    }

    /// The tokens of a lock's entries, in the order of the writes.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn tokens(&self, lock: &str) -> rusqlite::Result<Vec<u64>> {
        let mut rows = self.0.prepare("SELECT token FROM entry WHERE lock = ?1 ORDER BY rowid")?;
        let tokens = rows.query_map([lock], |row| row.get::<_, i64>(0))?;
        tokens.map(|token| Ok(token?.unsigned_abs())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_writes_is_above_all_and_who_reads_above_those_who_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(&folder.path().join("ledger.db")).unwrap();
        assert!(ledger.write("l", 5).unwrap());
        assert!(ledger.read("l", 8).unwrap());
        // Beside another reader, but not after a later writer; and no writer from before the readers.
        assert!(ledger.read("l", 6).unwrap());
        assert!(!ledger.read("l", 4).unwrap());
        assert!(!ledger.write("l", 7).unwrap());
        assert!(ledger.write("l", 9).unwrap());
        assert!(!ledger.read("l", 8).unwrap());
        assert_eq!(ledger.tokens("l").unwrap(), [5, 9]);
    }
}
