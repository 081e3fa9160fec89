//! The rules, promise by promise and counter-example by counter-example.

mod bugs;
mod convert;
mod keep;
mod modes;
mod promises;
mod resize;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::id::{ClientId, HoldId, OwnerId};
use crate::name::Name;
use crate::reply::{Push, Released, Standing, State};
use crate::request::{Acquire, Beat, Release, Wait};
use crate::store::{Announce, Caller, Delivery, Record};

const SECOND: u64 = 1_000_000;
const LEASE: u64 = 30 * SECOND;
const CLAIM: u64 = 3 * SECOND;

/// One lock with its clock and its listeners.
struct Bench {
    now: u64,
    record: Record,
    /// Of how many losses each hold was told.
    losses: BTreeMap<u128, u32>,
    pushes: Vec<Push>,
    deaf: BTreeSet<String>,
    denied: bool,
}

impl Announce for (&mut Vec<Push>, &BTreeSet<String>, bool) {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        if self.2 {
            return Delivery::Failed;
        }
        if self.1.contains(client) {
            return Delivery::Nobody;
        }
        self.0.push(push);
        Delivery::Delivered
    }
}

fn client(number: u64) -> ClientId {
    ClientId::new(number, "test").unwrap()
}

fn name() -> Name {
    Name::new("job").unwrap()
}

/// Hold `id` belongs to the client `id / 10`.
fn caller(id: u128) -> Caller {
    Caller { client: client(u64::try_from(id / 10).unwrap()), polling: false }
}

impl Bench {
    fn new() -> Bench {
        let now = 1_700_000_000 * SECOND;
        let (pushes, deaf) = (Vec::new(), BTreeSet::new());
        let (record, losses) = (Record::default(), BTreeMap::new());
        Bench { now, record, losses, pushes, deaf, denied: false }
    }

    fn ask(&self, id: u128) -> Acquire {
        let claim = Duration::from_micros(CLAIM);
        let wait = Some(Wait { ticket: 0, claim, silence: claim });
        let lease = Duration::from_micros(LEASE);
        Acquire { wait, ..Acquire::new(name(), HoldId(id), lease, self.now + CLAIM) }
    }

    fn acquire(&mut self, ask: &Acquire) -> State {
        let caller = caller(ask.hold.0);
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        let state = self.record.acquire(self.now, &caller, ask, &mut out).unwrap();
        if state.standing == Standing::Granted {
            self.losses.insert(ask.hold.0, state.losses);
        }
        state
    }

    fn wait(&mut self, id: u128) -> State {
        self.acquire(&self.ask(id))
    }

    fn try_it(&mut self, id: u128) -> State {
        self.acquire(&Acquire { wait: None, ..self.ask(id) })
    }

    fn owned(&mut self, id: u128, owner: &str) -> State {
        let owner = Some(OwnerId::new(owner).unwrap());
        self.acquire(&Acquire { owner, ..self.ask(id) })
    }

    fn beat_for(&mut self, id: u128, lease: u64, used: u64) -> State {
        let lease = Duration::from_micros(lease);
        let silence = Duration::from_micros(CLAIM);
        let beat = Beat { used, silence, ..Beat::new(name(), HoldId(id), lease) };
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        self.record.beat(self.now, &caller(id), &beat, &mut out).unwrap()
    }

    fn beat(&mut self, id: u128) -> State {
        self.beat_for(id, LEASE, 0)
    }

    fn end(&mut self, id: u128, used: u64, told: bool, lost: bool) -> Released {
        let losses = self.losses.get(&id).copied().unwrap_or(0);
        let release = Release { told, lost, losses, ..Release::new(name(), HoldId(id), used) };
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        self.record.release(self.now, &release, &mut out)
    }

    fn release(&mut self, id: u128) -> Released {
        self.end(id, self.record.token, true, false)
    }

    fn holders(&self) -> Vec<u128> {
        self.record.holds.iter().map(|hold| hold.hold.0).collect()
    }

    fn granted_by_push(&self) -> Vec<u128> {
        let granted = |push: &Push| match push {
            Push::Granted { hold, .. } => Some(hold.0),
            _ => None,
        };
        self.pushes.iter().filter_map(granted).collect()
    }
}

fn assert_standing(state: State, standing: Standing) {
    assert_eq!(state.standing, standing, "{state:?}");
}
