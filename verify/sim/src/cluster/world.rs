//! The servers, the clients, and what travels between them.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use fencelock_engine::redis::cluster::Topology;
use fencelock_engine::redis::session::NoSession;
use fencelock_engine::request::Op;
use fencelock_engine::secret::Secrets;
use fencelock_engine::{LaneId, Options};

use crate::clock::{Instant, MS, SEC, StoreClock, US};
use crate::cluster::caller::{Caller, Doing};
use crate::cluster::client::{Client, Wish};
use crate::cluster::fault::Next;
use crate::cluster::judge::Judge;
use crate::cluster::node::{Node, Stage};
use crate::cluster::scene::Scene;
use crate::cluster::shape::{Claim, Shape, View};
use crate::cluster::wire::{self, Reads};
use crate::dice::Dice;
use crate::queue::Queue;
use crate::redis::{Keyspace, ModelRedis};
use crate::sentinel::{address, server_at};

/// How many masters there are; each has a replica, as many places further on, and one server more has no
/// slots.
pub(super) const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS + 1;
const LOCKS: usize = 6;
const CLIENTS: usize = 3;
const CALLERS: usize = 3;
/// How long faults go on.
pub(super) const TROUBLE: Instant = 40 * SEC;
/// How long after that the last one who waits may wait.
const CALM: Instant = 60 * SEC;
/// What the servers' clocks read at the beginning, in microseconds.
const EPOCH: u64 = 1_750_000_000_000_000;

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How often a lock was granted by a server, and how.
    pub grants: u32,
    /// By a message.
    pub pushed: u32,
    /// By the answer to a poll.
    pub polled: u32,
    /// How many holds were lost.
    pub lost: u32,
    /// How many faults there were.
    pub faults: u32,
    /// How many replicas took over.
    pub promoted: u32,
    /// How many slots arrived elsewhere.
    pub moved: u32,
    /// How many requests were sent elsewhere.
    pub sent_on: u32,
    /// How many were told to try again, and how many that their script is not known.
    pub again: u32,
    /// See there.
    pub unknown: u32,
    /// Writes by a server that was the master no more.
    pub stale: u32,
    /// Each check: how often it was looked at, and how often it was not kept and need not have been.
    pub checks: BTreeMap<&'static str, (u64, u64)>,
    /// What was done, as a number: the same seed has the same.
    pub hash: u64,
}

