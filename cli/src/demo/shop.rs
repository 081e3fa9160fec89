//! The shop: a stock that nothing but the lock protects, and a ledger that checks tokens.
//!
//! A database of its own, beside the lock's store. Selling is read, check, wait, write; the read
//! and the write are two transactions, as they are in any service that asks a payment provider in
//! between.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::demo::wire::Written;
use crate::failure::Failure;

const SCHEMA: &str = "
    CREATE TABLE stock (remaining INTEGER NOT NULL);
    CREATE TABLE sale_window (opens INTEGER NOT NULL, closes INTEGER NOT NULL);
    CREATE TABLE ledger (
        id INTEGER PRIMARY KEY, person INTEGER NOT NULL, process INTEGER NOT NULL,
        token INTEGER NOT NULL, at INTEGER NOT NULL);
    CREATE INDEX ledger_person ON ledger (person);
    CREATE TABLE fence (highest INTEGER NOT NULL);
    INSERT INTO fence VALUES (0);
    CREATE TABLE mishap (struck INTEGER NOT NULL);
    INSERT INTO mishap VALUES (0);
";

/// A connection to the shop.
#[derive(Debug)]
pub struct Shop {
    db: Connection,
}

/// A sale to be written.
#[derive(Clone, Copy, Debug)]
pub struct Sale {
    /// Who buys.
    pub person: u32,
    /// Which process sells.
    pub process: u32,
    /// The stock that was read before.
    pub read: i64,
    /// Under which token; 0 without a lock.
    pub token: u64,
    /// Refuse when the ledger has seen a later token.
    pub checked: bool,
    /// When.
    pub at: u64,
}

/// What is in the books when all is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Books {
    /// Coupons sold.
    pub sold: u32,
    /// People who bought more than one.
    pub twice: u32,
    /// Sold by each process.
    pub shares: Vec<u32>,
    /// Sales whose token was not above that of the sale before by another holder.
    pub out_of_order: u32,
    /// What the stock says.
    pub remaining: i64,
}

impl Shop {
    /// A new shop with so many coupons. Its window is still shut.
    pub fn create(path: &Path, coupons: u32) -> Result<Shop, Failure> {
        let shop = Shop::open(path)?;
        shop.db.pragma_update(None, "journal_mode", "WAL")?;
        shop.db.execute_batch(SCHEMA)?;
        shop.db.execute("INSERT INTO stock VALUES (?1)", [coupons])?;
        shop.db.execute("INSERT INTO sale_window VALUES (0, 0)", [])?;
        Ok(shop)
    }

    /// The shop in this file.
    pub fn open(path: &Path) -> Result<Shop, Failure> {
        let db = Connection::open(path)?;
        db.busy_timeout(Duration::from_secs(30))?;
        // The demo's machine need not survive a power cut in the middle of a sale.
        db.pragma_update(None, "synchronous", "OFF")?;
        Ok(Shop { db })
    }

    /// Opens the window from `opens` to `closes`.
    pub fn set_window(&self, opens: u64, closes: u64) -> Result<(), Failure> {
        let span = params![signed(opens), signed(closes)];
        self.db.execute("UPDATE sale_window SET opens = ?1, closes = ?2", span)?;
        Ok(())
    }

    /// Whether the sale is open at `now`.
    pub fn is_open(&self, now: u64) -> Result<bool, Failure> {
        let sql = "SELECT opens <= ?1 AND ?1 < closes FROM sale_window";
        Ok(self.db.prepare_cached(sql)?.query_row([signed(now)], |row| row.get(0))?)
    }

    /// How many are left.
    pub fn stock(&self) -> Result<i64, Failure> {
        let sql = "SELECT remaining FROM stock";
        Ok(self.db.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
    }

    /// Whether this person has one.
    pub fn has_one(&self, person: u32) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM ledger WHERE person = ?1 LIMIT 1";
        let found = self.db.prepare_cached(sql)?.query_row([person], |_| Ok(())).optional()?;
        Ok(found.is_some())
    }

    /// True for one caller only, whichever process asks first: the one whom the mishap befalls.
    pub fn draw_the_lot(&self) -> Result<bool, Failure> {
        Ok(self.db.execute("UPDATE mishap SET struck = 1 WHERE struck = 0", [])? == 1)
    }

    /// Writes a sale, and the stock that was read less one, in one transaction: unless the ledger
    /// checks tokens and has seen a later one.
    pub fn write(&mut self, sale: Sale) -> Result<Written, Failure> {
        let all = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let highest: i64 =
            all.prepare_cached("SELECT highest FROM fence")?.query_row([], |row| row.get(0))?;
        if sale.checked && sale.token < unsigned(highest) {
            return Ok(Written::Refused { highest: unsigned(highest) });
        }
        let was: i64 =
            all.prepare_cached("SELECT remaining FROM stock")?.query_row([], |row| row.get(0))?;
        all.prepare_cached("UPDATE fence SET highest = max(highest, ?1)")?
            .execute([signed(sale.token)])?;
        all.prepare_cached(
            "INSERT INTO ledger (person, process, token, at) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![
            sale.person,
            sale.process,
            signed(sale.token),
            signed(sale.at)
        ])?;
        let is = sale.read - 1;
        all.prepare_cached("UPDATE stock SET remaining = ?1")?.execute([is])?;
        all.commit()?;
        Ok(Written::Done { was, is })
    }

    /// The books, for so many processes.
    pub fn books(&self, processes: u32) -> Result<Books, Failure> {
        let count = |sql: &str| self.db.query_row(sql, [], |row| row.get::<_, u32>(0));
        let shares = (0..processes)
            .map(|process| {
                let sql = "SELECT count(*) FROM ledger WHERE process = ?1";
                self.db.query_row(sql, [process], |row| row.get(0))
            })
            .collect::<Result<Vec<u32>, _>>()?;
        Ok(Books {
            sold: count("SELECT count(*) FROM ledger")?,
            twice: count(
                "SELECT count(*) FROM
                 (SELECT 1 FROM ledger GROUP BY person HAVING count(*) > 1)",
            )?,
            shares,
            out_of_order: count(
                "SELECT count(*) FROM ledger AS later JOIN ledger AS earlier
                 ON earlier.id = later.id - 1 WHERE later.token <= earlier.token",
            )?,
            remaining: self.stock()?,
        })
    }
}

/// SQLite's integers are signed; tokens and clock readings stay far below the sign.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
