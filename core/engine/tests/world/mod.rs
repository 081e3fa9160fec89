//! Several engines around the reference store, on a wire without delay.

#![allow(dead_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Push, Reply};
use fencelock_engine::request::{Op, Request};
use fencelock_engine::store::{Announce, Caller, Delivery, Record};
use fencelock_engine::{
    Acquired, Ask, CallKey, ClientId, Effect, Ended, Engine, Error, ErrorKind, Event, Grant,
    HoldKey, LockKey, LossReason, Name, Note, Options, Outcome, Patience, Time,
};

/// The store's clock at the world's beginning, in microseconds.
pub const EPOCH: u64 = 1_800_000_000_000_000;

pub struct Client {
    pub engine: Engine<u32>,
    pub id: ClientId,
    pub lock: LockKey,
    pub outcomes: BTreeMap<u32, Outcome>,
    pub lost: BTreeMap<u32, LossReason>,
    pub wanted: BTreeSet<u32>,
    pub notes: Vec<Note>,
    /// Requests sent so far, for counting round trips.
    pub sent: usize,
    /// The connection is up.
    pub up: bool,
    /// Requests are executed and their replies dropped.
    pub swallow_replies: bool,
    /// Requests are executed, and their replies stay on their way until [`World::arrive`].
    pub slow: bool,
    /// Pushes are dropped.
    pub deaf: bool,
    pub next: u32,
}

pub struct World {
    pub now: Duration,
    pub records: BTreeMap<Name, Record>,
    pub clients: Vec<Client>,
    /// Requests and pushes, as they happen.
    pub log: Vec<String>,
    inbox: Vec<(usize, Event)>,
    late: Vec<(usize, Event)>,
}

struct Inboxes {
    ids: Vec<(String, bool)>,
    pushed: Vec<(usize, Push)>,
}

impl Announce for Inboxes {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        match self.ids.iter().position(|(id, up)| id == client && *up) {
            Some(index) => {
                self.pushed.push((index, push));
                Delivery::Delivered
            }
            None => Delivery::Nobody,
        }
    }
}

impl World {
    pub fn new(clients: usize) -> World {
        World::with(clients, Options::default())
    }

    pub fn with(clients: usize, options: Options) -> World {
        let mut world = World {
            now: Duration::from_secs(1),
            records: BTreeMap::new(),
            clients: Vec::new(),
            log: Vec::new(),
            inbox: Vec::new(),
            late: Vec::new(),
        };
        for index in 0..clients {
            world.add(index as u8, options.clone());
        }
        world
    }

    pub fn add(&mut self, seed: u8, options: Options) -> usize {
        let mut engine = Engine::new(options, [seed + 1; 32]).unwrap();
        let lock = engine.lock(&Name::new("stock").unwrap());
        self.clients.push(Client {
            engine,
            id: ClientId::new(u64::from(seed) + 1, "test").unwrap(),
            lock,
            outcomes: BTreeMap::new(),
            lost: BTreeMap::new(),
            wanted: BTreeSet::new(),
            notes: Vec::new(),
            sent: 0,
            up: false,
            swallow_replies: false,
            slow: false,
            deaf: false,
            next: 0,
        });
        let index = self.clients.len() - 1;
        self.connect(index);
        index
    }

    pub fn time(&self) -> Time {
        Time::ZERO + self.now
    }

    pub fn store_time(&self) -> u64 {
        EPOCH + self.now.as_micros() as u64
    }

    pub fn connect(&mut self, client: usize) {
        let (now, store) = (self.time(), self.store_time());
        self.clients[client].up = true;
        self.clients[client].engine.handle(now, Event::Up { now: store });
        self.run();
    }

    pub fn disconnect(&mut self, client: usize) {
        let now = self.time();
        self.clients[client].up = false;
        self.clients[client].engine.handle(now, Event::Down { reason: "cut".into() });
        self.run();
    }

    /// Starts an acquire; its outcome comes under the number that is returned.
    pub fn acquire(&mut self, client: usize, ask: Ask) -> (u32, Result<Acquired, Error>) {
        let now = self.time();
        let c = &mut self.clients[client];
        c.next += 1;
        let call = c.next;
        let acquired = c.engine.acquire(now, c.lock, ask, call);
        match &acquired {
            Ok(Acquired::Granted(grant)) => {
                c.outcomes.insert(call, Outcome::Granted(grant.clone()));
            }
            Err(error) => {
                c.outcomes.insert(call, Outcome::Failed(error.clone()));
            }
            Ok(Acquired::Pending(_)) => {}
        }
        self.run();
        (call, acquired)
    }

    /// Acquires and must get it at once.
    pub fn take(&mut self, client: usize, owner: u64) -> Grant {
        self.take_with(client, Ask::local(owner))
    }