/// What happens.
pub(super) enum Event {
    Wake {
        slot: usize,
        generation: u64,
    },
    Turn {
        slot: usize,
        caller: usize,
        generation: u64,
    },
    /// Bytes reach a server, or a client.
    Up(usize),
    Down(usize),
    Dialled(usize),
    /// A client hears that a connection is broken.
    Broken(usize),
    /// A question for the map reaches a server; its answer reaches the client.
    Ask {
        slot: usize,
        node: usize,
    },
    Map {
        slot: usize,
        node: usize,
        answer: Result<Topology, NoSession>,
    },
    /// A replica gets what its master has.
    Copied {
        to: usize,
        from: usize,
        offset: u64,
        keys: Rc<Keyspace>,
    },
    /// A message reaches another server.
    Bus {
        node: usize,
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
    Fault,
    Next(Next),
    Quiet,
}

/// One connection.
struct Conn {
    slot: usize,
    node: usize,
    /// The client has not closed it; the server has not lost it.
    open: bool,
    alive: bool,
    up: VecDeque<Vec<u8>>,
    down: VecDeque<Vec<u8>>,
    /// Nothing overtakes what was sent before.
    up_at: Instant,
    down_at: Instant,
    reads: Reads,
    asking: bool,
    channel: Option<Vec<u8>>,
}

pub(super) struct World {
    pub now: Instant,
    pub dice: Dice,
    pub queue: Queue<Event>,
    pub scene: Scene,
    pub shape: Shape,
    redis: ModelRedis,
    pub nodes: Vec<Node>,
    /// Who has which part, by the highest epoch there is.
    pub truth: View,
    pub epoch: u64,
    pub clients: Vec<Client>,
    pub callers: Vec<Vec<Caller>>,
    wakes: Vec<(Instant, u64)>,
    conns: Vec<Conn>,
    /// Until when each client does not reach each server.
    pub cut: Vec<[Instant; NODES]>,
    options: Options,
    /// How late replicas are, at the most.
    pub lag: Instant,
    /// All servers refuse while one is down.
    pub all_or_none: bool,
    pub quiet: bool,
    /// Everybody wants these locks, and just for a moment.
    pub hot: Vec<usize>,
    /// A master that dies right after its next write.
    pub doomed: Option<usize>,
    pub judge: Judge,
    pub outcome: Outcome,
    steps: u64,
}

/// Runs a seed, in its scene.
///
/// # Errors
/// The promise that was broken, and how.
pub fn run(redis: ModelRedis, scene: Scene, seed: u64) -> (ModelRedis, Result<Outcome, String>) {
    let mut world = World::new(redis, scene, seed);
    let done = world.go();
    let broken =
        done.err().map(|why| format!("{scene:?}, seed {seed}, at {} ms: {why}", world.now / MS));
    let mut outcome = world.outcome;
    for (check, looked) in &world.judge.looked {
        let waived = world.judge.waived.get(check).copied().unwrap_or(0);
        outcome.checks.insert(check, (*looked, waived));
    }
    (world.redis, broken.map_or(Ok(outcome), Err))
}

impl World {
    fn new(redis: ModelRedis, scene: Scene, seed: u64) -> World {
        let mut dice = Dice::new(seed.wrapping_mul(64).wrapping_add(scene as u64));
        let shape = Shape::new(LOCKS, MASTERS);
        let view = shape.view(MASTERS);
        // Where slots stay where they are, other masters' clocks are of no matter.
        let apart = if scene.moves() { 20_000 } else { 3_600_000_000 };
        let mut nodes: Vec<Node> = Vec::new();
        for number in 0..NODES {
            let follows = (MASTERS..2 * MASTERS).contains(&number).then(|| number - MASTERS);
            let base = match follows {
                None => EPOCH + dice.below(2 * apart),
                // A replica's is ahead by no more than the slack, or by far.
                Some(master) if scene == Scene::ClockAhead => {
                    nodes[master].clock.read(0) + dice.between(2_000_000, 30_000_000)
                }
                Some(master) => nodes[master].clock.read(0) + dice.below(100_000) - 40_000,
            };
            let base = if scene.moves() { EPOCH + dice.below(90_000) } else { base };
            nodes.push(Node::new(number, follows, view.clone(), StoreClock::new(base, 0)));
        }
        let options = Options {
            lease: Duration::from_secs(12),
            claim: Duration::from_secs(2),
            request_timeout: Duration::from_secs(1),
            clock_slack: Duration::from_millis(100),
            ..Options::default()
        };
        let seeds: Vec<_> = (0..MASTERS).map(address).collect();
        let client = |slot| Client::new(slot, options.clone(), seeds.clone(), &mut dice);
        let clients: Vec<Client> = (0..CLIENTS).map(client).collect();
        World {
            now: 0,
            queue: Queue::default(),
            scene,
            redis,
            nodes,
            truth: view,
            epoch: 1,
            clients,
            callers: vec![vec![Caller::new(); CALLERS]; CLIENTS],
            wakes: vec![(Instant::MAX, 0); CLIENTS],
            conns: Vec::new(),
            cut: vec![[0; NODES]; CLIENTS],
            options,
            lag: match scene {
                Scene::Lags | Scene::MovedAndLost => 400 * MS,
                _ => 2 * MS,
            },
            all_or_none: dice.chance(500),
            quiet: false,
            hot: Vec::new(),
            doomed: None,
            judge: Judge::new(LOCKS),
            outcome: Outcome::default(),
            steps: 0,
            shape,
            dice,
        }
    }

