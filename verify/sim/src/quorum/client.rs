//! A client: the engine and the machine, as a host drives them, and its callers.

use std::collections::{BTreeMap, BTreeSet};

use fencelock_engine::event::{Effect, Outcome};
use fencelock_engine::hold::{Grant, HoldKey};
use fencelock_engine::quorum::{Config, Input, Machine, Output};
use fencelock_engine::request::{Request, RequestId};
use fencelock_engine::store::Caller;
use fencelock_engine::{Engine, LockKey, LossReason, Name, Options, Time};

use crate::clock::{ClientClock, Instant};
use crate::quorum::server::{Creed, Marker};

/// A connection to a server.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Told apart from those before.
    pub number: u32,
    /// The marker that was read with it, once it is up.
    pub told: Option<Marker>,
    /// The server's process that it leads to, and with which it ends.
    pub run: u32,
    /// What was sent and is not answered.
    pub owed: BTreeSet<RequestId>,
    /// When the last message in each direction arrives.
    pub last: [Instant; 2],
    /// Nothing passes until then.
    pub cut_off_until: Instant,
}

/// What happened to a caller, or is to be sent.
#[derive(Debug)]
pub enum Wish {
    Send(usize, Box<Request>),
    Reconnect(usize),
    Granted(u32, Grant),
    Failed(u32, fencelock_engine::Error),
    Lost(u32, LossReason),
    Done,
}

/// One client.
pub struct Client {
    pub caller: Caller,
    pub creed: Creed,
    pub clock: ClientClock,
    pub engine: Engine<u32>,
    pub machine: Machine,
    pub locks: Vec<(Name, LockKey)>,
    pub links: Vec<Link>,
    /// It stands still until then.
    pub paused_until: Instant,
    /// When it is to be woken.
    pub wakes_at: Option<Instant>,
    /// Its holds: which call, under which lock, with which token.
    pub holds: BTreeMap<u32, (usize, HoldKey, u64)>,
}

impl Client {
    pub fn new(
        caller: Caller,
        creed: Creed,
        clock: ClientClock,
        options: Options,
        locks: usize,
        seeds: [[u8; 32]; 2],
    ) -> Client {
        let servers = (0..creed.list).map(|server| format!("s{server}")).collect();
        let machine = Machine::new(Config::new(servers, &options), seeds[0]).expect("a fit list");
        let mut engine = Engine::new(options, seeds[1]).expect("fit options");
        let name = |lock| Name::new(format!("lock{lock}")).expect("a plain name");
        let locks = (0..locks).map(|lock| (name(lock), engine.lock(&name(lock)))).collect();
        Client {
            caller,
            creed,
            clock,
            engine,
            machine,
            locks,
            links: vec![Link::default(); creed.list],
            paused_until: 0,
            wakes_at: None,
            holds: BTreeMap::new(),
        }
    }

    /// What its clock reads.
    pub fn read(&self, now: Instant) -> Time {
        self.clock.read(now)
    }

    pub fn next_wake(&self) -> Option<Time> {
        self.engine.next_wake().into_iter().chain(self.machine.next_wake()).min()
    }

    pub fn wake(&mut self, now: Instant) {
        let now = self.read(now);
        self.engine.wake(now);
        self.machine.wake(now);
    }

    pub fn hear(&mut self, now: Instant, server: usize, input: Input) {
        let now = self.read(now);
        self.machine.handle(now, server, input);
    }

    /// Passes on what engine and machine have to say to each other; gives what they want of the world.
    pub fn settle(&mut self, now: Instant) -> Vec<Wish> {
        let now = self.read(now);
        let mut wishes = Vec::new();
        loop {
            if let Some(effect) = self.engine.poll_effect() {
                wishes.push(match effect {
                    Effect::Send(request) => {
                        self.machine.request(now, request);
                        continue;
                    }
                    Effect::Complete(call, Outcome::Granted(grant)) => Wish::Granted(call, grant),
                    Effect::Complete(call, Outcome::Failed(error)) => Wish::Failed(call, error),
                    Effect::Complete(..) => Wish::Done,
                    Effect::Lost(call, reason) => Wish::Lost(call, reason),
                    Effect::Reconnect(_) | Effect::Wanted(_) | Effect::Note(_) => continue,
                });
            } else if let Some(output) = self.machine.poll_output() {
                match output {
                    Output::Send(server, request) => {
                        wishes.push(Wish::Send(server, Box::new(request)));
                    }
                    Output::Reconnect(server, _) => wishes.push(Wish::Reconnect(server)),
                    Output::Event(event) => self.engine.handle(now, event),
                }
            } else {
                return wishes;
            }
        }
    }

    /// Whether a hold may be trusted, by the client's own clock.
    pub fn trusts(&self, now: Instant, hold: HoldKey) -> bool {
        self.engine.remaining(self.read(now), hold).is_some()
    }
}
