//! Queues longer than one contact looks at, or an inspection shows.

use std::time::Duration;

use fencelock_engine::id::HoldId;
use fencelock_engine::request::{Acquire, Beat, Mode, Op, Release, Wait};

use crate::compare::{Server, World};

const BEGIN: u64 = 1_700_000_000_000_000;
const SILENCE: Duration = Duration::from_secs(2);

impl World {
    pub fn ask(&self, hold: u128, wait: bool) -> Op {
        let claim = Duration::from_secs(1);
        Op::Acquire(Acquire {
            lock: self.names[0].clone(),
            hold: HoldId(hold << 64),
            owner: None,
            mode: Mode::Exclusive,
            read_write: false,
            lease: Duration::from_secs(30),
            not_after: self.now + 500_000,
            floor: 0,
            wait: wait.then_some(Wait { ticket: 0, claim, silence: SILENCE }),
            attach: None,
            after: None,
            local_waiters: 0,
        })
    }

    pub fn give_up(&self, hold: u128) -> Op {
        let (lock, used) = (self.names[0].clone(), self.records[0].token);
        let retention = Duration::from_secs(86_400);
        Op::Release(Release { retention, ..Release::new(lock, HoldId(hold << 64), used) })
    }

    pub fn look(&self) -> Op {
        Op::Inspect(self.names[0].clone())
    }

    pub fn beat(&self, hold: u128) -> Op {
        let (lease, hold) = (Duration::from_secs(30), HoldId(hold << 64));
        let lock = self.names[0].clone();
        Op::Beat(vec![Beat { silence: SILENCE, ..Beat::new(lock, hold, lease) }])
    }
}

/// The lock is held by the one after so many who wait.
fn crowded(server: &mut dyn Server, waiters: u128) -> World {
    let mut world = World::new(server, BEGIN);
    let op = world.ask(waiters + 1, false);
    let _ = world.answers(server, 0, &op, "its first");
    for waiter in 1..=waiters {
        world.now += 10;
        let op = world.ask(waiter, true);
        let _ = world.answers(server, 1, &op, "the crowd comes");
    }
    world
}

/// All fall silent, and the lease ends, before anybody looks: each contact passes over as many as one
/// does and calls who came last, who is heard then and has the lock in the end.
pub fn compare_left(server: &mut dyn Server, silent: u128) {
    let mut world = crowded(server, silent);
    world.now += 40_000_000;
    for op in [
        world.ask(silent + 2, false),
        world.look(),
        world.beat(silent),
        world.ask(silent, true),
        world.ask(silent + 3, true),
        world.look(),
    ] {
        world.now += 10;
        let trace = format!("{silent} left, at {}: {op:?}", world.now);
        let _ = world.step(server, 1, &op, &trace);
    }
}

/// So many wait and fall silent, and one comes after them who lives. The holder releases, or its lease
/// ends, which whoever comes next finds.
pub fn compare(server: &mut dyn Server, silent: u128, releases: bool) {
    let mut world = crowded(server, silent);
    let (holder, last) = (silent + 1, silent + 2);
    let mut at = |world: &mut World, client: usize, op: &Op| {
        world.now += 10;
        let trace = format!("{silent} silent, at {}: {op:?}", world.now);
        let _ = world.step(server, client, op, &trace);
    };
    let op = world.look();
    at(&mut world, 2, &op);
    world.now += 3_000_000;
    let op = world.ask(last, true);
    at(&mut world, 2, &op);
    if releases {
        let op = world.give_up(holder);
        at(&mut world, 0, &op);
    } else {
        world.now += 30_000_000;
    }
    // Whoever comes in between passes nobody.
    for op in [world.ask(last + 1, false), world.look(), world.beat(last), world.look()] {
        at(&mut world, 3, &op);
    }
    // The parked ones are forgotten, a few with each contact, and one is heard again.
    world.now += 17_000_000;
    for op in [world.beat(silent / 2), world.beat(last), world.give_up(last), world.look()] {
        at(&mut world, 2, &op);
    }
}