    fn go(&mut self) -> Result<(), String> {
        for slot in 0..CLIENTS {
            self.after(slot);
            for caller in 0..CALLERS {
                let after = self.dice.below(200 * MS);
                self.turn_in(slot, caller, after);
            }
        }
        let first = self.dice.between(2 * SEC, 6 * SEC);
        self.queue.push(first, Event::Fault);
        self.queue.push(TROUBLE, Event::Quiet);
        while let Some((at, event)) = self.queue.pop() {
            self.now = self.now.max(at);
            self.outcome.hash = self.outcome.hash.rotate_left(5).wrapping_mul(0x100_0000_01b3) ^ at;
            self.steps += 1;
            self.take(event);
            if let Some(why) = self.judge.found.take() {
                return Err(why);
            }
            if self.quiet && self.is_over() {
                self.judge.look("liveness", true, false, String::new);
                return self.residue();
            }
            if self.now > TROUBLE + CALM || self.steps > 2_000_000 {
                let waiting = self.callers.iter().flatten().map(|it| &it.doing);
                let waiting = waiting.filter(|it| !matches!(it, Doing::Nothing));
                return Err(format!("liveness: {:?} to the end", waiting.collect::<Vec<_>>()));
            }
        }
        Err("liveness: nothing happens any more".to_owned())
    }

    fn is_over(&self) -> bool {
        self.callers.iter().flatten().all(|it| matches!(it.doing, Doing::Nothing))
            && self.clients.iter().all(|it| it.engine.is_settled())
    }

    /// Nothing is left in the clients.
    fn residue(&mut self) -> Result<(), String> {
        for (slot, client) in self.clients.iter().enumerate() {
            let mut left = client.engine.leftovers();
            left.retain(|(what, _)| ["holds", "calls", "entries"].contains(what));
            self.judge.look("no residue", left.is_empty(), false, || {
                format!("c{slot} has {left:?} in the end")
            });
        }
        self.judge.found.take().map_or(Ok(()), Err)
    }

    pub(super) fn lease(&self) -> Instant {
        self.options.lease.as_nanos() as u64
    }

    fn latency(&mut self) -> Instant {
        match self.dice.chance(20) {
            true => self.dice.between(MS, 30 * MS),
            false => self.dice.between(50 * US, 2 * MS),
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Wake { slot, generation } => {
                if self.wakes[slot].1 == generation {
                    self.wakes[slot].0 = Instant::MAX;
                    self.clients[slot].wake(self.now);
                    self.after(slot);
                    self.punctual(slot);
                }
            }
            Event::Turn { slot, caller, generation } => {
                self.turn(slot, caller, generation);
                self.after(slot);
            }
            Event::Up(conn) => self.up(conn),
            Event::Down(conn) => self.down(conn),
            Event::Dialled(conn) => self.dialled(conn),
            Event::Broken(conn) => {
                let slot = self.conns[conn].slot;
                if std::mem::replace(&mut self.conns[conn].open, false) {
                    self.clients[slot].broken(self.now, conn);
                    self.after(slot);
                }
            }
            Event::Ask { slot, node } => self.ask(slot, node),
            Event::Map { slot, node, answer } => {
                self.clients[slot].fetched(self.now, address(node), answer);
                self.after(slot);
            }
            Event::Copied { to, from, offset, keys } => {
                let replica = &mut self.nodes[to];
                if replica.follows == Some(from) && replica.offset < offset && !replica.alone {
                    (replica.offset, replica.keys) = (offset, Keyspace::clone(&keys));
                }
            }
            Event::Bus { node, channel, payload } => self.announce(node, &channel, &payload),
            Event::Fault => self.fault(),
            Event::Next(next) => self.next(next),
            Event::Quiet => {
                self.quiet = true;
                for slot in 0..CLIENTS {
                    for caller in 0..CALLERS {
                        if matches!(self.callers[slot][caller].doing, Doing::Holds { .. }) {
                            let after = self.dice.below(SEC);
                            self.turn_in(slot, caller, after);
                        }
                    }
                }
            }
        }
    }

    // ----- clients -----

    /// After each step of a client.
    fn after(&mut self, slot: usize) {
        loop {
            let wishes = self.clients[slot].settle(self.now);
            if wishes.is_empty() {
                break;
            }
            for wish in wishes {
                self.grant(slot, wish);
            }
        }
        let (planned, generation) = self.wakes[slot];
        let wanted = self.clients[slot].next_wake();
        if wanted != planned {
            let at = wanted.max(self.now).saturating_add(self.dice.between(1, 200) * US);
            self.wakes[slot] = (wanted, generation + 1);
            if wanted != Instant::MAX {
                self.queue.push(at, Event::Wake { slot, generation: generation + 1 });
            }
        }
    }

