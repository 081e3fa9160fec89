//! One run: a seed's world, its scheduler, and what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::{Engine, Name};

use crate::check::{Checks, Violation};
use crate::chronicle::Chronicle;
use crate::client::{Actor, Client, Who};
use crate::clock::{ClientClock, Instant, MS, SEC, StoreClock};
use crate::cost::Line;
use crate::cover::{Cover, Coverage};
use crate::dice::Dice;
use crate::event::Event;
use crate::network::{Conn, Link};
use crate::plan::{Plan, StoreKind};
use crate::queue::Queue;
use crate::server::Server;
use crate::store::{Reach, Store, client_number};
use crate::trace::Trace;

/// The store's clock at the beginning of every run: a day in 2025, in microseconds.
const STORE_EPOCH: u64 = 1_750_000_000_000_000;
/// A run that takes so many events has gone wild.
const MAX_EVENTS: u64 = 500_000;

/// What came of a run.
#[derive(Debug)]
pub struct Run {
    /// The first broken promise.
    pub violation: Option<Violation>,
    /// How often each promise was not kept, and need not have been under the run's faults.
    pub waived: BTreeMap<&'static str, u64>,
    /// The order of the queue and of local hand-offs was judged to the letter.
    pub strict: bool,
    /// Which hard cases were met.
    pub cover: Coverage,
    /// Calls into engines.
    pub steps: u64,
    /// On ZooKeeper, up to the quiet part: how many watches fired, and how often a lock was given
    /// up.
    pub watches: (u64, u64),
    /// The same for the same seed.
    pub hash: u64,
    /// What was drawn.
    pub plan: Plan,
    /// The kept text, if it was asked for.
    pub trace: Trace,
    /// The history, if it was asked for.
    pub history: Chronicle,
}

/// One run in progress.
#[derive(Debug)]
pub struct World {
    pub(crate) now: Instant,
    pub(crate) queue: Queue<Event>,
    pub(crate) dice: Dice,
    pub(crate) plan: Plan,
    pub(crate) names: Vec<Name>,
    pub(crate) clients: Vec<Client>,
    pub(crate) conns: Vec<Conn>,
    pub(crate) server: Server,
    pub(crate) checks: Checks,
    pub(crate) trace: Trace,
    pub(crate) chronicle: Chronicle,
    pub(crate) cover: Coverage,
    pub(crate) steps: u64,
    pub(crate) quiet: bool,
    pub(crate) done: bool,
    /// No trouble since then.
    pub(crate) trouble_until: Instant,
    /// See [`World::keeps`].
    pub(crate) kept: std::time::Duration,
    /// How many of those who were passed over a lock had when that was looked at last, at the end.
    pub(crate) passed_over: usize,
    /// The hold of the last release that the engine sent.
    pub(crate) sent_release: Option<fencelock_engine::HoldId>,
    /// How many permits callers say that each name has.
    pub(crate) sizes: Vec<u32>,
    /// ZooKeeper, in a run on it.
    pub(crate) zk: Option<Box<crate::zookeeper::Site>>,
}

impl World {
    /// Runs a plan; `dice` draw every delay and every choice on the way. Gives the store back, to be
    /// used again: setting one up may be slow.
    pub(crate) fn play(
        plan: Plan,
        dice: Dice,
        mut store: Box<dyn Store>,
        trace: Trace,
        chronicle: Chronicle,
    ) -> (Run, Box<dyn Store>) {
        store.reset();
        let names = match plan.store {
            StoreKind::ZooKeeper => (0..plan.locks).map(World::zk_name).collect(),
            _ => (0..plan.locks).map(|lock| name(&format!("lock-{lock}"))).collect(),
        };
        let mut world = World {
            now: 0,
            queue: Queue::default(),
            names,
            clients: Vec::new(),
            conns: Vec::new(),
            server: Server {
                store,
                clock: StoreClock::new(STORE_EPOCH, plan.store_ppm),
                ahead: 0,
                paused_until: 0,
                down_until: 0,
                refusing_until: 0,
                mute_until: 0,
                foreign: vec![0; plan.locks],
                reach: Reach::default(),
                open: Vec::new(),
                polling: Vec::new(),
                patience: plan.options.claim,
                silence: plan.options.claim,
                line: Line::default(),
            },
            checks: Checks::new(&plan),
            trace,
            chronicle,
            cover: Coverage::default(),
            steps: 0,
            quiet: false,
            done: false,
            trouble_until: 0,
            kept: std::time::Duration::ZERO,
            passed_over: usize::MAX,
            sizes: plan.permits.clone(),
            sent_release: None,
            zk: None,
            dice,
            plan,
        };
        world.checks.silent = world.chronicle.alone();
        world.tell_fault(0, "begun", "run");
        world.begin();
        world.go();
        let strict = world.checks.queue.strict || world.zk_strict();
        let run = Run {
            violation: world.checks.found.take(),
            waived: world.checks.waived,
            strict,
            cover: world.cover,
            steps: world.steps,
            watches: world.zk.as_ref().map_or((0, 0), |zk| zk.truth.busy),
            hash: world.trace.hash(),
            plan: world.plan,
            trace: world.trace,
            history: world.chronicle,
        };
        (run, world.server.store)
    }

