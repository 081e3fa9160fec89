//! The faults of a run.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use fencelock_testkit::{Fault as Way, Proxy, RedisServer};

use crate::dice::Dice;
use crate::history::LIMIT;
use crate::run::Kind;
use crate::run::crew::Crew;
use crate::run::store::Store;

/// What lasts until it is mended.
enum Lasting {
    /// An actor is stopped.
    Stopped(String),
    /// An actor's ways are disturbed; when they are mended they may be cut as well.
    Way(usize, Range<usize>, bool),
    /// An actor's ways are slow, and are to be cut off altogether afterwards.
    Slow(usize, Range<usize>),
    /// The server is stopped.
    Paused,
    /// The server is dead.
    Dead,
    /// The server's memory is full.
    Full,
    /// Somebody else writes to the file.
    Busy(rusqlite::Connection),
    /// Of several servers this one is dead.
    Down(usize),
    /// This one is stopped, and whether the store may forget by that.
    Still(usize, bool),
    /// This Sentinel is stopped.
    Deaf(usize),
    /// This master's replicas do not hear it, and it is to die before they do.
    Alone(usize, Vec<usize>),
    /// This slot is on its way from one server to another.
    Moving(u16, usize, usize),
    /// One takes over from another; whether the store may forget meanwhile.
    Settling(bool),
}

/// Which faults there are where clients reach servers over a network, and how often each is drawn.
const REACHED: [(&str, u64); 10] = [
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
];
/// More of one server's.
const SERVED: [(&str, u64); 1] = [("SIGSTOP of the server", 4)];
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
/// More where one Redis server takes over from another.
const SEVERAL: [(&str, u64); 6] = [
    ("master killed", 4),
    ("master killed, its last writes with it", 3),
    ("SIGSTOP of a master", 5),
    ("SIGSTOP of a replica", 3),
    ("failover that is planned", 5),
    ("FLUSHALL of a master", 2),
];
/// More of Sentinels'.
const SENTINEL: [(&str, u64); 1] = [("SIGSTOP of a Sentinel", 3)];
/// More of a cluster's.
const CLUSTER: [(&str, u64); 1] = [("slot moved", 9)];
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
        Kind::Redis => [&REACHED[..], &SERVED, &REDIS].concat(),
        Kind::Sentinel => [&REACHED[..], &SEVERAL, &SENTINEL].concat(),
        Kind::Cluster => [&REACHED[..], &SEVERAL, &CLUSTER].concat(),
        Kind::ZooKeeper => [&REACHED[..], &SERVED, &ZOOKEEPER].concat(),
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
            if let Some((pause, next)) = over.mend(store, crew)? {
                self.lasting.push((now + Duration::from_millis(pause), next));
            }
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
        let end = Instant::now() + LIMIT * 2;
        while let Some((_, over)) = self.lasting.pop() {
            if let Some((_, next)) = over.mend(store, crew)? {
                self.lasting.push((end, next));
                std::thread::sleep(Duration::from_millis(20));
            }
            if Instant::now() > end {
                return Err(io::Error::other("the servers do not come to rest"));
            }
        }
        Ok(())
    }

    /// Whether the server, or one of several, is as good as gone.
    fn away(&self) -> bool {
        use Lasting::{Busy, Slow, Stopped, Way};
        let away = |it: &Lasting| !matches!(it, Stopped(_) | Way(..) | Slow(..) | Busy(_));
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
            |it| matches!(it.1, Lasting::Way(which, ..) | Lasting::Slow(which, _) if which == who),
        );
        // One of its ways, or all.
        let all = member.ways.len();
        let ways = match all > 1 && dice.chance(50) {
            true => {
                let one = dice.below(all as u64) as usize;
                one..one + 1
            }
            false => 0..all,
        };
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
            "connection cut" => member.ways[ways].iter().for_each(Proxy::cut),
            "all connections cut" => {
                crew.members.iter().flat_map(|it| &it.ways).for_each(Proxy::cut);
            }
            "requests swallowed"
            | "replies swallowed"
            | "slow connection"
            | "connections refused" => {
                if disturbed {
                    return Ok(false);
                }
                let how = match fault {
                    "requests swallowed" => Way::SwallowRequests,
                    "replies swallowed" => Way::SwallowReplies,
                    "slow connection" => Way::Delay(Duration::from_millis(dice.between(2, 150))),
                    _ => Way::Refuse,
                };
                for proxy in &member.ways[ways.clone()] {
                    proxy.set(how);
                    if how == Way::Refuse {
                        proxy.cut();
                    }
                }
                // What was swallowed leaves a hole, which no connection of TCP has.
                let hole = fault.ends_with("swallowed");
                let cut = dice.chance(50) || hole;
                self.lasting.push((lasts(dice, 20, 2500), Lasting::Way(who, ways, cut)));
            }
            "slow connection, then cut off" => {
                if disturbed {
                    return Ok(false);
                }
                // Both ways together stay below the request timeout.
                let how = Way::Delay(Duration::from_millis(dice.between(50, 180)));
                member.ways[ways.clone()].iter().for_each(|it| it.set(how));
                self.lasting.push((lasts(dice, 200, 1500), Lasting::Slow(who, ways)));
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
            _ => return self.strike_several(fault, dice, store, crew),
        }
        Ok(true)
    }

    /// What befalls one of several servers.
    fn strike_several(
        &mut self,
        fault: &str,
        dice: &mut Dice,
        store: &mut Store,
        crew: &Crew,
    ) -> io::Result<bool> {
        let lock = crew.wanted(dice);
        let Some(several) = store.several() else { return Ok(false) };
        let Some(master) = several.master_of(lock) else { return Ok(false) };
        let replicas = several.replicas_of(master);
        let lasting = match fault {
            "master killed" => {
                several.server(master).kill()?;
                Lasting::Down(master)
            }
            "master killed, its last writes with it" => {
                for replica in &replicas {
                    several.server(*replica).stop()?;
                }
                // What was sent to one that stands still is read by it later.
                let _ = several.server(master).cli(&["CLIENT", "KILL", "TYPE", "REPLICA"]);
                Lasting::Alone(master, replicas)
            }
            "SIGSTOP of a master" => {
                several.server(master).stop()?;
                Lasting::Still(master, true)
            }
            "SIGSTOP of a replica" => {
                let Some(replica) = replicas.first() else { return Ok(false) };
                several.server(*replica).stop()?;
                Lasting::Still(*replica, false)
            }
            "SIGSTOP of a Sentinel" => {
                let which = dice.below(several.sentinels().len() as u64) as usize;
                several.sentinels()[which].stop()?;
                Lasting::Deaf(which)
            }
            "failover that is planned" if several.fail_over(master) => Lasting::Settling(false),
            "FLUSHALL of a master" => {
                store.forgetting(false);
                if let Some(several) = store.several() {
                    let _ = several.server(master).cli(&["FLUSHALL"]);
                }
                store.forgetting(true);
                return Ok(true);
            }
            "slot moved" => {
                let Some((slot, from, to)) = several.elsewhere(lock) else { return Ok(false) };
                several.begin_move(slot, from, to);
                Lasting::Moving(slot, from, to)
            }
            _ => return Ok(false),
        };
        // Only a failover by which the master hands all over loses nothing.
        let (lasting, span) = match lasting {
            Lasting::Moving(..) => (lasting, (0, 1500)),
            Lasting::Deaf(_) => (lasting, (100, 4000)),
            Lasting::Settling(_) => (Lasting::Settling(!several.hands_over()), (300, 300)),
            Lasting::Alone(..) => (lasting, (20, 300)),
            Lasting::Still(..) => (lasting, (50, 6000)),
            lasting => (lasting, (0, 6000)),
        };
        use Lasting::{Alone, Down, Settling, Still};
        if matches!(lasting, Down(_) | Alone(..) | Settling(true) | Still(_, true)) {
            store.forgetting(false);
        }
        let end = Instant::now() + Duration::from_millis(dice.between(span.0, span.1));
        self.lasting.push((end, lasting));
        Ok(true)
    }
}

