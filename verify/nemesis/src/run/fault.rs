//! The faults of a run.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use fencelock_testkit::{Fault as Way, RedisServer};

use crate::dice::Dice;
use crate::run::Kind;
use crate::run::crew::Crew;
use crate::run::store::Store;

/// What lasts until it is mended.
enum Lasting {
    /// An actor is stopped.
    Stopped(String),
    /// An actor's way is disturbed; when it is mended it may be cut as well.
    Way(usize, bool),
    /// An actor's way is slow, and is to be cut off altogether afterwards.
    Slow(usize),
    /// The server is stopped.
    Paused,
    /// The server is dead.
    Dead,
    /// The server's memory is full.
    Full,
    /// Somebody else writes to the file.
    Busy(rusqlite::Connection),
}

/// Which faults there are where clients reach a server over a network, and how often each is drawn.
const SERVED: [(&str, u64); 11] = [
    ("kill -9 of a client", 4),
    ("SIGSTOP of a client", 6),
    ("wall clock of a client set", 3),
    ("connection cut", 8),
    ("all connections cut", 3),
    ("requests swallowed", 6),
    ("replies swallowed", 6),
    ("slow connection", 6),
    ("slow connection, then cut off", 6),
    ("connections refused", 3),
    ("SIGSTOP of the server", 4),
];
/// More of Redis'.
const REDIS: [(&str, u64); 7] = [
    ("server killed, empty afterwards", 2),
    ("FLUSHALL", 2),
    ("keys of a lock deleted", 2),
    ("SCRIPT FLUSH", 3),
    ("memory full", 3),
    ("server's clock set forward", 2),
    ("server's clock set back", 2),
];
/// More of ZooKeeper's.
const ZOOKEEPER: [(&str, u64); 1] = [("server killed", 2)];
const SQLITE: [(&str, u64); 4] = [
    ("kill -9 of a client", 4),
    ("SIGSTOP of a client", 6),
    ("wall clock of a client set", 4),
    ("another writer has the file", 4),
];

/// The faults of a store.
pub(crate) fn of(kind: Kind) -> Vec<(&'static str, u64)> {
    match kind {
        Kind::Redis => [&SERVED[..], &REDIS].concat(),
        Kind::ZooKeeper => [&SERVED[..], &ZOOKEEPER].concat(),
        Kind::Sqlite => SQLITE.to_vec(),
    }
}

/// The faults of a run: what was done, and what is to be mended.
pub(crate) struct Faults {
    pub counts: BTreeMap<&'static str, usize>,
    table: Vec<(&'static str, u64)>,
    only: Option<&'static str>,
    lasting: Vec<(Instant, Lasting)>,
    next: Instant,
}

impl Faults {
    pub fn new(kind: Kind, only: Option<&'static str>) -> Faults {
        // The first comes when the actors are at work.
        let next = Instant::now() + Duration::from_millis(700);
        Faults { counts: BTreeMap::new(), table: of(kind), only, lasting: Vec::new(), next }
    }

