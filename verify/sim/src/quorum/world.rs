//! Callers, messages and faults, in the order that a seed draws.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use fencelock_engine::event::Event as Said;
use fencelock_engine::hold::{Ask, How, Patience};
use fencelock_engine::quorum::Input;
use fencelock_engine::request::Request;
use fencelock_engine::{Acquired, CallKey, ErrorKind, Options};

use crate::clock::{ClientClock, Instant, MS, SEC, StoreClock, US};
use crate::dice::Dice;
use crate::quorum::client::{Client, Wish};
use crate::quorum::server::{Creed, Server, caller};
use crate::quorum::truth::Truth;

/// How long faults go on.
pub(super) const TROUBLE: Instant = 20 * SEC;
/// How long after the last fault whoever waits may have to: servers that forgot wait for the longest lease.
const CALM: Instant = 24 * SEC;
/// How long nothing must have happened to a server until all have its queue.
const SETTLED: Instant = 3 * SEC;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing.
    Fair,
    /// All that happens, happens to one server.
    One(usize),
    /// Anything.
    Storm,
    /// One client goes by another list, or another longest lease; few servers forget.
    Stranger,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How often a caller was told that it has a lock.
    pub grants: u32,
    /// How many holds were lost.
    pub losses: u32,
    /// How often a wait or a try failed.
    pub failures: u32,
    /// How many faults there were.
    pub faults: u32,
    /// How many waits lasted for a second and more.
    pub long: u32,
    /// What was done, as a number: the same seed has the same.
    pub hash: u64,
}

#[derive(Clone, Debug)]
pub(super) enum Event {
    Wake(usize),
    /// A caller wants the lock.
    Call(usize, u32),
    /// It has had it for long enough.
    Enough(usize, u32, u64),
    /// A connection is made, or not.
    Dialled(usize, usize, u32),
    /// A request arrives.
    Request(usize, usize, u32, Box<Request>),
    /// The client hears something of a server.
    Hear(usize, usize, u32, Box<Input>),
    /// The client notices that a connection is gone.
    Gone(usize, usize, u32),
    /// A transport has looked whether a silent connection is dead.
    Looked(usize, usize, u32),
    /// A server's disk has caught up.
    Save(usize),
    Fault,
}

struct Item(Instant, u64, Event);

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Item {}
impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Item {
    fn cmp(&self, other: &Item) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) dice: Dice,
    queue: BinaryHeap<Reverse<Item>>,
    order: u64,
    pub(super) kind: Kind,
    pub(super) quorum: usize,
    pub(super) max_lease: u64,
    pub(super) lease: Instant,
    pub(super) servers: Vec<Server>,
    pub(super) clients: Vec<Client>,
    pub(super) numbers: u32,
    pub(super) truth: Truth,
    /// Who waits since when: by client and call.
    pub(super) waits: BTreeMap<(usize, u32), (Instant, Option<CallKey>, usize)>,
    /// When a client last had to do with a lock.
    pub(super) seen: BTreeMap<(usize, usize), Instant>,
    /// Since when whom has what it has: by client and call.
    pub(super) since: BTreeMap<(usize, u32), Instant>,
    /// Whose each vote is that was asked for: by the half of its id that a server remembers of the last one
    /// that was released, and all of it.
    pub(super) votes: BTreeMap<u64, (usize, usize, u128)>,
    /// When anything last happened to a server, or to its connections.
    pub(super) touched: Vec<Instant>,
    /// Whose hold hung on the clock that jumped, and until when that excuses.
    pub(super) excused_until: Instant,
    pub(super) outcome: Outcome,
}

/// Runs a seed.
///
/// # Errors
/// What was not as it should be.
pub fn run(seed: u64) -> Result<Outcome, String> {
    let mut world = World::new(seed);
    let fail = |world: &World, why: String| {
        format!("seed {seed} ({:?}), at {} ms: {why}", world.kind, world.now / MS)
    };
    while world.now < TROUBLE + CALM {
        if let Err(why) = world.step() {
            return Err(fail(&world, why));
        }
    }
    world.end().map_err(|why| fail(&world, why))?;
    Ok(world.outcome)
}

