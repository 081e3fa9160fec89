//! What the client's thread looks for in the file while others change it.

use std::collections::BTreeMap;

use fencelock_engine::reply::{Abandoned, Body, Failure, Push, Reply, Standing, State};
use fencelock_engine::request::Op;
use fencelock_engine::{HoldId, Name};
use rusqlite::{Connection, OptionalExtension, params};

use crate::news::{self, News};
use crate::rows::{integer, number};

type Result<T> = rusqlite::Result<T>;

/// The client's holds and queued holds, as its replies tell of them.
#[derive(Default)]
pub(crate) struct Watch {
    queued: BTreeMap<HoldId, Queued>,
    held: BTreeMap<HoldId, Held>,
    /// What was looked at, and is to be deleted from the file.
    pub(crate) seen: Vec<News>,
}

struct Queued {
    lock: Name,
    /// The lock's last token when the client was told that it looks free; told once for each.
    told: Option<u64>,
}

struct Held {
    /// Gone before this instant, it was broken; after it, it had expired.
    deadline: u64,
    /// The client knows that others wait.
    wanted: bool,
}

impl Watch {
    /// Whether there is nothing to look for.
    pub(crate) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.held.is_empty()
    }

    /// Whether a grant may come.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Follows a reply.
    pub(crate) fn note(&mut self, op: &Op, result: &std::result::Result<Reply, Failure>) {
        let Ok(reply) = result else { return };
        match (op, &reply.body) {
            (Op::Acquire(ask), Body::Acquire(state)) => {
                if let Some(release) = &ask.after
                    && state.standing != Standing::Late
                {
                    self.forget(release.hold);
                }
                self.stand(reply.now, &ask.lock, ask.hold, state);
            }
            (Op::Beat(beats), Body::Beat(states)) => {
                for (beat, state) in beats.iter().zip(states) {
                    if let Ok(state) = state {
                        self.stand(reply.now, &beat.lock, beat.hold, state);
                    }
                }
            }
            // What is not converted is held as before.
            (Op::Convert(ask), Body::Convert(state)) if state.standing != Standing::Contended => {
                self.stand(reply.now, &ask.lock, ask.hold, state);
            }
            (Op::Release(release), Body::Release(_)) => self.forget(release.hold),
            _ => {}
        }
    }

    fn forget(&mut self, hold: HoldId) {
        self.queued.remove(&hold);
        self.held.remove(&hold);
    }

    fn stand(&mut self, now: u64, lock: &Name, hold: HoldId, state: &State) {
        match state.standing {
            Standing::Granted => {
                self.queued.remove(&hold);
                let lease = u64::try_from(state.lease.as_micros()).unwrap_or(u64::MAX);
                let deadline = now.saturating_add(lease);
                let wanted = state.others_waiting > 0;
                self.held.insert(hold, Held { deadline, wanted });
            }
            Standing::Queued => {
                self.held.remove(&hold);
                let queued = || Queued { lock: lock.clone(), told: None };
                self.queued.entry(hold).or_insert_with(queued);
            }
            // A late repetition says nothing about what an earlier one did; and here nothing is confirmed
            // by anybody else.
            Standing::Late | Standing::Unconfirmed { .. } => {}
            Standing::Contended
            | Standing::Released
            | Standing::Gone
            | Standing::NotHeld
            | Standing::Deadlock
            | Standing::Doomed { .. } => {
                self.forget(hold);
            }
        }
    }

    /// Looks at what was announced to this client, in the transaction that is open, and gives what
    /// is new.
    pub(crate) fn look(&mut self, conn: &Connection, client: &str, now: u64) -> Result<Vec<Push>> {
        self.seen = news::of(conn, client)?;
        let mut found = Vec::new();
        for News { lock, hold, .. } in &self.seen {
            if let Some(queued) = self.queued.get_mut(hold) {
                found.extend(queued.look(conn, *hold, now)?);
            } else if let Some(held) = self.held.get_mut(hold) {
                found.extend(held.look(conn, lock, *hold, now)?);
            }
        }
        for push in &found {
            self.told(conn, push, now)?;
        }
        Ok(found)
    }

    /// Follows what was found.
    fn told(&mut self, conn: &Connection, push: &Push, now: u64) -> Result<()> {
        match push {
            Push::Granted { lock, hold, others_waiting, .. } => {
                self.queued.remove(hold);
                let deadline = deadline(conn, lock, *hold)?.unwrap_or(now);
                self.held.insert(*hold, Held { deadline, wanted: *others_waiting > 0 });
            }
            Push::Broken { hold, .. } => self.forget(*hold),
            Push::Changed { hold, .. } => {
                self.held.remove(hold);
            }
            Push::Wanted { .. } => {}
        }
        Ok(())
    }
}