    /// After a wake every hold that has ended is told to be lost.
    fn punctual(&mut self, slot: usize) {
        let client = &self.clients[slot];
        for caller in &self.callers[slot] {
            if let Doing::Holds { hold, lock, lost: false, .. } = caller.doing {
                let left = client.engine.remaining(client.now(self.now), hold);
                self.judge.look(
                    "lost in time",
                    left.is_some_and(|left| !left.is_zero()),
                    false,
                    || format!("lock {lock}: c{slot} has a hold that is over, and was not told"),
                );
            }
        }
    }

    fn grant(&mut self, slot: usize, wish: Wish) {
        match wish {
            Wish::Dial(lane, node) => {
                let Some(node) = server_at(&node) else { return };
                let conn = self.conns.len();
                self.conns.push(Conn {
                    slot,
                    node,
                    open: true,
                    alive: true,
                    up: VecDeque::new(),
                    down: VecDeque::new(),
                    up_at: 0,
                    down_at: 0,
                    reads: Reads::default(),
                    asking: false,
                    channel: None,
                });
                if let Some(lane) = self.clients[slot].lanes.get_mut(&lane) {
                    lane.making = Some(conn);
                }
                let after = self.latency();
                self.queue.push(self.now + after, Event::Dialled(conn));
            }
            Wish::Say(conn, bytes) => {
                let at = self.now + self.latency();
                let it = &mut self.conns[conn];
                it.up_at = it.up_at.max(at);
                it.up.push_back(bytes);
                self.queue.push(it.up_at, Event::Up(conn));
            }
            Wish::Hang(conn, ours) => {
                self.conns[conn].open = false;
                if ours {
                    self.judge_hang(slot, conn);
                }
            }
            Wish::Fetch(node) => {
                let Some(node) = server_at(&node) else { return };
                self.judge.fetched(self.now, slot);
                let after = self.latency();
                self.queue.push(self.now + after, Event::Ask { slot, node });
            }
            Wish::Asked(lane, op) => self.judge_asked(slot, lane, &op),
            Wish::SentOn => {
                self.outcome.sent_on += 1;
                self.judge.sent_on(self.now, slot);
            }
            Wish::Ended(tag, outcome) => self.ended(slot, tag, outcome),
            Wish::Lost(tag, reason) => self.lost(slot, tag, reason),
        }
    }

    /// Whether a client reaches the server that has a lock, and that serves.
    pub(super) fn reaches(&self, slot: usize, lock: usize) -> bool {
        let node = self.truth[self.shape.part_of(lock)].owner;
        self.cut[slot][node] <= self.now && self.is_well(node)
    }

    fn is_well(&self, node: usize) -> bool {
        let it = &self.nodes[node];
        it.down_until.max(it.mute_until) <= self.now && !it.fails && it.follows.is_none()
    }

    /// Nobody gives up a connection to a server that is well, and has been for long.
    fn judge_hang(&mut self, slot: usize, conn: usize) {
        let node = self.conns[conn].node;
        let mut kept = false;
        for lock in 0..LOCKS {
            let book = &self.judge.books[lock];
            let theirs = self.truth[self.shape.part_of(lock)].owner == node;
            kept |= theirs && self.reaches(slot, lock) && book.disturbed + 4 * SEC < self.now;
        }
        self.judge.look("connections", !kept || !self.conns[conn].alive, false, || {
            format!("c{slot} gave up its connection to server {node}, which is well")
        });
    }