    pub fn take_with(&mut self, client: usize, ask: Ask) -> Grant {
        let (call, _) = self.acquire(client, ask);
        self.granted(client, call)
    }

    /// Begins to wait; must not get it at once.
    pub fn queue(&mut self, client: usize, owner: u64) -> (u32, CallKey) {
        let (call, acquired) = self.acquire(client, Ask::local(owner));
        assert!(!self.clients[client].outcomes.contains_key(&call), "granted at once");
        match acquired {
            Ok(Acquired::Pending(key)) => (call, key),
            other => panic!("{other:?}"),
        }
    }

    pub fn try_take(&mut self, client: usize, owner: u64) -> Result<Grant, ErrorKind> {
        let ask = Ask { patience: Patience::Try, ..Ask::local(owner) };
        let (call, _) = self.acquire(client, ask);
        match self.clients[client].outcomes.get(&call) {
            Some(Outcome::Granted(grant)) => Ok(grant.clone()),
            Some(Outcome::Failed(error)) => Err(error.kind()),
            other => panic!("{other:?}"),
        }
    }

    pub fn granted(&self, client: usize, call: u32) -> Grant {
        match self.clients[client].outcomes.get(&call) {
            Some(Outcome::Granted(grant)) => grant.clone(),
            other => panic!("not granted: {other:?}"),
        }
    }

    pub fn is_pending(&self, client: usize, call: u32) -> bool {
        !self.clients[client].outcomes.contains_key(&call)
    }

    pub fn failed(&self, client: usize, call: u32) -> ErrorKind {
        match self.clients[client].outcomes.get(&call) {
            Some(Outcome::Failed(error)) => error.kind(),
            other => panic!("not failed: {other:?}"),
        }
    }

    /// Releases; gives the error's kind when that failed, at once or by its completion.
    pub fn release(&mut self, client: usize, hold: HoldKey) -> Result<(), ErrorKind> {
        let now = self.time();
        let c = &mut self.clients[client];
        c.next += 1;
        let call = c.next;
        match c.engine.release(now, hold, Some(call)) {
            Ok(Ended::Done) => {
                self.run();
                Ok(())
            }
            Ok(Ended::Pending) => {
                self.run();
                match self.clients[client].outcomes.get(&call) {
                    Some(Outcome::Released) => Ok(()),
                    Some(Outcome::Failed(error)) => Err(error.kind()),
                    other => panic!("release: {other:?}"),
                }
            }
            Err(error) => {
                self.run();
                Err(error.kind())
            }
        }
    }

    /// Begins to release, whatever becomes of that.
    pub fn begin_release(&mut self, client: usize, hold: HoldKey) -> Result<Ended, Error> {
        let now = self.time();
        let c = &mut self.clients[client];
        c.next += 1;
        let ended = c.engine.release(now, hold, Some(c.next));
        self.run();
        ended
    }

    /// A client hears a message, wherever it has been for so long.
    pub fn push(&mut self, client: usize, push: Push) {
        self.inbox.push((client, Event::Push(push)));
        self.run();
    }

    /// The replies that were on their way so far arrive.
    pub fn arrive(&mut self) {
        self.inbox.append(&mut self.late);
        self.run();
    }

    pub fn cancel(&mut self, client: usize, call: CallKey) -> bool {
        let now = self.time();
        let cancelled = self.clients[client].engine.cancel(now, call);
        self.run();
        cancelled
    }

    pub fn extend(&mut self, client: usize, hold: HoldKey, lease: Duration) -> u32 {
        let now = self.time();
        let c = &mut self.clients[client];
        c.next += 1;
        let call = c.next;
        if let Err(error) = c.engine.extend(now, hold, lease, call) {
            c.outcomes.insert(call, Outcome::Failed(error));
        }
        self.run();
        call
    }

    pub fn remaining(&self, client: usize, hold: HoldKey) -> Option<Duration> {
        self.clients[client].engine.remaining(self.time(), hold)
    }

    pub fn record(&self) -> Record {
        self.records.get(&Name::new("stock").unwrap()).cloned().unwrap_or_default()
    }

    /// Lets time pass for everybody, waking whoever wants it on the way.
    pub fn pass(&mut self, span: Duration) {
        self.pass_without(span, &[]);
    }

    /// Lets time pass while some clients are stopped.
    pub fn pass_without(&mut self, span: Duration, stopped: &[usize]) {
        let until = self.now + span;
        loop {
            let running = (0..self.clients.len()).filter(|index| !stopped.contains(index));
            let next = running.filter_map(|index| self.clients[index].engine.next_wake()).min();
            let Some(next) = next.filter(|next| *next <= Time::ZERO + until) else { break };
            self.now = self.now.max(next.since(Time::ZERO));
            let now = self.time();
            for index in 0..self.clients.len() {
                let due = self.clients[index].engine.next_wake().is_some_and(|at| at <= now);
                if due && !stopped.contains(&index) {
                    self.clients[index].engine.wake(now);
                }
            }
            self.run_without(stopped);
        }
        self.now = until;
    }