impl Held {
    fn look(
        &mut self,
        conn: &Connection,
        lock: &Name,
        hold: HoldId,
        now: u64,
    ) -> Result<Option<Push>> {
        let lock = lock.clone();
        if deadline(conn, &lock, hold)?.is_none() {
            let broken = now < self.deadline;
            return Ok(Some(match broken {
                true => Push::Broken { lock, hold },
                false => Push::Changed { lock, hold },
            }));
        }
        let knew = std::mem::replace(&mut self.wanted, waiting(conn, &lock, now)?);
        Ok((self.wanted && !knew).then_some(Push::Wanted { lock, hold }))
    }
}

impl Queued {
    fn look(&mut self, conn: &Connection, hold: HoldId, now: u64) -> Result<Option<Push>> {
        let lock = self.lock.clone();
        let Some(head) = head(conn, &lock)? else { return Ok(self.changed(hold, 0)) };
        let last = head.last;
        if let Some(granted) = granted(conn, &lock, hold)? {
            if granted.deadline <= now {
                return Ok(self.changed(hold, last));
            }
            let Head { token, last, abandoned, losses } = granted.tells(head);
            let others_waiting = u32::from(waiting(conn, &lock, now)?);
            return Ok(Some(Push::Granted {
                lock,
                hold,
                token,
                end: last,
                abandoned,
                losses,
                others_waiting,
            }));
        }
        // Still queued: then there was nothing to tell.
        let there = queued(conn, &lock, hold)?;
        Ok(if there { None } else { self.changed(hold, last) })
    }

    fn changed(&mut self, hold: HoldId, last: u64) -> Option<Push> {
        if self.told == Some(last) {
            return None;
        }
        self.told = Some(last);
        Some(Push::Changed { lock: self.lock.clone(), hold })
    }
}

struct Head {
    token: u64,
    last: u64,
    abandoned: Abandoned,
    losses: u32,
}

fn head(conn: &Connection, lock: &Name) -> Result<Option<Head>> {
    conn.prepare_cached(
        "SELECT token, last, abandoned, losses FROM fencelock_locks WHERE name = ?1",
    )?
    .query_row([lock.as_str()], |row| {
        let abandoned = match row.get(2)? {
            0 => Abandoned::No,
            1 => Abandoned::Yes,
            _ => Abandoned::Unknown,
        };
        let (token, last) = (number(row, 0)?, number(row, 1)?);
        Ok(Head { token, last, abandoned, losses: row.get(3)? })
    })
    .optional()
}

/// A hold that was granted.
struct Granted {
    deadline: u64,
    /// Of one that is not exclusive: its own token.
    token: Option<u64>,
    /// It shares the lock, as a reader.
    shared: bool,
}

impl Granted {
    /// What its holder is told, of a lock that is so.
    fn tells(&self, head: Head) -> Head {
        let Some(token) = self.token else { return head };
        let abandoned = if self.shared { head.abandoned } else { Abandoned::No };
        Head { token, last: token, abandoned, losses: 0 }
    }
}

fn granted(conn: &Connection, lock: &Name, hold: HoldId) -> Result<Option<Granted>> {
    conn.prepare_cached(
        "SELECT deadline, token, coalesce(mode = 'shared', 0) FROM fencelock_holds
         WHERE name = ?1 AND hold = ?2",
    )?
    .query_row(params![lock.as_str(), hold.to_string()], |row| {
        let token = row.get::<_, Option<i64>>(1)?.map(|_| number(row, 1)).transpose()?;
        Ok(Granted { deadline: number(row, 0)?, token, shared: row.get(2)? })
    })
    .optional()
}

fn deadline(conn: &Connection, lock: &Name, hold: HoldId) -> Result<Option<u64>> {
    conn.prepare_cached("SELECT deadline FROM fencelock_holds WHERE name = ?1 AND hold = ?2")?
        .query_row(params![lock.as_str(), hold.to_string()], |row| number(row, 0))
        .optional()
}

fn queued(conn: &Connection, lock: &Name, hold: HoldId) -> Result<bool> {
    conn.prepare_cached("SELECT 1 FROM fencelock_waiters WHERE name = ?1 AND hold = ?2")?
        .exists(params![lock.as_str(), hold.to_string()])
}

/// Whether anybody waits who would not be passed over.
fn waiting(conn: &Connection, lock: &Name, now: u64) -> Result<bool> {
    conn.prepare_cached(
        "SELECT 1 FROM fencelock_waiters
         WHERE name = ?1 AND silent = 0 AND heard <= ?2 AND heard + silence > ?2",
    )?
    .exists(params![lock.as_str(), integer(now)])
}
