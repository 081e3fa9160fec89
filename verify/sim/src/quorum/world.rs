//! Callers, messages and faults, in the order that a seed draws.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use fencelock_engine::event::Event as Said;
use fencelock_engine::hold::{Ask, How, Patience};
use fencelock_engine::plant::{self, Bug};
use fencelock_engine::quorum::Input;
use fencelock_engine::reply::{Failure, Push, Reply};
use fencelock_engine::request::{Break, Op, Request, RequestId};
use fencelock_engine::{Acquired, CallKey, ErrorKind, Options};

use crate::clock::{ClientClock, Instant, MS, SEC, StoreClock, US};
use crate::dice::Dice;
use crate::quorum::client::{Client, Wish};
use crate::quorum::server::{Creed, Marker, Reach, Server, caller, gives};
use crate::quorum::truth::Truth;

/// How long faults go on.
const TROUBLE: Instant = 20 * SEC;
/// How long after the last fault whoever waits may have to: servers that forgot wait for the longest lease.
const CALM: Instant = 24 * SEC;
/// How long nothing must have happened to a server until all have its queue.
const SETTLED: Instant = 3 * SEC;

/// What goes wrong in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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
enum Event {
    Wake(usize),
    /// A caller wants the lock.
    Call(usize, u32),
    /// It has had it for long enough.
    Enough(usize, u32, u64),
    /// A connection is made, or not.
    Dialled(usize, usize, u32),
    /// A request arrives.
    Request(usize, usize, u32, Request),
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

struct World {
    now: Instant,
    dice: Dice,
    queue: BinaryHeap<Reverse<Item>>,
    order: u64,
    kind: Kind,
    quorum: usize,
    max_lease: u64,
    lease: Instant,
    servers: Vec<Server>,
    clients: Vec<Client>,
    numbers: u32,
    truth: Truth,
    /// Who waits since when: by client and call.
    waits: BTreeMap<(usize, u32), (Instant, Option<CallKey>, usize)>,
    /// When a client last had to do with a lock.
    seen: BTreeMap<(usize, usize), Instant>,
    /// Since when whom has what it has: by client and call.
    since: BTreeMap<(usize, u32), Instant>,
    /// Whose each vote is that was asked for: by the half of its id that a server remembers of the last one
    /// that was released, and all of it.
    votes: BTreeMap<u64, (usize, usize, u128)>,
    /// When anything last happened to a server, or to its connections.
    touched: Vec<Instant>,
    /// Whose hold hung on the clock that jumped, and until when that excuses.
    excused_until: Instant,
    outcome: Outcome,
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

    fn plan(&mut self, event: Event, after: Instant) {
        self.order += 1;
        self.queue.push(Reverse(Item(self.now + after, self.order, event)));
    }

    fn latency(&mut self) -> Instant {
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
    fn settle(&mut self, client: usize) -> Result<(), String> {
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
            Some((given, _)) if up && at.creed.list == all && self.now > settled => Err(format!(
                "client {client} has lock {lock} with {given} votes of {all}, for long"
            )),
            _ => Ok(()),
        }
    }

    fn dial(&mut self, client: usize, server: usize, after: Instant) {
        self.numbers += 1;
        let number = self.numbers;
        let link = &mut self.clients[client].links[server];
        (link.number, link.told) = (number, None);
        link.owed.clear();
        self.plan(Event::Dialled(client, server, number), after);
    }

    fn is_reachable(&self, client: usize, server: usize) -> bool {
        let link = &self.clients[client].links[server];
        let server = &self.servers[server];
        link.cut_off_until.max(server.down_until).max(server.mute_until) <= self.now
    }

    fn dialled(&mut self, client: usize, server: usize, number: u32) -> Result<(), String> {
        if self.clients[client].links[server].number != number {
            return Ok(());
        }
        if !self.is_reachable(client, server) {
            let after = self.dice.between(50 * MS, 500 * MS);
            self.dial(client, server, after);
            return Ok(());
        }
        let creed = self.clients[client].creed;
        let input = match self.servers[server].greet(self.now, creed) {
            Some((marker, wait)) => {
                self.clients[client].links[server].told = Some(marker);
                let now = self.servers[server].clock.read(self.now);
                Input::Up { now, wait: Duration::from_micros(wait) }
            }
            None => {
                self.dial(client, server, SEC);
                let text = "the servers' marker tells of another list, or another max_lease";
                let error = fencelock_engine::Error::new(ErrorKind::Misconfigured, text);
                self.clients[client].hear(
                    self.now,
                    server,
                    Input::Event(Said::Misconfigured(error)),
                );
                return self.settle(client);
            }
        };
        self.tell(client, server, input);
        Ok(())
    }

    /// A server's word is on its way to a client.
    fn tell(&mut self, client: usize, server: usize, input: Input) {
        let latency = self.latency();
        let link = &mut self.clients[client].links[server];
        let at = (self.now.max(link.cut_off_until) + latency).max(link.last[1] + 1);
        link.last[1] = at;
        let number = link.number;
        self.plan(Event::Hear(client, server, number, Box::new(input)), at - self.now);
    }

