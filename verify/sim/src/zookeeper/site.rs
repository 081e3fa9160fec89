//! The ensemble in the world: connections, libraries, machines, and whoever uses them.

use std::collections::BTreeMap;

use fencelock_engine::request::Mode as Shares;

use crate::check::Foreign;
use crate::clock::{Instant, MS, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::plan::Habits;
use crate::world::World;
use crate::zookeeper::curator::{self, Act, Curator, REVOKE, Recipe};
use crate::zookeeper::ensemble::{Ensemble, Env, Event as Inner};
use crate::zookeeper::fault::{Deaf, Mend};
use crate::zookeeper::heed::Asked;
use crate::zookeeper::library::{Action, Library, Lost, Told};
use crate::zookeeper::op::{Code, Op, SessionId};
use crate::zookeeper::pool::LOCKS;
use crate::zookeeper::server::{ConnId, Mail, Said, Sent};
use crate::zookeeper::station::Station;
use crate::zookeeper::truth::Truth;
use crate::zookeeper::way::Pipe;

/// Something that is to happen on the way to ZooKeeper.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Happening {
    /// Within the ensemble.
    Inner(Inner),
    /// A message reaches a server.
    Arrive { conn: ConnId, sent: Sent },
    /// A message reaches a library.
    Hear { conn: ConnId, said: Said },
    /// A server finds a connection gone.
    ServerEnd { conn: ConnId },
    /// A library finds its connection gone; or that none can be had.
    ClientEnd { library: usize, conn: Option<ConnId> },
    /// A library's attempt to connect arrives.
    Connect { library: usize, server: usize },
    /// A connection is made.
    Made { library: usize, conn: ConnId },
    /// A library's timer.
    Wake { library: usize, generation: u64 },
    /// A machine wanted to be woken.
    Machine { slot: usize, incarnation: usize, generation: u64 },
    /// A contender takes its turn.
    Turn { index: usize, generation: u64 },
    /// Somebody asks a lock's holder to let go.
    Revoke,
    /// By now a holder has heard that it was asked.
    Heed(Asked),
    /// A fault is over.
    Mend(Mend),
}

/// Whose library it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum User {
    Client {
        slot: usize,
        incarnation: usize,
    },
    Curator(usize),
    /// An administrator.
    Operator,
}

/// A library and its user.
#[derive(Debug)]
pub struct Using {
    /// Whose.
    pub user: User,
    /// The library.
    pub library: Library,
    /// A contender's process stands still until then.
    pub paused_until: Instant,
}

/// ZooKeeper in a run, and what uses it.
#[derive(Debug)]
pub struct Site {
    /// The servers.
    pub ensemble: Ensemble,
    /// The libraries.
    pub users: Vec<Using>,
    pub pipes: Vec<Pipe>,
    pub stations: BTreeMap<usize, Station>,
    /// Foreign contenders.
    pub curators: Vec<Curator>,
    /// What is really so.
    pub truth: Truth,
    /// The administrator's library.
    operator: usize,
    /// Ways that are blocked: until when, and how, for a client's place.
    pub blocked: BTreeMap<usize, (u64, bool, bool)>,
    pub blocks: u64,
    tokens: u64,
    /// Ends of faults that are to be planned.
    pub mends: Vec<(Instant, Mend)>,
    /// Until then a fault of the ensemble, or what follows it, may hold messages up.
    pub rough_until: Instant,
    /// The clients that do not hear their next answers of a kind.
    pub deaf: BTreeMap<usize, Deaf>,
    /// How much later than usual the next request of a client arrives.
    pub late: BTreeMap<usize, u64>,
}

impl Site {
    /// Cuts servers off, and plans the end of it.
    pub fn part(&mut self, island: &[usize], now: Instant, span: u64, env: &mut Env<'_>) {
        self.ensemble.part(island, true, env);
        let bits = island.iter().fold(0_u8, |bits, it| bits | 1 << it);
        self.mends.push((now + span, Mend::Part(bits)));
    }

    fn library_of(&self, session: SessionId) -> Option<usize> {
        self.users.iter().position(|it| it.library.session() == session)
    }

    /// The connection that a client has.
    pub fn conn_of(&self, slot: usize) -> Option<ConnId> {
        let station = self.stations.get(&slot)?;
        self.users[station.library].library.conn()
    }

    /// The server to which the holder of a lock is connected.
    pub fn server_of_holder(&self, lock: usize) -> Option<usize> {
        let node = self.truth.holder(lock, 0)?;
        let library = self.library_of(node.session)?;
        Some(self.users[library].library.server())
    }

