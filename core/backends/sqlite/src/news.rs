//! What a client is to look at: rows that say which of its holds something was announced to.
//!
//! A client that waits or holds reads its own rows when the file has changed, however many locks it
//! has and whatever else was written. It deletes those it has seen with what it writes next.

use std::collections::BTreeMap;

use fencelock_engine::reply::Push;
use fencelock_engine::store::{Announce, Delivery};
use fencelock_engine::{HoldId, Name};
use rusqlite::{Connection, params};

use crate::rows::{integer, is_damaged_row};

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct News {
    pub lock: Name,
    pub hold: HoldId,
    at: i64,
}

/// Notes who is to look at the file. A client of this process is woken after the commit; one of
/// another process sees that the file has changed. Either counts as reached.
#[derive(Default)]
pub(crate) struct Post {
    told: BTreeMap<(Name, HoldId), String>,
}

impl Announce for Post {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        let (Push::Granted { lock, hold, .. }
        | Push::Wanted { lock, hold }
        | Push::Broken { lock, hold }
        | Push::Changed { lock, hold }) = push;
        self.told.insert((lock, hold), client.to_owned());
        Delivery::Delivered
    }
}

impl Post {
    /// Writes the rows, and gives the clients.
    pub(crate) fn save(self, conn: &Connection, now: u64) -> rusqlite::Result<Vec<String>> {
        let mut clients = Vec::new();
        for ((lock, hold), client) in self.told {
            // Another one than was seen, even at the same instant.
            conn.prepare_cached(
                "INSERT INTO fencelock_news VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET client = ?3, at = max(?4, at + 1)",
            )?
            .execute(params![
                lock.as_str(),
                hold.to_string(),
                client,
                integer(now)
            ])?;
            clients.push(client);
        }
        clients.sort();
        clients.dedup();
        Ok(clients)
    }
}

/// What there is for a client.
pub(crate) fn of(conn: &Connection, client: &str) -> rusqlite::Result<Vec<News>> {
    let sql = "SELECT name, hold, at FROM fencelock_news WHERE client = ?1";
    let mut query = conn.prepare_cached(sql)?;
    let rows = query.query_map([client], |row| {
        let lock = Name::new(row.get_ref(0)?.as_str()?).ok();
        let hold = HoldId::parse(row.get_ref(1)?.as_str()?);
        let at = row.get(2)?;
        Ok(lock.zip(hold).map(|(lock, hold)| News { lock, hold, at }))
    })?;
    let mut news = Vec::new();
    for row in rows {
        match row {
            Ok(one) => news.extend(one),
            Err(error) if is_damaged_row(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(news)
}

/// Deletes what was seen, but not what has been announced since.
pub(crate) fn forget(conn: &Connection, seen: &[News]) -> rusqlite::Result<()> {
    for News { lock, hold, at } in seen {
        conn.prepare_cached(
            "DELETE FROM fencelock_news WHERE name = ?1 AND hold = ?2 AND at = ?3",
        )?
        .execute(params![lock.as_str(), hold.to_string(), at])?;
    }
    Ok(())
}
