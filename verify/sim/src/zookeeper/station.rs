//! A client's lock machine: between its engine and its library.

use fencelock_engine::ClientId;
use fencelock_engine::Time;
use fencelock_engine::request::{Mode, Request};
use fencelock_engine::zookeeper::{Call, Input, Machine, NodeKind, Options, Output, Recipe, ZkOp};

use crate::clock::{MS, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::store::client_number;
use crate::world::World;
use crate::zookeeper::library::{Library, Told};
use crate::zookeeper::op::Answer;
use crate::zookeeper::site::{Happening, Site, User, Using};
use crate::zookeeper::translate;

/// A client's machine.
#[derive(Debug)]
pub struct Station {
    machine: Machine,
    /// Its library, by number.
    pub library: usize,
    incarnation: usize,
    wake_at: Option<Time>,
    generation: u64,
}

impl World {
    /// A new client: its library and its machine.
    pub(crate) fn connect_zk(&mut self, slot: usize, random: u64) {
        let Some(plan) = self.plan.zk.clone() else { return };
        let Some(mut zk) = self.zk.take() else { return };
        let incarnation = self.clients[slot].incarnation;
        let library = Library::new(self.now, plan.timeout, plan.ensemble.servers, &mut self.dice);
        let number = zk.users.len();
        let user = User::Client { slot, incarnation };
        zk.users.push(Using { user, library, paused_until: 0 });
        let recipe = if plan.simple { Recipe::Simple } else { Recipe::Queue };
        let options = Options { chroot: String::new(), recipe };
        let client = ClientId::new(client_number(incarnation, random), "sim").expect("a label");
        let machine = Machine::new(options, client).expect("good options");
        let station =
            Station { machine, library: number, incarnation, wake_at: None, generation: 0 };
        zk.stations.insert(slot, station);
        self.trouble(self.plan.zk_patience() / 2);
        self.zk = Some(zk);
        self.serve_libraries();
    }

    /// A client's process died.
    pub(crate) fn crash_zk(&mut self, slot: usize) {
        let Some(mut zk) = self.zk.take() else { return };
        if let Some(station) = zk.stations.remove(&slot)
            && let Some(conn) = zk.users[station.library].library.abandon()
        {
            // A host that lost its power leaves its connection open.
            let notice = self.dice.pick(&[0, MS, 3_600_000 * MS]);
            self.queue.push(self.now + notice, Event::Zk(Happening::ServerEnd { conn }));
        }
        self.zk = Some(zk);
    }

    pub(super) fn wake_machine(
        &mut self,
        zk: &mut Site,
        slot: usize,
        incarnation: usize,
        generation: u64,
    ) {
        let local = self.local(slot);
        if let Some(station) = zk.stations.get_mut(&slot)
            && station.incarnation == incarnation
            && station.generation == generation
        {
            station.wake_at = None;
            self.steps += 1;
            station.machine.wake(local);
            self.drain_machine(zk, slot);
        }
    }

    /// A client's machine hears what its library tells.
    pub(super) fn tell_machine(&mut self, zk: &mut Site, slot: usize, told: Told) {
        if let Told::Result {
            result:
                Ok(Answer::Created { stat, .. } | Answer::Data { stat, .. } | Answer::Stat(stat)),
            ..
        } = &told
            && let Some(station) = zk.stations.get(&slot)
            && stat.owner == zk.users[station.library].library.session()
        {
            zk.truth.sees(stat.owner, stat.czxid);
        }
        let input = self.input(slot, told);
        self.trace.line(self.now, || format!("m{slot} hears {input:?}"));
        let local = self.local(slot);
        if let Some(station) = zk.stations.get_mut(&slot) {
            self.steps += 1;
            station.machine.handle(local, input);
            self.drain_machine(zk, slot);
        }
    }

    fn input(&mut self, slot: usize, told: Told) -> Input {
        match told {
            Told::Connected { session, timeout, since } => Input::Connected {
                session: session as i64,
                timeout: std::time::Duration::from_nanos(timeout),
                since: self.clients[slot].clock.read(since),
                wall: self.server.clock.read(self.now),
            },
            told => translate::input(told, &mut self.dice),
        }
    }

    /// Takes a request from a client's engine.
    pub(crate) fn send_zk(&mut self, slot: usize, request: Request) {
        let Some(mut zk) = self.zk.take() else { return };
        let local = self.local(slot);
        if let Some(station) = zk.stations.get_mut(&slot) {
            if let fencelock_engine::request::Op::Break(what) = &request.op
                && let Some(lock) = self.names.iter().position(|it| *it == what.lock)
            {
                zk.truth.breaks(zk.users[station.library].library.session(), lock, what.token);
            }
            // It may be let in before its caller hears of it.
            if let fencelock_engine::request::Op::Acquire(ask) = &request.op
                && let (Mode::Shared, Some(owner)) = (ask.mode, &ask.owner)
                && let Some(lock) = self.names.iter().position(|it| *it == ask.lock)
            {
                self.checks.sharing.shares(lock, owner.clone());
            }
            station.machine.request(local, request);
            self.drain_machine(&mut zk, slot);
        }
        self.zk = Some(zk);
        self.serve_libraries();
    }

    /// The engine gives its connection up.
    pub(crate) fn reconnect_zk(&mut self, slot: usize) {
        let Some(mut zk) = self.zk.take() else { return };
        if let Some(station) = zk.stations.get_mut(&slot) {
            station.machine.reconnect();
            self.drain_machine(&mut zk, slot);
        }
        self.zk = Some(zk);
        self.serve_libraries();
    }

    fn drain_machine(&mut self, zk: &mut Site, slot: usize) {
        let now = self.now;
        let Some(station) = zk.stations.get_mut(&slot) else { return };
        let mut events = Vec::new();
        while let Some(output) = station.machine.poll_output() {
            match output {
                Output::Calls(calls) => {
                    let sequential = NodeKind::EphemeralSequential;
                    if let [Call { op: ZkOp::Create { kind, .. }, .. }] = &calls[..]
                        && *kind == sequential
                    {
                        self.cover.add(Cover::ZkUnlisted);
                    }
                    for call in calls {
                        self.trace.line(now, || format!("m{slot} calls {call:?}"));
                        if let ZkOp::Delete { path } = &call.op {
                            zk.truth.means(zk.users[station.library].library.session(), path);
                        }
                        let op = translate::op(&call.op);
                        zk.users[station.library].library.request(now, call.id.0, op);
                    }
                }
                Output::Event(event) => events.push(event),
                Output::Unwatch { path } => {
                    self.trace.line(now, || format!("m{slot} unwatches {path}"));
                    zk.users[station.library].library.unwatch(&path);
                }
                Output::Reconnect => {
                    self.trace.line(now, || format!("m{slot} reconnects"));
                    zk.users[station.library].library.reconnect(now, &mut self.dice);
                }
            }
        }
        let incarnation = station.incarnation;
        let wanted = station.machine.next_wake();
        if wanted != station.wake_at {
            station.wake_at = wanted;
            station.generation += 1;
            let generation = station.generation;
            if let Some(wanted) = wanted {
                let at = self.clients[slot].clock.when(wanted).max(now);
                let at = at + self.dice.between(1, 200) * US;
                let event = Happening::Machine { slot, incarnation, generation };
                self.queue.push(at, Event::Zk(event));
            }
        }
        if !events.is_empty() {
            self.clients[slot].inbox.extend(events);
            let at = now + self.dice.between(1, 30) * US;
            self.queue.push(at, Event::Inbox { slot, incarnation });
        }
    }
}