    /// An administrator deletes a lock's first node, or one of the permits that are out.
    pub fn delete_holder(&mut self, lock: usize, now: Instant) {
        if let Some(path) = self.truth.holder(lock, self.tokens).map(|node| node.path.clone()) {
            self.tokens += 1;
            let op = Op::Delete { path, version: -1 };
            self.users[self.operator].library.request(now, self.tokens, op);
        }
    }

    fn revoke(&mut self, lock: usize, now: Instant) {
        if let Some(path) = self.truth.holder(lock, self.tokens).map(|node| node.path.clone()) {
            self.tokens += 1;
            let op = Op::Set { path, data: REVOKE.to_vec(), version: -1 };
            self.users[self.operator].library.request(now, self.tokens, op);
        }
    }

    /// A client's library gives its session up.
    pub fn give_up(&mut self, slot: usize, now: Instant, dice: &mut crate::dice::Dice) {
        if let Some(station) = self.stations.get(&slot) {
            self.users[station.library].library.give_up(now, dice);
        }
    }

    /// Whether a contender's node is at the store, so that what it believes is so.
    pub fn curator_truly_holds(&self, lock: usize, reads: bool) -> Option<usize> {
        (0..self.curators.len()).find(|&it| {
            let curator = &self.curators[it];
            let session = self.users[curator.library].library.session();
            curator.lock == lock
                && curator.holds()
                && !(reads && curator.recipe == Recipe::Read)
                && self.truth.holders(lock).any(|holder| holder.session == session)
        })
    }
}

impl World {
    /// The timeout that sessions wish for, or 0.
    pub(crate) fn zk_timeout(&self) -> u64 {
        self.plan.zk.as_ref().map_or(0, |zk| zk.timeout)
    }

    /// Whether a lock is one node that everybody watches.
    pub(crate) fn zk_is_simple(&self) -> bool {
        self.plan.zk.as_ref().is_some_and(|zk| zk.simple)
    }

    /// Sets up the ensemble and the foreign contenders.
    pub(crate) fn begin_zookeeper(&mut self) {
        let Some(plan) = self.plan.zk.clone() else { return };
        let mut env = Env::new(self.now, &mut self.dice);
        let mut ensemble = Ensemble::new(plan.ensemble.clone(), &mut env);
        let (later, _) = (env.later, env.mail);
        let parents: Vec<String> = self.names.iter().map(|name| format!("/{name}")).collect();
        if let Some(created) = plan.near_end {
            for parent in &parents {
                match self.plan.permits.is_empty() {
                    true => ensemble.seed(parent, created),
                    false => ensemble.seed(&format!("{parent}/{LOCKS}"), created),
                }
            }
        }
        let mut site = Site {
            ensemble,
            users: Vec::new(),
            pipes: Vec::new(),
            stations: BTreeMap::new(),
            curators: Vec::new(),
            truth: Truth::new(parents.clone(), !self.plan.permits.is_empty()),
            operator: 0,
            blocked: BTreeMap::new(),
            blocks: 0,
            tokens: 0,
            mends: Vec::new(),
            rough_until: 0,
            deaf: BTreeMap::new(),
            late: BTreeMap::new(),
        };
        let servers = plan.ensemble.servers;
        let library = Library::new(self.now, plan.timeout, servers, &mut self.dice);
        site.users.push(Using { user: User::Operator, library, paused_until: 0 });
        for index in 0..plan.curators {
            let lock = self.dice.below(self.plan.locks as u64) as usize;
            let library = Library::new(self.now, plan.timeout, servers, &mut self.dice);
            let number = site.users.len();
            site.users.push(Using { user: User::Curator(index), library, paused_until: 0 });
            let Habits { hold, rest, .. } = self.plan.habits;
            let reads = self.plan.shares();
            let habits = curator::Habits { hold, rest, revoke: 4 * plan.revoke, reads };
            site.curators.push(Curator::new(lock, number, parents[lock].clone(), habits));
        }
        self.post(&mut site, later, Vec::new());
        if plan.revoke > 0 {
            self.queue.push(self.now + 20 * MS, Event::Zk(Happening::Revoke));
        }
        self.zk = Some(Box::new(site));
        self.serve_libraries();
    }