impl World {
    fn new(seed: u64) -> World {
        let mut dice = Dice::new(seed);
        let all = dice.pick(&[3, 3, 3, 5]);
        let kind = match dice.below(10) {
            0 => Kind::Fair,
            1..=3 => Kind::One(dice.below(all as u64) as usize),
            4..=7 => Kind::Storm,
            _ => Kind::Stranger,
        };
        let lease = dice.between(900, 2_000) * MS;
        let max_lease = lease + dice.between(0, 2_000) * MS;
        let creed = Creed { list: all, max_lease: max_lease / US };
        let servers = (0..all)
            .map(|_| {
                let base = 1_700_000_000_000_000 + dice.between(0, max_lease / US / 3);
                let ppm = dice.between(0, 1_000) as i64 - 500;
                Server::new(StoreClock::new(base, ppm), creed)
            })
            .collect();
        let locks = dice.between(1, 2) as usize;
        let clients = (0..dice.between(2, 4) as usize)
            .map(|at| {
                let mut mine = creed;
                let mut options = Options {
                    lease: Duration::from_nanos(lease),
                    claim: Duration::from_millis(300),
                    request_timeout: Duration::from_millis(500),
                    max_lease: Duration::from_nanos(max_lease),
                    ..Options::default()
                };
                if at == 0 && kind == Kind::Stranger {
                    if all == 5 && dice.chance(500) {
                        mine.list = 3;
                    } else {
                        mine.max_lease = 400_000;
                        options.max_lease = Duration::from_millis(400);
                        options.lease = Duration::from_millis(400);
                    }
                }
                let clock =
                    ClientClock::new(SEC + at as u64 * SEC, dice.between(0, 1_000) as i64 - 500);
                let seeds = [dice.seed(), dice.seed()];
                Client::new(caller(at as u64 + 1), mine, clock, options, locks, seeds)
            })
            .collect::<Vec<_>>();
        let mut world = World {
            now: 0,
            queue: BinaryHeap::new(),
            order: 0,
            kind,
            quorum: all / 2 + 1,
            max_lease: max_lease / US,
            lease,
            servers,
            clients,
            numbers: 0,
            truth: Truth::default(),
            waits: BTreeMap::new(),
            seen: BTreeMap::new(),
            since: BTreeMap::new(),
            votes: BTreeMap::new(),
            touched: vec![0; all],
            excused_until: 0,
            outcome: Outcome::default(),
            dice,
        };
        for client in 0..world.clients.len() {
            for server in 0..world.clients[client].links.len() {
                world.dial(client, server, MS);
            }
            for call in 0..world.dice.between(1, 3) as u32 {
                let after = world.dice.between(0, 500 * MS);
                world.plan(Event::Call(client, call), after);
            }
        }
        for server in 0..all {
            world.plan(Event::Save(server), SEC / 2);
        }
        if kind != Kind::Fair {
            world.plan(Event::Fault, SEC);
        }
        world
    }

    pub(super) fn plan(&mut self, event: Event, after: Instant) {
        self.order += 1;
        self.queue.push(Reverse(Item(self.now + after, self.order, event)));
    }

    pub(super) fn latency(&mut self) -> Instant {
        match self.dice.chance(10) {
            true => self.dice.between(MS, 60 * MS),
            false => self.dice.between(50 * US, MS),
        }
    }

    fn step(&mut self) -> Result<(), String> {
        let Some(Reverse(Item(when, _, event))) = self.queue.pop() else {
            self.now = TROUBLE + CALM;
            return Ok(());
        };
        self.now = self.now.max(when);
        self.outcome.hash = self.outcome.hash.rotate_left(7) ^ when ^ (kind(&event) << 56);
        // Who stands still hears of it later, in the same order.
        if let Some(client) = of_client(&event) {
            let until = self.clients[client].paused_until;
            if until > self.now {
                if let Event::Wake(_) = event {
                    self.clients[client].wakes_at = Some(until);
                }
                self.plan(event, until - self.now);
                return Ok(());
            }
        }
        match event {
            Event::Wake(client) => {
                self.clients[client].wakes_at = None;
                self.clients[client].wake(self.now);
                self.settle(client)
            }
            Event::Call(client, call) => self.call(client, call),
            Event::Enough(client, call, token) => self.enough(client, call, token),
            Event::Dialled(client, server, number) => self.dialled(client, server, number),
            Event::Request(client, server, number, request) => {
                self.arrive(client, server, number, request)
            }
            Event::Hear(client, server, number, input) => {
                if self.clients[client].links[server].number != number {
                    return Ok(());
                }
                if let Input::Event(Said::Reply { request, .. }) = &*input {
                    self.clients[client].links[server].owed.remove(request);
                }
                self.clients[client].hear(self.now, server, *input);
                self.settle(client)
            }
            Event::Gone(client, server, number) => {
                if self.clients[client].links[server].number != number {
                    return Ok(());
                }
                self.lose_link(client, server, "the connection broke")
            }
            Event::Looked(client, server, number) => self.looked(client, server, number),
            Event::Save(server) => {
                if self.servers[server].down_until <= self.now {
                    self.servers[server].save();
                }
                let after = self.dice.between(200 * MS, SEC);
                self.plan(Event::Save(server), after);
                Ok(())
            }
            Event::Fault => self.fault(),
        }
    }

