//! The whole world at one instant.

use std::hash::{Hash, Hasher};

use fencelock_engine::hold::LockKey;
use fencelock_engine::request::Op;
use fencelock_engine::store::{self, Record};
use fencelock_engine::{ClientId, Engine, Event, Name, Time};

use crate::exhaust::caller::Caller;
use crate::exhaust::scope::{Budget, Scope};
use crate::exhaust::wire::Wire;

/// How many permits there are at first, where there are some.
pub(super) const PERMITS: u32 = 3;

/// What the store's clock read at the beginning, in microseconds.
const EPOCH: u64 = 1_800_000_000_000_000;

/// One client: the real engine, its connection, its callers.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub engine: Engine<u32>,
    pub lock: LockKey,
    pub known: store::Caller,
    pub wire: Wire,
    pub callers: Vec<Caller>,
    pub alive: bool,
    /// The next handle; handles name calls and holds.
    pub next: u32,
}

/// The highest token that was told to a holder, and whether an explicit owner has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Ledger {
    pub token: u64,
    pub explicit: bool,
    /// The highest token of a writer.
    pub written: u64,
    /// The highest token that the store gave, told or not.
    pub given: u64,
    /// The most permits that there were.
    pub most: u32,
}

/// The whole world at one instant.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub now: Time,
    pub clients: Vec<Client>,
    pub record: Record,
    /// Requests whose connection has gone, and that may yet be executed.
    pub strays: Vec<(usize, Op)>,
    pub left: Budget,
    pub ledger: Ledger,
    /// The store has lost what it acknowledged: it may have granted to two since.
    pub wiped: bool,
    /// The promise that was broken on the way here.
    pub broken: Option<&'static str>,
}

impl State {
    pub fn new(scope: &Scope) -> State {
        let now = Time::from_nanos(1_000_000_000);
        let mut state = State {
            now,
            clients: Vec::new(),
            // Used before: of a lock without a counter the first tokens lie ahead of the clock,
            // which stands still here between its steps.
            record: Record { token: 1, last: 1, ..Record::default() },
            strays: Vec::new(),
            left: scope.budget,
            ledger: Ledger { most: PERMITS, ..Ledger::default() },
            wiped: false,
            broken: None,
        };
        let store = state.store_time();
        for (index, programs) in scope.clients.iter().enumerate() {
            let seed = [index as u8 + 1; 32];
            let mut engine = Engine::new(scope.options(), seed).expect("good options");
            let lock = engine.lock(&Name::new("stock").expect("a short name"));
            let client = ClientId::new(index as u64, "").expect("a short label");
            engine.handle(now, Event::Up { now: store });
            assert!(engine.poll_effect().is_none(), "a new client has nothing to say");
            state.clients.push(Client {
                engine,
                lock,
                known: store::Caller { client, polling: scope.polling },
                wire: Wire { up: true, heard: !scope.polling, ..Wire::default() },
                callers: programs.iter().map(|program| Caller::new(program)).collect(),
                alive: true,
                next: 0,
            });
        }
        state
    }

    /// The store's clock, in microseconds.
    pub fn store_time(&self) -> u64 {
        EPOCH + self.now.as_nanos() / 1_000
    }
}

impl Client {
    /// Something is due that the engine was not woken for: the client is paused, or late.
    pub fn is_due(&self, now: Time) -> bool {
        self.engine.next_wake().is_some_and(|at| at <= now)
    }
}

impl Hash for Client {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.alive.hash(state);
        if self.alive {
            (&self.engine, &self.wire, &self.callers, self.next).hash(state);
        } else {
            // Nobody asks any more what it thought; the store may still hear from it.
            self.wire.heard.hash(state);
        }
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.now, &self.clients, &self.record, &self.strays).hash(state);
        (self.left, self.ledger, self.wiped, self.broken).hash(state);
    }
}

impl PartialEq for State {
    /// By hash, as everything here is compared.
    fn eq(&self, other: &State) -> bool {
        let hash = |state: &State| {
            let mut hasher = std::hash::DefaultHasher::new();
            state.hash(&mut hasher);
            hasher.finish()
        };
        hash(self) == hash(other)
    }
}