    /// Plans what the ensemble wants planned.
    pub(crate) fn post(&mut self, zk: &mut Site, later: Vec<(Instant, Inner)>, mail: Mail) {
        for (at, event) in later {
            self.queue.push(at, Event::Zk(Happening::Inner(event)));
        }
        for (conn, said) in mail {
            zk.truth.count(&said, zk.users[zk.pipes[conn].library].library.session());
            if zk.pipes[conn].lost_down || self.is_deaf(zk, conn, &said) {
                continue;
            }
            let pipe = &mut zk.pipes[conn];
            let at = (self.now + self.delay()).max(pipe.down_at);
            let lose = matches!(said, Said::Reply { .. }) && !self.quiet;
            pipe.down_at = at;
            if lose && self.dice.chance(self.plan.hazards.lose_reply / 4) {
                self.cover.add(Cover::ReplyLost);
                pipe.lost_down = true;
                self.end_later(zk, conn);
                continue;
            }
            self.queue.push(at, Event::Zk(Happening::Hear { conn, said }));
        }
        let news = std::mem::take(&mut zk.ensemble.news);
        for entry in news {
            if let Some(origin) = entry.origin {
                zk.truth.opened(&entry, zk.users[zk.pipes[origin.conn].library].user);
            }
            let (checks, trace) = (&mut self.checks, &mut self.trace);
            trace.mix(entry.zxid);
            trace.line(self.now, || format!("committed {entry:x?}"));
            zk.truth.committed(self.now, &entry, checks);
            for case in zk.truth.met.drain(..) {
                self.cover.add(case);
            }
            self.asked(zk);
        }
    }

    fn paused(&self, zk: &Site, library: usize) -> Instant {
        match zk.users[library].user {
            User::Client { slot, incarnation } if self.clients[slot].incarnation == incarnation => {
                self.clients[slot].paused_until
            }
            _ => zk.users[library].paused_until,
        }
    }

    /// Something happens on the way to ZooKeeper.
    pub(crate) fn happen(&mut self, event: Happening) {
        let Some(mut zk) = self.zk.take() else { return };
        let library = match &event {
            Happening::Hear { conn, .. } => Some(zk.pipes[*conn].library),
            Happening::ClientEnd { library, .. }
            | Happening::Made { library, .. }
            | Happening::Wake { library, .. } => Some(*library),
            Happening::Machine { slot, .. } => zk.stations.get(slot).map(|station| station.library),
            Happening::Turn { index, .. } => Some(zk.curators[*index].library),
            _ => None,
        };
        if let Some(library) = library {
            let until = self.paused(&zk, library);
            if self.now < until {
                let late = match &event {
                    Happening::Wake { .. } | Happening::Machine { .. } => self.dice.below(MS),
                    _ => 0,
                };
                self.queue.put_off(until + late, Event::Zk(event));
                self.zk = Some(zk);
                return;
            }
        }
        self.occur(&mut zk, event);
        self.zk = Some(zk);
        self.serve_libraries();
    }

    fn occur(&mut self, zk: &mut Site, event: Happening) {
        let now = self.now;
        match event {
            Happening::Inner(inner) => {
                let mut env = Env::new(now, &mut self.dice);
                zk.ensemble.take(inner, &mut env);
                let (later, mail) = (env.later, env.mail);
                self.post(zk, later, mail);
            }
            Happening::Arrive { conn, sent } => {
                let server = zk.pipes[conn].server;
                self.trace.line(now, || format!("s{server} gets from {conn}: {sent:x?}"));
                self.slow_create(zk, conn, &sent);
                let mut env = Env::new(now, &mut self.dice);
                zk.ensemble.client(conn, server, sent, &mut env);
                let (later, mail) = (env.later, env.mail);
                self.post(zk, later, mail);
            }
            Happening::Hear { conn, said } => {
                let library = zk.pipes[conn].library;
                zk.users[library].library.hear(now, conn, said, &mut self.dice);
            }
            Happening::ServerEnd { conn } => {
                let server = zk.pipes[conn].server;
                let mut env = Env::new(now, &mut self.dice);
                zk.ensemble.hang_up(conn, server, &mut env);
                let (later, mail) = (env.later, env.mail);
                self.post(zk, later, mail);
            }
            Happening::ClientEnd { library, conn } => {
                zk.users[library].library.broken(now, conn, &mut self.dice);
            }
            Happening::Connect { library, server } => self.attempt(zk, library, server),
            Happening::Made { library, conn } => zk.users[library].library.connected(now, conn),
            Happening::Wake { library, generation } => {
                zk.users[library].library.wake(now, generation, &mut self.dice);
            }
            Happening::Machine { slot, incarnation, generation } => {
                self.wake_machine(zk, slot, incarnation, generation);
            }
            Happening::Turn { index, generation } => {
                let curator = &mut zk.curators[index];
                if curator.generation == generation {
                    let library = &mut zk.users[curator.library].library;
                    curator.turn(now, library, &mut self.dice);
                    self.after_curator(zk, index);
                }
            }
            Happening::Revoke => {
                let lock = self.dice.below(self.plan.locks as u64) as usize;
                if !self.quiet {
                    zk.revoke(lock, now);
                    let next = self.dice.between(5 * MS, 200 * MS);
                    self.queue.push(now + next, Event::Zk(Happening::Revoke));
                }
            }
            Happening::Heed(asked) => self.heed(zk, asked),
            Happening::Mend(_) => {}
        }
    }