    fn begin(&mut self) {
        self.trace.line(0, || format!("{:#?}", self.plan));
        self.begin_zookeeper();
        for slot in 0..self.plan.clients {
            let offset = self.dice.between(1, 1_000) * SEC;
            let ppm = self.plan.client_ppm[slot];
            if ppm.abs() > 1_000 {
                self.cover.add(Cover::ClockRate);
            }
            let clock = ClientClock::new(offset, ppm);
            let engine = self.new_engine();
            self.clients.push(Client {
                incarnation: 0,
                up: false,
                engine,
                clock,
                link: Link::default(),
                inbox: Default::default(),
                actors: Vec::new(),
                locks: Vec::new(),
                paused_until: 0,
                asleep: 0,
                jumped: false,
                wake_at: None,
                wake_generation: 0,
                serial: 0,
                closing: None,
                ended: Vec::new(),
                renewals: (0, 0),
            });
            self.start(slot);
        }
        self.arm_faults();
        self.queue.push(self.plan.quiet_at, Event::Quiet);
    }

    fn new_engine(&mut self) -> Engine<u64> {
        let seed = self.dice.seed();
        Engine::new(self.plan.options.clone(), seed).expect("the plan's options are in range")
    }

    /// Starts a new client at a place, with a fresh engine.
    fn start(&mut self, slot: usize) {
        let incarnation = self.server.polling.len();
        let polling = self.plan.polling[slot];
        let random = self.dice.bits();
        self.server.store.enrol(client_number(incarnation, random), polling);
        self.server.polling.push(polling);
        self.server.open.push(Vec::new());
        self.server.reach.listening.push(false);
        let engine = self.new_engine();
        let names = self.names.clone();
        let explicit = self.plan.explicit;
        let actors = (0..self.plan.actors)
            .map(|actor| Actor {
                who: if self.dice.chance(explicit) {
                    Who::Explicit(self.dice.below(self.plan.owners as u64) as usize)
                } else {
                    Who::Local { incarnation, actor }
                },
                open: Vec::new(),
                held: Vec::new(),
                generation: 0,
                until: 0,
                cancel_at: None,
                regret: false,
                asked: vec![Duration::ZERO; self.plan.locks],
                fewer: vec![0; self.plan.locks],
            })
            .collect();
        let client = &mut self.clients[slot];
        client.incarnation = incarnation;
        client.up = true;
        client.engine = engine;
        client.actors = actors;
        client.locks = names.iter().map(|name| client.engine.lock(name)).collect();
        self.pair_locks(slot);
        let client = &mut self.clients[slot];
        client.inbox.clear();
        client.wake_at = None;
        client.wake_generation += 1;
        client.closing = None;
        client.ended.clear();
        self.trace.line(self.now, || format!("c{slot} starts as client {incarnation}"));
        if self.plan.zk.is_some() {
            self.connect_zk(slot, random);
        } else {
            self.connect(slot);
        }
        for actor in 0..self.plan.actors {
            let after = self.dice.below(20 * MS);
            self.schedule_turn(slot, actor, after);
        }
        self.after_step(slot);
    }