    /// A request is about a lock that its server has, and is bounded by that server's time.
    fn judge_asked(&mut self, slot: usize, lane: LaneId, op: &Op) {
        let node = self.clients[slot].lanes.get(&lane).and_then(|lane| server_at(&lane.node));
        let Some(node) = node else { return };
        for name in op.locks() {
            let Some(lock) = self.shape.names.iter().position(|it| *it == name) else { continue };
            let part = self.shape.part_of(lock);
            let owner = self.truth[part].owner;
            let moving = self.nodes[owner].leaving.get(&part) == Some(&node);
            let right = owner == node || moving || !self.reaches(slot, lock);
            self.judge.asked(self.now, slot, lock, right);
        }
        if let Op::Acquire(ask) = op {
            // An answer that was long on its way makes the client think that it is earlier.
            let clock = self.nodes[node].clock.read(self.now);
            let fits =
                (clock.saturating_sub(20_000_000)..clock + 40_000_000).contains(&ask.not_after);
            self.judge.look("clocks", fits, false, || {
                format!(
                    "c{slot} bounds a request by {}, and server {node}'s clock reads {clock}",
                    ask.not_after
                )
            });
        }
    }

    // ----- the network -----

    /// Until when nothing passes between a client and a server.
    fn blocked(&self, slot: usize, node: usize) -> Instant {
        self.cut[slot][node].max(self.nodes[node].mute_until)
    }

    fn dialled(&mut self, conn: usize) {
        let Conn { slot, node, open, .. } = self.conns[conn];
        if !open {
            return;
        }
        let blocked = self.blocked(slot, node);
        if self.nodes[node].down_until > self.now {
            self.conns[conn].alive = false;
            return self.queue.push(self.now, Event::Broken(conn));
        }
        // A server that stands still takes connections; one that is not reached does not.
        if self.cut[slot][node] > self.now {
            return self.queue.put_off(blocked, Event::Dialled(conn));
        }
        self.clients[slot].dialled(self.now, conn);
        self.after(slot);
    }

    fn up(&mut self, conn: usize) {
        let Conn { slot, node, .. } = self.conns[conn];
        let blocked = self.blocked(slot, node);
        if blocked > self.now {
            return self.queue.put_off(blocked, Event::Up(conn));
        }
        let Some(bytes) = self.conns[conn].up.pop_front() else { return };
        if !self.conns[conn].alive || self.nodes[node].down_until > self.now {
            return;
        }
        let commands = self.conns[conn].reads.commands(&bytes);
        let mut out = Vec::new();
        for words in commands {
            self.execute(conn, &words, &mut out);
        }
        self.say(conn, out);
    }

    /// A server says something on a connection.
    fn say(&mut self, conn: usize, bytes: Vec<u8>) {
        let at = self.now + self.latency();
        let it = &mut self.conns[conn];
        it.down_at = it.down_at.max(at);
        it.down.push_back(bytes);
        self.queue.push(it.down_at, Event::Down(conn));
    }

    fn down(&mut self, conn: usize) {
        let Conn { slot, node, .. } = self.conns[conn];
        if self.cut[slot][node] > self.now {
            return self.queue.put_off(self.cut[slot][node], Event::Down(conn));
        }
        let Some(bytes) = self.conns[conn].down.pop_front() else { return };
        if !self.conns[conn].open {
            return;
        }
        self.clients[slot].received(self.now, conn, &bytes);
        self.after(slot);
    }

    fn ask(&mut self, slot: usize, node: usize) {
        let blocked = self.blocked(slot, node);
        if blocked > self.now {
            return self.queue.put_off(blocked, Event::Ask { slot, node });
        }
        let answer = match self.nodes[node].down_until > self.now {
            true => Err(NoSession::Later("refused".to_owned())),
            false => {
                let [slots, info] = self.nodes[node].map(&self.shape);
                Topology::read(&address(node), &slots, &info, &Secrets::default())
            }
        };
        let after = self.latency();
        self.queue.push(self.now + after, Event::Map { slot, node, answer });
    }

    /// All connections to a server break; whether its clients hear of it.
    pub(super) fn break_all(&mut self, node: usize, heard: bool) {
        for conn in 0..self.conns.len() {
            if self.conns[conn].node == node
                && std::mem::replace(&mut self.conns[conn].alive, false)
            {
                self.conns[conn].channel = None;
                let after = self.latency();
                if heard {
                    self.queue.push(self.now + after, Event::Broken(conn));
                }
            }
        }
    }

    // ----- the servers -----