/// How often one looks whether the servers have come to rest, in milliseconds.
const LOOK: u64 = 100;

impl Lasting {
    /// Mends it; gives what follows, and in how many milliseconds.
    fn mend(self, store: &mut Store, crew: &mut Crew) -> io::Result<Option<(u64, Lasting)>> {
        match self {
            Lasting::Stopped(name) => {
                if let Some(member) = crew.members.iter_mut().find(|it| it.actor.name() == name) {
                    member.stopped = false;
                    member.actor.cont();
                }
            }
            Lasting::Slow(who, ways) => {
                crew.members[who].ways[ways.clone()]
                    .iter()
                    .for_each(|it| it.set(Way::SwallowRequests));
                return Ok(Some((2500, Lasting::Way(who, ways, true))));
            }
            Lasting::Way(who, ways, cut) => {
                for proxy in &crew.members[who].ways[ways] {
                    if cut { proxy.mend() } else { proxy.set(Way::Pass) }
                }
            }
            Lasting::Paused => store.cont()?,
            Lasting::Dead => store.restart()?,
            Lasting::Full => store.command(&["CONFIG", "SET", "maxmemory", "0"]),
            Lasting::Busy(connection) => drop(connection),
            Lasting::Settling(forgets) => {
                if store.several().is_some_and(|it| !it.is_whole()) {
                    return Ok(Some((LOOK, Lasting::Settling(forgets))));
                }
                if forgets {
                    store.forgetting(true);
                }
            }
            of_several => return of_several.mend_several(store),
        }
        Ok(None)
    }

    fn mend_several(self, store: &mut Store) -> io::Result<Option<(u64, Lasting)>> {
        let Some(several) = store.several() else { return Ok(None) };
        Ok(match self {
            Lasting::Down(which) => {
                several.server(which).restart()?;
                Some((LOOK, Lasting::Settling(true)))
            }
            Lasting::Still(which, forgets) => {
                several.server(which).cont()?;
                Some((LOOK, Lasting::Settling(forgets)))
            }
            Lasting::Deaf(which) => {
                several.sentinels()[which].cont()?;
                None
            }
            Lasting::Alone(master, replicas) => {
                several.server(master).kill()?;
                for replica in replicas {
                    several.server(replica).cont()?;
                }
                Some((4000, Lasting::Down(master)))
            }
            Lasting::Moving(slot, from, to) => {
                several.end_move(slot, from, to);
                None
            }
            _ => None,
        })
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
