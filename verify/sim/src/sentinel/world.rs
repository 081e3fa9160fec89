//! Failovers, planned and not, cuts and pauses, in the order that a seed draws.

use std::collections::{BTreeMap, BinaryHeap};

use crate::clock::{Instant, MS, SEC, US};
use crate::dice::Dice;
use crate::sentinel::cast::{Reads, Role, Sentinel, Server, server_at};
use crate::sentinel::client::{Client, Wire, Wish, at};

/// How long faults go on.
const TROUBLE: Instant = 40 * SEC;
/// How long after the last fault the client may take to be where it belongs.
const CALM: Instant = 20 * SEC;
/// How long a client may stay with a lower epoch than one it can hear of: a round of questions is 2 s, and an
/// answer, or a new connection to a Sentinel, takes its time.
const LATE: Instant = 4 * SEC;

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How many failovers there were.
    pub failovers: u32,
    /// How many sessions were made.
    pub sessions: u32,
    /// How often a session was left although it lived.
    pub left: u32,
    /// What was done, as a number: the same seed has the same.
    pub hash: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    /// A connection is made, or refused.
    Dialled(Wire, u32),
    /// A Sentinel has said this epoch to the client.
    Heard(u32, Wire, u64),
    /// Bytes of the other side arrive.
    Bytes(Wire, u32, Vec<u8>),
    Fault,
    /// The session is answered again after a doubt.
    Answers,
    /// A Sentinel hears of an epoch: who is the master since then.
    Learn(usize, u64, usize, usize),
    /// A server changes its mind.
    Becomes(usize, bool),
}

/// A connection, told apart from those before.
struct Link {
    number: u32,
    /// The server at its other end, if it is one.
    server: Option<usize>,
    /// What that said of itself.
    role: Role,
    reads: Reads,
}

struct World {
    now: Instant,
    dice: Dice,
    queue: BinaryHeap<std::cmp::Reverse<(Instant, u64, Event)>>,
    order: u64,
    servers: Vec<Server>,
    sentinels: Vec<Sentinel>,
    /// Which epoch made which server the master.
    reigns: BTreeMap<u64, usize>,
    client: Client,
    woken_at: Option<Instant>,
    links: BTreeMap<Wire, Link>,
    numbers: u32,
    /// The highest epoch that the client was told of.
    heard: u64,
    /// The server of the session that is up, and since when.
    up: Option<(usize, Instant)>,
    outcome: Outcome,
}

/// Runs a seed.
///
/// # Errors
/// What was not as it should be.
pub fn run(seed: u64) -> Result<Outcome, String> {
    let mut dice = Dice::new(seed);
    let server = |role| Server { role, down_until: 0, mute_until: 0 };
    let sentinel = Sentinel {
        epoch: 1,
        master: 0,
        listed: 0,
        listed_until: 0,
        down_until: 0,
        mute_until: 0,
        since: 0,
    };
    let seeds = [dice.seed(), dice.seed()];
    let mut world = World {
        now: 0,
        queue: BinaryHeap::new(),
        order: 0,
        servers: vec![server(Role::Master), server(Role::Replica), server(Role::Replica)],
        sentinels: vec![sentinel; 3],
        reigns: BTreeMap::from([(1, 0)]),
        client: Client::new(0, 3, seeds),
        woken_at: None,
        links: BTreeMap::new(),
        numbers: 0,
        heard: 0,
        up: None,
        outcome: Outcome::default(),
        dice,
    };
    let wishes = world.client.wake(0);
    world.grant(wishes)?;
    world.plan(Event::Fault, SEC);
    while world.now < TROUBLE + CALM {
        world.step().map_err(|why| format!("seed {seed}, at {} ms: {why}", world.now / MS))?;
    }
    let master = world.reigns.values().next_back().copied();
    if world.up.map(|(server, _)| server) != master {
        let up = world.up;
        return Err(format!(
            "seed {seed}: in the end the session is {up:?}, the master {master:?}"
        ));
    }
    Ok(world.outcome)
}

impl World {
    fn plan(&mut self, event: Event, after: Instant) {
        self.order += 1;
        self.queue.push(std::cmp::Reverse((self.now + after, self.order, event)));
    }