    fn execute(&mut self, conn: usize, words: &[Vec<u8>], out: &mut Vec<u8>) {
        let node = self.conns[conn].node;
        if words[0] == b"SUBSCRIBE" {
            self.conns[conn].channel = Some(words[1].clone());
            return out.extend(wire::subscribed(&words[1]));
        }
        let conns = &self.conns;
        let listens = |channel: &[u8]| {
            let hears =
                |it: &Conn| it.node == node && it.alive && it.channel.as_deref() == Some(channel);
            conns.iter().any(hears)
        };
        let mut asking = self.conns[conn].asking;
        let mut stage =
            Stage { redis: &mut self.redis, shape: &self.shape, now: self.now, listens: &listens };
        let answer = self.nodes[node].answer(&mut stage, &mut asking, words);
        self.conns[conn].asking = asking;
        if let fencelock_engine::redis::Value::Error(line) = &answer.value {
            self.outcome.again += u32::from(line.starts_with("TRYAGAIN"));
            self.outcome.unknown += u32::from(line.starts_with("NOSCRIPT"));
        }
        wire::reply(out, &answer.value);
        for (channel, payload) in answer.published {
            self.announce_here(node, conn, &channel, &payload, out);
            if !self.nodes[node].alone {
                for other in (0..NODES).filter(|other| *other != node) {
                    let (channel, payload) = (channel.clone(), payload.clone());
                    let after = self.latency();
                    let event = Event::Bus { node: other, channel, payload };
                    self.queue.push(self.now + after, event);
                }
            }
        }
        if let Some(lock) = answer.wrote {
            self.wrote(node, lock);
        }
    }

    /// What was published at a server reaches those who listen there; the one that caused it in order.
    fn announce_here(
        &mut self,
        node: usize,
        conn: usize,
        channel: &[u8],
        payload: &[u8],
        out: &mut Vec<u8>,
    ) {
        if self.conns[conn].channel.as_deref() == Some(channel) {
            out.extend(wire::message(channel, payload));
        }
        for other in 0..self.conns.len() {
            let it = &self.conns[other];
            if other != conn
                && it.node == node
                && it.alive
                && it.channel.as_deref() == Some(channel)
            {
                self.say(other, wire::message(channel, payload));
            }
        }
    }

    fn announce(&mut self, node: usize, channel: &[u8], payload: &[u8]) {
        if self.nodes[node].down_until > self.now || self.nodes[node].alone {
            return;
        }
        for conn in 0..self.conns.len() {
            let it = &self.conns[conn];
            if it.node == node && it.alive && it.channel.as_deref() == Some(channel) {
                self.say(conn, wire::message(channel, payload));
            }
        }
    }

    /// A script ran on a lock's keys: replicas hear of it, and if the server is not the lock's any more, what
    /// it granted is nobody's to keep.
    fn wrote(&mut self, node: usize, lock: usize) {
        self.replicate(node);
        if self.doomed == Some(node) {
            self.doomed = None;
            let after = self.dice.between(2 * MS, 20 * MS);
            self.queue.push(self.now + after, Event::Next(Next::Kill { node }));
        }
        let part = self.shape.part_of(lock);
        let owner = self.truth[part].owner;
        if owner != node && self.nodes[owner].leaving.get(&part) != Some(&node) {
            self.outcome.stale += 1;
            self.shake(lock);
            self.judge.books[lock].doubled = self.now + self.lease();
        }
    }

    /// What was granted of a lock may be granted again.
    pub(super) fn shake(&mut self, lock: usize) {
        self.judge.books[lock].shaken = self.now + self.lease() + SEC;
    }

    pub(super) fn replicate(&mut self, node: usize) {
        if self.nodes[node].alone {
            return;
        }
        let (offset, keys) = (self.nodes[node].offset, Rc::new(self.nodes[node].keys.clone()));
        for to in 0..NODES {
            if self.nodes[to].follows == Some(node) {
                let after = self.dice.between(self.lag / 2, self.lag);
                let keys = Rc::clone(&keys);
                self.queue.push(self.now + after, Event::Copied { to, from: node, offset, keys });
            }
        }
    }

    /// A server is told who has a part.
    pub(super) fn learn(&mut self, node: usize, part: usize, claim: Claim) {
        let known = &mut self.nodes[node].view[part];
        if known.epoch < claim.epoch {
            *known = claim;
        }
    }
}