    fn send(&mut self, client: usize, server: usize, request: Request) -> Result<(), String> {
        if let Op::Acquire(ask) = &request.op {
            let half = (ask.hold.0 >> 64) as u64;
            let vote = (client, server, ask.hold.0);
            let known = *self.votes.entry(half).or_insert(vote);
            if known != vote && !plant::on(Bug::VoteIdReused) {
                return Err(format!("two votes begin with {half:016x}"));
            }
        }
        let latency = self.latency();
        let link = &mut self.clients[client].links[server];
        link.owed.insert(request.id);
        let number = link.number;
        if link.told.is_none() {
            let request = request.id;
            let result = Err(Failure::NotSent);
            let input = Box::new(Input::Event(Said::Reply { request, result }));
            self.plan(Event::Hear(client, server, number, input), 0);
            return Ok(());
        }
        let at = (self.now.max(link.cut_off_until) + latency).max(link.last[0] + 1);
        link.last[0] = at;
        self.plan(Event::Request(client, server, number, request), at - self.now);
        Ok(())
    }

    fn arrive(
        &mut self,
        client: usize,
        server: usize,
        number: u32,
        request: Request,
    ) -> Result<(), String> {
        let mute = self.servers[server].mute_until;
        if mute > self.now {
            self.plan(Event::Request(client, server, number, request), mute - self.now);
            return Ok(());
        }
        let link = &self.clients[client].links[server];
        let alive = link.number == number;
        // What was under way on a connection that is gone may still arrive, or not.
        let down = self.servers[server].down_until > self.now;
        if down || !alive && self.dice.chance(500) {
            return Ok(());
        }
        let creed = self.clients[client].creed;
        let told = if alive { link.told } else { None };
        let told = told.unwrap_or(self.stale(server, creed));
        let (result, said) = self.execute(client, server, told, &request.op);
        if gives(&result) && self.servers[server].is_newborn(self.now, creed.max_lease) {
            return Err(format!("server {server} gives a vote although its memory is new"));
        }
        let refused = matches!(&result, Err(Failure::Refused(_)));
        for (to, push) in said {
            self.tell(to, server, Input::Event(Said::Push(push)));
        }
        if alive {
            let reply = Said::Reply { request: request.id, result };
            self.tell(client, server, Input::Event(reply));
            if refused && let Some((marker, wait)) = self.servers[server].greet(self.now, creed) {
                // The host reads the marker anew.
                self.clients[client].links[server].told = Some(marker);
                self.tell(client, server, Input::Wait(Duration::from_micros(wait)));
            }
        }
        Ok(())
    }

    /// What a connection that is gone was told: the present marker at the most.
    fn stale(&mut self, server: usize, creed: Creed) -> Marker {
        let greeted = self.servers[server].clone().greet(self.now, creed);
        greeted.map_or(Marker::unknown(creed), |(marker, _)| marker)
    }

    fn execute(
        &mut self,
        client: usize,
        server: usize,
        told: Marker,
        op: &Op,
    ) -> (Result<Reply, Failure>, Vec<(usize, Push)>) {
        let (clients, now) = (&self.clients, self.now);
        let listens = |id: &str| {
            clients.iter().position(|client| {
                client.caller.client.id() == id
                    && client.links.get(server).is_some_and(|link| link.told.is_some())
            })
        };
        let mut reach = Reach { listens: &listens, said: Vec::new() };
        let at = &clients[client];
        let result =
            self.servers[server].execute(now, &at.caller, (told, at.creed), op, &mut reach);
        (result, reach.said)
    }

    /// A connection is gone: what was owed is unknown.
    fn lose_link(&mut self, client: usize, server: usize, why: &str) -> Result<(), String> {
        let link = &mut self.clients[client].links[server];
        let was_up = link.told.is_some();
        let owed: Vec<RequestId> = std::mem::take(&mut link.owed).into_iter().collect();
        let after = self.dice.between(MS, 100 * MS);
        self.dial(client, server, after);
        for request in owed {
            let result = Err(Failure::Unknown);
            let reply = Said::Reply { request, result };
            self.clients[client].hear(self.now, server, Input::Event(reply));
        }
        if was_up {
            let reason = why.to_owned();
            self.clients[client].hear(self.now, server, Input::Event(Said::Down { reason }));
        }
        self.settle(client)
    }

    /// The transport has made another connection, if it could: the first is given up if it is silent still.
    fn looked(&mut self, client: usize, server: usize, number: u32) -> Result<(), String> {
        let link = &self.clients[client].links[server];
        if link.number != number || link.owed.is_empty() {
            return Ok(());
        }
        if self.is_reachable(client, server) && self.dice.chance(300) {
            let after = self.dice.between(10 * MS, 300 * MS);
            self.plan(Event::Looked(client, server, number), after);
            return Ok(());
        }
        self.lose_link(client, server, "it was silent for long")
    }