    /// Does what a client wants, and plans when it is woken.
    pub(super) fn settle(&mut self, client: usize) -> Result<(), String> {
        for wish in self.clients[client].settle(self.now) {
            match wish {
                Wish::Send(server, request) => self.send(client, server, request)?,
                Wish::Reconnect(server) => {
                    let number = self.clients[client].links[server].number;
                    let after = self.dice.between(10 * MS, 200 * MS);
                    self.plan(Event::Looked(client, server, number), after);
                }
                Wish::Granted(call, grant) => self.granted(client, call, grant)?,
                Wish::Failed(call, error) => self.failed(client, call, &error)?,
                Wish::Lost(call, reason) => {
                    // It may be told while it is being released.
                    let Some((lock, hold, _)) = self.clients[client].holds.remove(&call) else {
                        continue;
                    };
                    self.outcome.losses += 1;
                    self.truth.ended(lock, client, call);
                    self.seen.insert((lock, client), self.now);
                    let now = self.clients[client].read(self.now);
                    let _ = self.clients[client].engine.release(now, hold, None);
                    let by_one = matches!(self.kind, Kind::Fair | Kind::One(_));
                    if by_one && self.now > self.excused_until {
                        return Err(format!("client {client} lost a hold: {}", reason.describe()));
                    }
                    let after = self.dice.between(0, 300 * MS);
                    self.plan(Event::Call(client, call), after);
                }
                Wish::Done => {}
            }
        }
        let at = &self.clients[client];
        if let Some(wake) = at.next_wake() {
            let when = at.clock.when(wake).max(self.now);
            if at.wakes_at.is_none_or(|planned| when < planned) {
                self.clients[client].wakes_at = Some(when);
                self.plan(Event::Wake(client), when - self.now);
            }
        }
        Ok(())
    }

    fn call(&mut self, client: usize, call: u32) -> Result<(), String> {
        if self.now > TROUBLE + CALM / 3 {
            return Ok(());
        }
        let lock = self.dice.below(self.clients[client].locks.len() as u64) as usize;
        let now = self.clients[client].read(self.now);
        self.seen.insert((lock, client), self.now);
        let patience = match self.dice.below(10) {
            0 => Patience::Try,
            1 => Patience::Until(now + Duration::from_nanos(self.dice.between(0, 2 * SEC))),
            _ => Patience::Forever,
        };
        let ask = Ask { patience, ..Ask::local(u64::from(call)) };
        let key = self.clients[client].locks[lock].1;
        match self.clients[client].engine.acquire(now, key, ask, call) {
            Ok(Acquired::Granted(grant)) => {
                self.waits.insert((client, call), (self.now, None, lock));
                self.granted(client, call, grant)?;
            }
            Ok(Acquired::Pending(key)) => {
                self.waits.insert((client, call), (self.now, Some(key), lock));
            }
            Err(_) => {
                let after = self.dice.between(10 * MS, 300 * MS);
                self.plan(Event::Call(client, call), after);
            }
        }
        self.settle(client)
    }

    fn granted(
        &mut self,
        client: usize,
        call: u32,
        grant: fencelock_engine::Grant,
    ) -> Result<(), String> {
        let Some((since, _, lock)) = self.waits.remove(&(client, call)) else {
            return Err(format!("client {client} is granted what it does not wait for"));
        };
        self.outcome.grants += 1;
        self.seen.insert((lock, client), self.now);
        self.outcome.long += u32::from(self.now - since > SEC);
        let token = grant.token.get();
        self.clients[client].holds.insert(call, (lock, grant.hold, token));
        self.since.insert((client, call), self.now);
        let excused = self.now < self.excused_until;
        self.truth.granted(self.now, &self.clients, (client, lock, call, token), excused)?;
        // The list's first, when all can ask it, decides whose turn it is.
        let quiet = self.touched[0].max(self.clients[client].paused_until);
        let quiet = quiet.max(self.servers[0].born) + SETTLED;
        let quiet = quiet + self.max_lease * US;
        if self.now > quiet && !matches!(grant.how, How::Local | How::Reentry) {
            let holder = self.servers[0].holder(&self.clients[client].locks[lock].0);
            let own = |hold: fencelock_engine::HoldId| {
                let vote = self.votes.get(&((hold.0 >> 64) as u64));
                vote.is_some_and(|(whose, ..)| *whose == client)
            };
            if !holder.is_some_and(own) {
                return Err(format!(
                    "client {client} is granted lock {lock} past the arbiter's queue"
                ));
            }
        }
        let long = self.dice.chance(60);
        let after = match long {
            true => self.dice.between(500 * MS, 4 * SEC),
            false => self.dice.between(0, 60 * MS),
        };
        self.plan(Event::Enough(client, call, token), after);
        Ok(())
    }