    /// Does what the libraries want, and tells their users what they tell.
    pub(crate) fn serve_libraries(&mut self) {
        let Some(mut zk) = self.zk.take() else { return };
        loop {
            let busy = |it: &Using| !(it.library.actions.is_empty() && it.library.told.is_empty());
            let Some(number) = zk.users.iter().position(busy) else { break };
            while let Some(wish) = zk.users[number].library.actions.pop_front() {
                self.grant_wish(&mut zk, number, wish);
            }
            while let Some(told) = zk.users[number].library.told.pop_front() {
                self.tell_library(&mut zk, number, told);
            }
        }
        self.zk = Some(zk);
    }

    fn grant_wish(&mut self, zk: &mut Site, library: usize, wish: Action) {
        match wish {
            Action::Connect { server } => {
                let at = self.now + self.delay();
                self.queue.push(at, Event::Zk(Happening::Connect { library, server }));
            }
            Action::Send { conn, sent } => {
                let request = matches!(sent, Sent::Request { .. });
                let client = matches!(zk.users[library].user, User::Client { .. });
                if request
                    && client
                    && !self.quiet
                    && self.dice.chance(self.plan.hazards.lose_request / 4)
                {
                    self.cover.add(Cover::RequestLost);
                    zk.pipes[conn].lost_up = true;
                    self.end_later(zk, conn);
                }
                let pipe = &mut zk.pipes[conn];
                if pipe.lost_up {
                    return;
                }
                let late = match zk.users[library].user {
                    User::Client { slot, .. } if request => zk.late.remove(&slot),
                    _ => None,
                };
                let at = (self.now + self.delay() + late.unwrap_or(0)).max(pipe.up_at);
                pipe.up_at = at;
                self.queue.push(at, Event::Zk(Happening::Arrive { conn, sent }));
            }
            Action::HangUp { conn } => {
                let pipe = &zk.pipes[conn];
                if !pipe.lost_up {
                    // What was sent before arrives before.
                    let at = (self.now + self.delay()).max(pipe.up_at);
                    self.queue.push(at, Event::Zk(Happening::ServerEnd { conn }));
                }
            }
            Action::Wake { at, generation } => {
                let at = at + self.dice.between(1, 200) * US;
                self.queue.push(at, Event::Zk(Happening::Wake { library, generation }));
            }
        }
    }

    fn tell_library(&mut self, zk: &mut Site, library: usize, told: Told) {
        match zk.users[library].user {
            User::Operator => {}
            User::Curator(index) => {
                self.trace.line(self.now, || format!("curator {index} hears {told:x?}"));
                let curator = &mut zk.curators[index];
                let library = &mut zk.users[library].library;
                curator.hear(self.now, told, library, &mut self.dice);
                self.after_curator(zk, index);
            }
            User::Client { slot, incarnation } => {
                let client = &self.clients[slot];
                if client.incarnation != incarnation || !client.up {
                    return;
                }
                self.trace.mix(self.now);
                match &told {
                    Told::Expired => self.expired_zk(slot),
                    Told::Reattached => self.cover.add(Cover::ZkReattached),
                    Told::Result { result: Err(Lost::Failure(it)), .. }
                        if it.code == Code::ConnectionLoss =>
                    {
                        self.cover.add(Cover::ZkLostWrite);
                    }
                    _ => {}
                }
                self.tell_machine(zk, slot, told);
            }
        }
    }

    pub(super) fn after_curator(&mut self, zk: &mut Site, index: usize) {
        let curator = &mut zk.curators[index];
        if let Some(at) = curator.turn_at.take() {
            let event = Happening::Turn { index, generation: curator.generation };
            self.queue.push(at, Event::Zk(event));
        }
        let lock = curator.lock;
        for act in std::mem::take(&mut curator.acts) {
            self.trace.line(self.now, || format!("curator {index} lock {lock}: {act:?}"));
            if let Act::Held(path) = act {
                self.cover.add(Cover::ZkForeign);
                let session = zk.users[zk.curators[index].library].library.session();
                let token = zk.truth.token_of(&path, session);
                let mode = match zk.curators[index].recipe {
                    Recipe::Read => Shares::Shared,
                    Recipe::Mutex | Recipe::Write => Shares::Exclusive,
                };
                let foreign = Foreign { lock, index, mode, token };
                self.checks.foreign_granted(self.now, &self.clients, foreign);
            }
        }
    }
}