    fn fault(&mut self) -> Result<(), String> {
        if self.now > TROUBLE {
            return Ok(());
        }
        let pause = self.dice.between(50 * MS, 2 * SEC);
        self.plan(Event::Fault, pause);
        self.outcome.faults += 1;
        let server = match self.kind {
            Kind::One(server) => server,
            _ => self.dice.below(self.servers.len() as u64) as usize,
        };
        let client = self.dice.below(self.clients.len() as u64) as usize;
        let one = matches!(self.kind, Kind::One(_));
        if self.kind == Kind::Stranger && self.dice.chance(400) {
            self.corner();
            return Ok(());
        }
        self.touched[server] = self.now;
        match self.dice.below(if one { 8 } else { 11 }) {
            0 => {
                self.servers[server].mute_until = self.now + self.dice.between(MS, 3 * SEC);
                self.touched[server] = self.servers[server].mute_until;
            }
            1 => {
                let until = self.now + self.dice.between(MS, 3 * SEC);
                self.cut_off(client, server, until);
            }
            2 => {
                let until = self.now + self.dice.between(MS, 3 * SEC);
                for client in 0..self.clients.len() {
                    self.cut_off(client, server, until);
                }
            }
            3 => self.plan_gone(client, server),
            4 | 5 => self.forget(server, false),
            6 => self.forget(server, true),
            7 if one => self.jump(server),
            7 => self.step_back(server),
            8 => {
                let lock = self.dice.below(self.clients[0].locks.len() as u64) as usize;
                self.operator(lock);
            }
            _ => {
                let longest = self.max_lease * US * 3 / 2;
                let until = self.now + self.dice.between(MS, longest);
                self.clients[client].paused_until = until;
            }
        }
        Ok(())
    }

    /// A hold that has no vote to spare loses one to a server that forgets, while its client stands still.
    fn corner(&mut self) {
        let quorum = self.quorum;
        let tight = |client: &Client| {
            let mut votes = client.locks.iter().flat_map(|(name, _)| client.machine.votes(name));
            votes.any(|(given, held)| held && given == quorum)
        };
        let regular = (1..self.clients.len()).find(|at| tight(&self.clients[*at]));
        if let Some(client) = regular {
            self.touched[1] = self.now;
            self.forget(1, true);
            self.clients[client].paused_until = self.now + self.max_lease * US;
            return;
        }
        let client = self.dice.between(1, self.clients.len() as u64 - 1) as usize;
        let (server, until) = (self.dice.pick(&[0, 2]), self.now + 3 * SEC);
        self.cut_off(client, server, until);
    }

    fn cut_off(&mut self, client: usize, server: usize, until: Instant) {
        if let Some(link) = self.clients[client].links.get_mut(server) {
            link.cut_off_until = link.cut_off_until.max(until);
            self.touched[server] = self.touched[server].max(until);
        }
    }

    fn plan_gone(&mut self, client: usize, server: usize) {
        let latency = self.latency();
        let Some(link) = self.clients[client].links.get(server) else { return };
        let (number, up) = (link.number, link.told.is_some());
        if up {
            self.plan(Event::Gone(client, server, number), latency);
        }
    }

    /// A server forgets: all of it, or the last second.
    fn forget(&mut self, server: usize, flush: bool) {
        // A server that has forgotten goes by the list and the lease of whoever comes first.
        if self.kind == Kind::Stranger && server != 1 {
            return;
        }
        if flush {
            return self.servers[server].flush(self.now);
        }
        let (down, empty) = (self.dice.between(MS, 800 * MS), self.dice.chance(500));
        self.servers[server].restart(self.now, down, empty);
        self.touched[server] = self.now + down;
        for client in 0..self.clients.len() {
            self.plan_gone(client, server);
        }
    }

    /// A clock jumps ahead. Who has no vote to spare hangs on it.
    fn jump(&mut self, server: usize) {
        let by = self.dice.between(100_000, self.max_lease / 3);
        self.servers[server].jump(by);
        let (clients, quorum) = (&self.clients, self.quorum);
        let tight = |client: &Client| {
            client.locks.iter().any(|(name, _)| {
                client.machine.votes(name).iter().any(|(given, _)| (1..=quorum).contains(given))
            })
        };
        if clients.iter().any(tight) {
            self.excused_until = self.now + 2 * self.max_lease * US;
        }
        for lock in 0..self.clients[0].locks.len() {
            let name = self.clients[0].locks[lock].0.clone();
            self.truth.jumped(&self.clients, lock, &name, quorum);
        }
    }

    fn step_back(&mut self, server: usize) {
        let by = self.dice.between(1_000, 50_000) as i64;
        self.servers[server].clock.step(-by);
    }

    /// An operator ends whatever anybody has of a lock, at every server.
    fn operator(&mut self, lock: usize) {
        let span = self.max_lease * US;
        self.truth.broken(self.now, &self.clients, lock, span);
        let name = self.clients[0].locks[lock].0.clone();
        for server in 0..self.servers.len() {
            let what = Break { lock: name.clone(), token: u64::MAX, hold: None };
            let told = self.stale(server, self.clients[0].creed);
            let (_, said) = self.execute(0, server, told, &Op::Break(what));
            for (to, push) in said {
                // The word of it may be lost.
                if self.dice.chance(300) || matches!(push, Push::Granted { .. }) {
                    self.tell(to, server, Input::Event(Said::Push(push)));
                }
            }
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