    /// Kills the client at a place; another one starts after `span`.
    pub(crate) fn crash(&mut self, slot: usize, span: u64) {
        if !self.clients[slot].up {
            return;
        }
        if self.clients[slot].holds() {
            self.cover.add(Cover::CrashedWhileHolding);
        }
        if self.clients[slot].actors.iter().any(|actor| actor.waiting().is_some()) {
            self.cover.add(Cover::CrashedWhileWaiting);
        }
        let incarnation = self.clients[slot].incarnation;
        self.crash_zk(slot);
        self.tell_fault(self.now, "killed", format!("c{incarnation}"));
        self.checks.crashed(slot, incarnation);
        self.keeps();
        let client = &mut self.clients[slot];
        client.up = false;
        client.wake_generation += 1;
        client.actors.clear();
        client.inbox.clear();
        if let Some(conn) = client.link.conn.take() {
            self.conns[conn].used = false;
            // A host that lost its power leaves its connection open for long.
            let notice = self.dice.pick(&[0, MS, 2 * SEC, 3_600 * SEC]);
            self.queue.push(self.now + notice, Event::Closed { conn });
        }
        self.queue.push(self.now + span, Event::Restart { slot });
    }

    /// Starts a client again, unless it runs.
    pub(crate) fn restart(&mut self, slot: usize) {
        if !self.clients[slot].up {
            self.start(slot);
        }
    }

    fn go(&mut self) {
        let mut events = 0_u64;
        while let Some((at, event)) = self.queue.pop() {
            if self.done || self.checks.found.is_some() {
                return;
            }
            events += 1;
            self.now = self.now.max(at);
            if events > MAX_EVENTS {
                self.checks.fail("liveness", self.now, || "the run does not end".to_owned());
                return;
            }
            self.take(event);
        }
    }

    /// A client that stands still takes its events later, in their order.
    fn defer(&mut self, slot: usize, event: Event) {
        // Whether its timer or a caller runs first is anybody's guess.
        let late = match &event {
            Event::Wake { .. } => self.dice.below(MS),
            _ => 0,
        };
        self.queue.put_off(self.clients[slot].paused_until + late, event);
    }

    fn take(&mut self, event: Event) {
        let slot = match &event {
            Event::Wake { slot, .. }
            | Event::Turn { slot, .. }
            | Event::Connect { slot, .. }
            | Event::Rival { slot, .. }
            | Event::Unsent { slot, .. }
            | Event::Inbox { slot, .. } => Some(*slot),
            Event::Hear { conn, .. } | Event::Broken { conn } => Some(self.conns[*conn].slot),
            _ => None,
        };
        if let Some(slot) = slot
            && self.now < self.clients[slot].paused_until
        {
            return self.defer(slot, event);
        }
        match event {
            Event::Wake { slot, generation } => self.wake(slot, generation),
            Event::Turn { slot, incarnation, actor, generation } => {
                self.turn(slot, incarnation, actor, generation);
            }
            Event::Arrive { conn, request, late } => self.arrive(conn, request, late),
            Event::Serve => self.serve(),
            Event::Hear { conn, event } => self.heard(conn, event),
            Event::Broken { conn } => self.broken(conn),
            Event::Closed { conn } => self.closed(conn),
            Event::Connect { slot, incarnation, attempt } => {
                self.try_connect(slot, incarnation, attempt);
            }
            Event::Rival { slot, incarnation, attempt } => self.rival(slot, incarnation, attempt),
            Event::Unsent { slot, incarnation, request } => {
                self.unsent(slot, incarnation, request);
            }
            Event::Inbox { slot, incarnation } => self.read_inbox(slot, incarnation),
            Event::Restart { slot } => self.restart(slot),
            Event::Unblock { slot, generation } => self.unblocked(slot, generation),
            Event::Snapshot => self.server.store.snapshot(),
            Event::Fault(index) => self.strike(index),
            Event::Mended => {
                if self.now >= self.server.refusing_until {
                    self.server.store.refuse(None);
                }
            }
            Event::Zk(crate::zookeeper::Happening::Mend(mend)) => self.mend_zk(mend),
            Event::Zk(event) => self.happen(event),
            Event::Cleared { lock } => {
                if self.now >= self.server.foreign[lock] {
                    self.foreign(lock, None);
                }
            }
            Event::Quiet => self.quieten(),
            Event::Settle => self.settle(),
            Event::Residue { again } => self.residue(again),
        }
    }
}

/// A name of the simulator's own.
pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a good name")
}