    fn latency(&mut self) -> Instant {
        match self.dice.chance(30) {
            true => self.dice.between(MS, 400 * MS),
            false => self.dice.between(50 * US, 2 * MS),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let wake = self.client.next_wake().map(|wake| wake.since(at(0)).as_nanos() as Instant);
        if let Some(wake) = wake
            && self.woken_at.is_none_or(|planned| wake < planned)
        {
            self.woken_at = Some(wake);
            self.plan(Event::Wake, wake.saturating_sub(self.now));
        }
        let Some(std::cmp::Reverse((when, _, event))) = self.queue.pop() else {
            self.now = TROUBLE + CALM;
            return Ok(());
        };
        self.now = self.now.max(when);
        self.judge()?;
        self.outcome.hash = self.outcome.hash.rotate_left(7) ^ when ^ (kind(&event) << 40);
        match event {
            Event::Wake => {
                self.woken_at = None;
                let wishes = self.client.wake(self.now);
                self.grant(wishes)
            }
            Event::Dialled(wire, number) => self.dialled(wire, number),
            Event::Heard(number, wire, epoch) => {
                if self.is_current(wire, number) {
                    self.heard = self.heard.max(epoch);
                }
                Ok(())
            }
            Event::Bytes(wire, number, bytes) => self.arrive(wire, number, &bytes),
            Event::Fault => self.fault(),
            Event::Answers => {
                let wishes = self.client.doubt(self.now, false);
                self.grant(wishes)
            }
            Event::Learn(sentinel, epoch, master, old) => {
                self.learn(sentinel, epoch, master, old);
                Ok(())
            }
            Event::Becomes(server, master) => {
                // Who was made the master again meanwhile stays it.
                if master || self.reigns.values().next_back() != Some(&server) {
                    self.servers[server].role = if master { Role::Master } else { Role::Replica };
                    // Its clients are thrown out, mostly.
                    if !master && self.dice.chance(700) {
                        return self.cut_server(server);
                    }
                }
                Ok(())
            }
        }
    }

    /// Does what the client wants.
    fn grant(&mut self, wishes: Vec<Wish>) -> Result<(), String> {
        for wish in wishes {
            match wish {
                Wish::Dial(wire, node) => {
                    self.numbers += 1;
                    let server = node.as_ref().and_then(server_at);
                    let (number, role) = (self.numbers, Role::Master);
                    let link = Link { number, server, role, reads: Reads::default() };
                    self.links.insert(wire, link);
                    let after = self.latency();
                    self.plan(Event::Dialled(wire, self.numbers), after);
                }
                Wish::Say(wire, bytes) => {
                    let Some(link) = self.links.get_mut(&wire) else { continue };
                    let (number, server) = (link.number, link.server);
                    let commands = link.reads.commands(&bytes);
                    let answer: String = match (wire, server) {
                        (Wire::Sentinel(to), _) => {
                            let (now, sentinel) = (self.now, &self.sentinels[to]);
                            commands.iter().map(|words| sentinel.answer(now, words)).collect()
                        }
                        (Wire::Server, Some(server)) => {
                            let server = &self.servers[server];
                            link.role = server.role;
                            commands.iter().map(|words| server.answer(words)).collect()
                        }
                        (Wire::Server, None) => String::new(),
                    };
                    let after = self.reply(wire, number, answer.as_bytes());
                    if let Wire::Sentinel(to) = wire
                        && commands.iter().any(|words| words[0] == "SENTINEL")
                    {
                        let epoch = self.sentinels[to].epoch;
                        self.plan(Event::Heard(number, wire, epoch), after);
                    }
                }
                Wish::Close(wire) => {
                    // The session that is up has its own.
                    self.links.remove(&wire);
                }
                Wish::Up(true) => self.came_up()?,
                Wish::Up(false) => {
                    self.outcome.left += 1;
                    self.up = None;
                }
            }
        }
        Ok(())
    }

    /// Sends an answer, in pieces, as soon as the other side does not stand still; gives when all is there.
    fn reply(&mut self, wire: Wire, number: u32, bytes: &[u8]) -> Instant {
        let mute = match (wire, self.links.get(&wire).and_then(|link| link.server)) {
            (Wire::Sentinel(to), _) => self.sentinels[to].mute_until,
            (Wire::Server, Some(server)) => self.servers[server].mute_until,
            (Wire::Server, None) => 0,
        };
        let mut after = self.latency() + mute.saturating_sub(self.now);
        let piece = self.dice.between(1, 400) as usize;
        for bytes in bytes.chunks(piece) {
            self.plan(Event::Bytes(wire, number, bytes.to_vec()), after);
            after += 10 * US;
        }
        after
    }

    fn is_current(&self, wire: Wire, number: u32) -> bool {
        self.links.get(&wire).is_some_and(|link| link.number == number)
    }

    fn is_down(&self, wire: Wire) -> bool {
        match (wire, self.links.get(&wire).and_then(|link| link.server)) {
            (Wire::Sentinel(to), _) => self.sentinels[to].down_until > self.now,
            (Wire::Server, Some(server)) => self.servers[server].down_until > self.now,
            (Wire::Server, None) => true,
        }
    }

    fn dialled(&mut self, wire: Wire, number: u32) -> Result<(), String> {
        if !self.is_current(wire, number) {
            return Ok(());
        }
        let wishes = match self.is_down(wire) {
            true => {
                self.links.remove(&wire);
                self.client.failed(self.now, wire)
            }
            false => self.client.dialled(self.now, wire),
        };
        self.grant(wishes)
    }

    fn arrive(&mut self, wire: Wire, number: u32, bytes: &[u8]) -> Result<(), String> {
        if !self.is_current(wire, number) {
            return Ok(());
        }
        let wishes = self.client.received(self.now, wire, bytes);
        self.grant(wishes)
    }

    fn cut(&mut self, wire: Wire, number: u32) -> Result<(), String> {
        if !self.is_current(wire, number) {
            return Ok(());
        }
        self.links.remove(&wire);
        let wishes = self.client.failed(self.now, wire);
        self.grant(wishes)
    }

    /// All connections to a server break.
    fn cut_server(&mut self, server: usize) -> Result<(), String> {
        if self.up.is_some_and(|(up, _)| up == server) {
            self.up = None;
            let wishes = self.client.lost(self.now);
            self.grant(wishes)?;
        }
        let link = self.links.get(&Wire::Server);
        let number = link.filter(|link| link.server == Some(server)).map(|link| link.number);
        match number {
            Some(number) => self.cut(Wire::Server, number),
            None => Ok(()),
        }
    }

    fn came_up(&mut self) -> Result<(), String> {
        let link = self.links.remove(&Wire::Server);
        let Some((link, server)) = link.and_then(|link| link.server.map(|it| (link, it))) else {
            return Err("a session without a server".to_owned());
        };
        if link.role != Role::Master {
            return Err(format!("a session with server {server}, which said that it is a replica"));
        }
        let reign = self.reigns.iter().rev().find(|(_, master)| **master == server);
        let heard = self.heard;
        if reign.is_none_or(|(epoch, _)| *epoch < heard) {
            return Err(format!(
                "a session with server {server} of epoch {reign:?}, although epoch {heard} was heard of"
            ));
        }
        self.outcome.sessions += 1;
        self.up = Some((server, self.now));
        Ok(())
    }

    /// Something happens.
    fn fault(&mut self) -> Result<(), String> {
        let after = self.dice.between(10 * MS, 3 * SEC);
        if self.now + after < TROUBLE {
            self.plan(Event::Fault, after);
        }
        let sentinel = self.dice.below(3) as usize;
        match self.dice.below(8) {
            0 | 1 => self.failover(),
            // The session is silent for a while, and a second connection is tried.
            6 | 7 => {
                let after = self.dice.between(MS, 4 * SEC);
                self.plan(Event::Answers, after);
                let wishes = self.client.doubt(self.now, true);
                self.grant(wishes)
            }
            2 => {
                self.sentinels[sentinel].down_until = self.now + self.dice.between(MS, 8 * SEC);
                self.cut_sentinel(sentinel)
            }
            3 => {
                self.sentinels[sentinel].mute_until = self.now + self.dice.between(MS, 8 * SEC);
                Ok(())
            }
            4 => self.cut_sentinel(sentinel),
            _ => {
                let up = self.up.map(|(up, _)| up);
                up.map_or(Ok(()), |server| self.cut_server(server))
            }
        }
    }

    fn cut_sentinel(&mut self, sentinel: usize) -> Result<(), String> {
        let wire = Wire::Sentinel(sentinel);
        let number = self.links.get(&wire).map(|link| link.number);
        number.map_or(Ok(()), |number| self.cut(wire, number))
    }

    /// Another server becomes the master. The old one is killed, or lives on and takes itself for the master
    /// for some time.
    fn failover(&mut self) -> Result<(), String> {
        let (Some((&epoch, &old)), leader) = (self.reigns.last_key_value(), self.dice.below(3))
        else {
            return Ok(());
        };
        let (epoch, leader) = (epoch + 1, leader as usize);
        // It takes most of them, which live.
        let living = |sentinel: &&Sentinel| {
            sentinel.down_until <= self.now && sentinel.mute_until <= self.now
        };
        let can = |server: &Server| server.down_until <= self.now;
        let new = (old + 1 + self.dice.below(2) as usize) % 3;
        if self.sentinels.iter().filter(living).count() < 2
            || !living(&&self.sentinels[leader])
            || !can(&self.servers[new])
            || self.servers[new].role == Role::Master
        {
            return Ok(());
        }
        self.outcome.failovers += 1;
        self.reigns.insert(epoch, new);
        self.servers[new].role = Role::Master;
        let silent = self.dice.between(0, 11 * SEC);
        if self.dice.chance(400) {
            // Killed; it comes back as what it was, for a while.
            let down = self.dice.between(MS, 5 * SEC);
            self.servers[old].down_until = self.now + down;
            self.plan(Event::Becomes(old, false), down + silent.min(2 * SEC));
            self.cut_server(old)?;
        } else {
            self.plan(Event::Becomes(old, false), silent);
        }
        for sentinel in 0..3 {
            let after = match sentinel == leader {
                true => 0,
                false => self.dice.between(0, 2 * SEC),
            };
            self.plan(Event::Learn(sentinel, epoch, new, old), after);
        }
        Ok(())
    }

    fn learn(&mut self, at: usize, epoch: u64, master: usize, old: usize) {
        let sentinel = &mut self.sentinels[at];
        // One that is away, or stands still, hears of it later.
        let later = sentinel.down_until.max(sentinel.mute_until);
        if later > self.now {
            let after = later - self.now + MS;
            return self.plan(Event::Learn(at, epoch, master, old), after);
        }
        if epoch <= sentinel.epoch {
            return;
        }
        (sentinel.epoch, sentinel.master, sentinel.since) = (epoch, master, self.now);
        (sentinel.listed, sentinel.listed_until) = (old, self.now);
        let message = sentinel.message(old);
        if self.dice.chance(300) {
            self.sentinels[at].listed_until = self.now + self.dice.between(MS, 6 * SEC);
        }
        let wire = Wire::Sentinel(at);
        // The message may be lost.
        if let Some(number) = self.links.get(&wire).map(|link| link.number)
            && self.dice.chance(600)
        {
            self.reply(wire, number, message.as_bytes());
        }
    }

    /// Nobody is with a server that it can hear is not the master any more, for long.
    fn judge(&self) -> Result<(), String> {
        let Some((server, since)) = self.up else { return Ok(()) };
        // The last epoch that made this one the master.
        let reign = self.reigns.iter().rev().find(|(_, master)| **master == server);
        let Some((&reign, _)) = reign else {
            return Err(format!("server {server} never was the master"));
        };
        for (at, sentinel) in self.sentinels.iter().enumerate() {
            let clear = sentinel.down_until.max(sentinel.mute_until).max(sentinel.since).max(since);
            let newer = sentinel.epoch > reign && sentinel.master != server;
            if newer && self.now > clear + LATE {
                let epoch = sentinel.epoch;
                return Err(format!(
                    "the session is with server {server} of epoch {reign}, and Sentinel {at} has \
                     said epoch {epoch} for long"
                ));
            }
        }
        Ok(())
    }
}

fn kind(event: &Event) -> u64 {
    match event {
        Event::Wake => 1,
        Event::Dialled(..) => 2,
        Event::Bytes(..) => 3,
        Event::Heard(..) => 4,
        Event::Fault => 5,
        Event::Answers => 8,
        Event::Learn(..) => 6,
        Event::Becomes(..) => 7,
    }
}