    fn failed(
        &mut self,
        client: usize,
        call: u32,
        error: &fencelock_engine::Error,
    ) -> Result<(), String> {
        self.outcome.failures += 1;
        if let Some((since, _, lock)) = self.waits.remove(&(client, call)) {
            self.seen.insert((lock, client), self.now);
            // A try may be over before a silent arbiter is given up, and some do not wait for a round trip.
            let one = matches!(self.kind, Kind::Fair | Kind::One(1..));
            let unavailable =
                matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Misconfigured);
            if one && unavailable && since > SEC && self.now > since + 400 * MS {
                return Err(format!("client {client}, with one server in trouble: {error}"));
            }
            let after = self.dice.between(10 * MS, 300 * MS);
            self.plan(Event::Call(client, call), after);
        }
        Ok(())
    }

    fn enough(&mut self, client: usize, call: u32, token: u64) -> Result<(), String> {
        let held = self.clients[client].holds.get(&call).copied();
        let Some((lock, hold, _)) = held.filter(|(.., present)| *present == token) else {
            return Ok(());
        };
        self.clients[client].holds.remove(&call);
        let since = self.since.remove(&(client, call)).unwrap_or(self.now);
        self.look_for_votes(client, lock, since)?;
        self.truth.ended(lock, client, call);
        self.seen.insert((lock, client), self.now);
        let now = self.clients[client].read(self.now);
        // Lost or not, it is over.
        let _ = self.clients[client].engine.release(now, hold, Some(u32::MAX));
        let after = self.dice.between(0, 300 * MS);
        self.plan(Event::Call(client, call), after);
        self.settle(client)
    }

    /// Whose votes were missing has all of them some time after all servers can give them.
    fn look_for_votes(&self, client: usize, lock: usize, since: Instant) -> Result<(), String> {
        let at = &self.clients[client];
        let young = |server: &Server| match server.born {
            0 => 0,
            born => born + self.max_lease * US + 300 * MS,
        };
        let servers = self.servers.iter().zip(&self.touched);
        let quiet = servers.map(|(server, touched)| young(server).max(*touched)).max();
        // A connection is made within half a second, and what is missing asked for at the next renewal.
        let settled = quiet.unwrap_or(0).max(at.paused_until) + SEC;
        let mut settled = settled.max(since);
        // Who waits may have a vote meanwhile, and keeps the arbiter's.
        if self.waits.iter().any(|((other, _), (_, _, of))| *other != client && *of == lock) {
            return Ok(());
        }
        for ((_, other), seen) in self.seen.range((lock, 0)..(lock + 1, 0)) {
            settled = settled.max(if *other == client { 0 } else { *seen + SEC });
        }
        settled += self.lease * 2 / 3;
        let all = self.servers.len();
        let votes = at.machine.votes(&at.locks[lock].0);
        let short = votes.iter().find(|(given, held)| *held && *given < all);
        let up = at.links.iter().all(|link| link.told.is_some());
        match short {
            // A server may go by the stranger's list for good.
            Some((given, _)) if up && self.kind != Kind::Stranger && self.now > settled => Err(
                format!("client {client} has lock {lock} with {given} votes of {all}, for long"),
            ),
            _ => Ok(()),
        }
    }

    /// Whoever waited was served, and nothing is left.
    fn end(&mut self) -> Result<(), String> {
        if self.kind == Kind::Stranger {
            return Ok(());
        }
        if let Some(((client, call), (since, ..))) = self.waits.first_key_value() {
            let since = since / MS;
            let votes: Vec<_> = self.clients[*client]
                .locks
                .iter()
                .map(|(name, _)| self.clients[*client].machine.votes(name))
                .collect();
            return Err(format!(
                "call {call} of client {client} waits since {since} ms: {votes:?}"
            ));
        }
        for (at, client) in self.clients.iter().enumerate() {
            let left = client.machine.leftovers();
            if !left.is_empty() {
                return Err(format!("client {at} has done nothing for long, and has {left:?}"));
            }
        }
        match self.servers.iter().position(|server| server.is_busy(self.now)) {
            Some(server) => Err(format!("server {server} has something of somebody")),
            None => Ok(()),
        }
    }
}

fn of_client(event: &Event) -> Option<usize> {
    match event {
        Event::Wake(client)
        | Event::Call(client, _)
        | Event::Enough(client, ..)
        | Event::Hear(client, ..)
        | Event::Gone(client, ..)
        | Event::Looked(client, ..) => Some(*client),
        Event::Dialled(..) | Event::Request(..) | Event::Save(_) | Event::Fault => None,
    }
}

fn kind(event: &Event) -> u64 {
    match event {
        Event::Wake(_) => 1,
        Event::Call(..) => 2,
        Event::Enough(..) => 3,
        Event::Dialled(..) => 4,
        Event::Request(..) => 5,
        Event::Hear(..) => 6,
        Event::Gone(..) => 7,
        Event::Looked(..) => 8,
        Event::Save(_) => 9,
        Event::Fault => 10,
    }
}