    pub fn run(&mut self) {
        self.run_without(&[]);
    }

    fn run_without(&mut self, stopped: &[usize]) {
        for _ in 0..100_000 {
            let mut busy = false;
            for index in 0..self.clients.len() {
                if stopped.contains(&index) {
                    continue;
                }
                while let Some(effect) = self.clients[index].engine.poll_effect() {
                    busy = true;
                    self.effect(index, effect);
                }
            }
            let now = self.time();
            let events = std::mem::take(&mut self.inbox);
            for (index, event) in events {
                if stopped.contains(&index) {
                    self.inbox.push((index, event));
                } else {
                    busy = true;
                    self.clients[index].engine.handle(now, event);
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the engines never come to rest");
    }

    fn effect(&mut self, index: usize, effect: Effect<u32>) {
        match effect {
            Effect::Send(request) => self.execute(index, request),
            Effect::Reconnect(_) => {
                self.log.push(format!("{index}: reconnect"));
            }
            Effect::Complete(call, outcome) => {
                let earlier = self.clients[index].outcomes.insert(call, outcome);
                assert!(earlier.is_none(), "call {call} ended twice: {earlier:?}");
            }
            Effect::Lost(call, reason) => {
                let earlier = self.clients[index].lost.insert(call, reason);
                assert!(earlier.is_none(), "told twice");
            }
            Effect::Wanted(call) => {
                self.clients[index].wanted.insert(call);
            }
            Effect::Note(note) => self.clients[index].notes.push(note),
        }
    }

    fn execute(&mut self, index: usize, request: Request) {
        // Tokens are given out no faster than the store's clock runs, so it has to.
        self.now += Duration::from_micros(10);
        let now = self.store_time();
        self.clients[index].sent += 1;
        self.log.push(format!("{index}: {:?}", request.op));
        if !self.clients[index].up {
            let result = Err(Failure::NotSent);
            self.inbox.push((index, Event::Reply { request: request.id, result }));
            return;
        }
        let ids = self.clients.iter().map(|c| (c.id.id().to_owned(), c.up)).collect();
        let mut inboxes = Inboxes { ids, pushed: Vec::new() };
        let caller = Caller { client: self.clients[index].id.clone(), polling: false };
        let records = &mut self.records;
        let out = &mut inboxes;
        let body = match &request.op {
            Op::Acquire(ask) => {
                let record = records.entry(ask.lock.clone()).or_default();
                record.acquire(now, &caller, ask, out).map(Body::Acquire)
            }
            Op::Beat(beats) => Ok(Body::Beat(
                beats
                    .iter()
                    .map(|beat| {
                        let record = records.entry(beat.lock.clone()).or_default();
                        record.beat(now, &caller, beat, out)
                    })
                    .collect(),
            )),
            Op::Release(release) => {
                let record = records.entry(release.lock.clone()).or_default();
                Ok(Body::Release(record.release(now, release, out)))
            }
            Op::Convert(ask) => {
                let record = records.entry(ask.lock.clone()).or_default();
                record.convert(now, &caller, ask, out).map(Body::Convert)
            }
            Op::Resize(ask) => {
                let record = records.entry(ask.lock.clone()).or_default();
                record.resize(now, ask, out).map(Body::Resize)
            }
            Op::Break(what) => {
                let record = records.entry(what.lock.clone()).or_default();
                Ok(Body::Break(record.break_lock(now, what, out)))
            }
            Op::Inspect(name) => {
                Ok(Body::Inspect(records.get(name).map(|record| record.inspect(now, name))))
            }
            Op::List { .. } => Ok(Body::List(records.keys().cloned().collect())),
            Op::Revoke(_) => Ok(Body::Revoke(false)),
            Op::Time => Ok(Body::Time),
        };
        for (to, push) in inboxes.pushed {
            self.log.push(format!("-> {to}: {push:?}"));
            if !self.clients[to].deaf {
                self.inbox.push((to, Event::Push(push)));
            }
        }
        let result = if self.clients[index].swallow_replies {
            Err(Failure::Unknown)
        } else {
            body.map(|body| Reply { now, body }).map_err(Failure::Refused)
        };
        let slow = self.clients[index].slow;
        let way = if slow { &mut self.late } else { &mut self.inbox };
        way.push((index, Event::Reply { request: request.id, result }));
    }
}