    /// Mends what is over, and does what is due.
    pub fn turn(&mut self, dice: &mut Dice, store: &mut Store, crew: &mut Crew) -> io::Result<()> {
        let now = Instant::now();
        while let Some(index) = self.lasting.iter().position(|it| it.0 <= now) {
            let (_, over) = self.lasting.swap_remove(index);
            if let Lasting::Slow(who) = over
                && let Some(proxy) = &crew.members[who].proxy
            {
                proxy.set(Way::SwallowRequests);
                self.lasting.push((now + Duration::from_millis(2500), Lasting::Way(who, true)));
                continue;
            }
            over.mend(store, crew)?;
        }
        if self.next <= now {
            // One that is alone leaves time to see what follows from it.
            let pause = if self.only.is_some() { (150, 1000) } else { (30, 400) };
            self.next = now + Duration::from_millis(dice.between(pause.0, pause.1));
            let mut drawn = dice.below(self.table.iter().map(|it| it.1).sum());
            let drawn = self.table.iter().find(|it| {
                let here = drawn < it.1;
                drawn = drawn.saturating_sub(it.1);
                here
            });
            let fault = self.only.or(drawn.map(|it| it.0));
            if let Some(fault) = fault
                && self.strike(fault, dice, store, crew)?
            {
                *self.counts.entry(fault).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Mends everything.
    pub fn mend(&mut self, store: &mut Store, crew: &mut Crew) -> io::Result<()> {
        self.lasting.drain(..).try_for_each(|(_, over)| over.mend(store, crew))
    }

    /// Whether the server is as good as gone.
    fn away(&self) -> bool {
        let away = |it: &Lasting| matches!(it, Lasting::Paused | Lasting::Dead | Lasting::Full);
        self.lasting.iter().any(|it| away(&it.1))
    }

    fn strike(
        &mut self,
        fault: &str,
        dice: &mut Dice,
        store: &mut Store,
        crew: &mut Crew,
    ) -> io::Result<bool> {
        let who = crew.victim(dice);
        let member = &mut crew.members[who];
        let lasts = |dice: &mut Dice, low, high| {
            Instant::now() + Duration::from_millis(dice.between(low, high))
        };
        // What is away cannot be asked for anything.
        if self.away() && !fault.contains("client") && !fault.contains("connection") {
            return Ok(false);
        }
        let disturbed = self.lasting.iter().any(
            |it| matches!(it.1, Lasting::Way(which, _) | Lasting::Slow(which) if which == who),
        );
        match fault {
            "kill -9 of a client" => {
                crew.kill(who, store)?;
            }
            "SIGSTOP of a client" => {
                if std::mem::replace(&mut member.stopped, true) {
                    return Ok(false);
                }
                member.actor.stop();
                let name = member.actor.name().to_owned();
                self.lasting.push((lasts(dice, 20, 3000), Lasting::Stopped(name)));
            }
            "wall clock of a client set" => {
                let hours = dice.between(0, 10) as i64 - 5;
                member.clock.shift(hours * 3_600_000)?;
            }
            "connection cut" => member.proxy.iter().for_each(|it| it.cut()),
            "all connections cut" => {
                crew.members.iter().filter_map(|it| it.proxy.as_ref()).for_each(|it| it.cut());
            }
            "requests swallowed"
            | "replies swallowed"
            | "slow connection"
            | "connections refused" => {
                if disturbed {
                    return Ok(false);
                }
                let Some(proxy) = &member.proxy else { return Ok(false) };
                proxy.set(match fault {
                    "requests swallowed" => Way::SwallowRequests,
                    "replies swallowed" => Way::SwallowReplies,
                    "slow connection" => Way::Delay(Duration::from_millis(dice.between(2, 150))),
                    _ => Way::Refuse,
                });
                if fault == "connections refused" {
                    proxy.cut();
                }
                // What was swallowed leaves a hole, which no connection of TCP has.
                let hole = fault.ends_with("swallowed");
                let cut = dice.chance(50) || hole;
                self.lasting.push((lasts(dice, 20, 2500), Lasting::Way(who, cut)));
            }
            "slow connection, then cut off" => {
                let Some(proxy) = member.proxy.as_ref().filter(|_| !disturbed) else {
                    return Ok(false);
                };
                // Both ways together stay below the request timeout.
                proxy.set(Way::Delay(Duration::from_millis(dice.between(50, 180))));
                self.lasting.push((lasts(dice, 200, 1500), Lasting::Slow(who)));
                // Until it has been granted to another.
                crew.linger(who, Duration::from_secs(4));
            }
            "SIGSTOP of the server" => {
                store.stop()?;
                self.lasting.push((lasts(dice, 50, 3000), Lasting::Paused));
            }
            "server killed, empty afterwards" | "server killed" => {
                store.kill()?;
                self.lasting.push((lasts(dice, 0, 1500), Lasting::Dead));
            }
            "FLUSHALL" => store.forget(|it| it.cli(&["FLUSHALL"]).map(drop).map_err(other))?,
            "keys of a lock deleted" => store.forget(delete_some)?,
            "SCRIPT FLUSH" => store.command(&["SCRIPT", "FLUSH"]),
            "memory full" => {
                store.command(&["CONFIG", "SET", "maxmemory", "1"]);
                self.lasting.push((lasts(dice, 100, 2500), Lasting::Full));
            }
            "server's clock set forward" => store.step(dice.between(300, 8000) as i64)?,
            "server's clock set back" => store.step(-(dice.between(300, 8000) as i64))?,
            "another writer has the file" => {
                let busy = |it: &(Instant, Lasting)| matches!(it.1, Lasting::Busy(_));
                if self.lasting.iter().any(busy) {
                    return Ok(false);
                }
                let Some(busy) = store.busy()? else { return Ok(false) };
                self.lasting.push((lasts(dice, 20, 2500), Lasting::Busy(busy)));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl Lasting {
    fn mend(self, store: &mut Store, crew: &mut Crew) -> io::Result<()> {
        match self {
            Lasting::Stopped(name) => {
                if let Some(member) = crew.members.iter_mut().find(|it| it.actor.name() == name) {
                    member.stopped = false;
                    member.actor.cont();
                }
            }
            Lasting::Slow(who) => Lasting::Way(who, true).mend(store, crew)?,
            Lasting::Way(who, cut) => {
                if let Some(proxy) = &crew.members[who].proxy {
                    if cut { proxy.mend() } else { proxy.set(Way::Pass) }
                }
            }
            Lasting::Paused => store.cont()?,
            Lasting::Dead => store.restart()?,
            Lasting::Full => store.command(&["CONFIG", "SET", "maxmemory", "0"]),
            Lasting::Busy(connection) => drop(connection),
        }
        Ok(())
    }
}

/// Deletes one of the keys, as an eviction would.
fn delete_some(server: &mut RedisServer) -> io::Result<()> {
    let mut connection = server.connection().map_err(other)?;
    let key: Option<Vec<u8>> = redis::cmd("RANDOMKEY").query(&mut connection).map_err(other)?;
    match key {
        Some(key) => redis::cmd("DEL").arg(key).exec(&mut connection).map_err(other),
        None => Ok(()),
    }
}

fn other(error: redis::RedisError) -> io::Error {
    io::Error::other(error)
}
