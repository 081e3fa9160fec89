//! Readers and permits on ZooKeeper, beside Curator's `InterProcessReadWriteLock` and
//! `InterProcessSemaphoreV2`.

use std::path::Path;
use std::time::Instant;

use fencelock::{Client, blocking};
use fencelock_testkit::ZooKeeper;

use super::{CROWD, World, pairs, processes, spread};
use crate::local::Flavor;
use crate::peer::{Kind, OF};
use crate::rivals::Rival;
use crate::{Aim, Case, Plan, Result, Side};

/// All cases of this kind; `program` is started as other processes. Permits are there where the store has
/// them.
///
/// # Errors
/// When the server cannot be reached.
pub fn plans(program: &Path, servers: &ZooKeeper) -> Result<Vec<Plan>> {
    let world = World::new(program, servers);
    let plan = |name, make: fn(&World) -> Result<Case>| {
        let world = world.clone();
        Plan::new(name, move || make(&world))
    };
    let mut plans = vec![
        plan("a pair of a reader", reader),
        plan("16 readers of one process on one path", readers),
        plan("4 processes with 4 tasks each, 90 of 100 read", crowd),
    ];
    if blocking::Client::connect(&world.url)?.capabilities().permits {
        plans.push(plan("a pair of a permit", permit));
        plans.push(plan("a semaphore of 4, 4 processes with 4 tasks each", permits));
    }
    Ok(plans)
}

/// Ours, and Curator.
fn beside(ours: Side, curator: Side) -> Case {
    Case { aim: Aim::None, sides: vec![ours, curator] }
}

fn reader(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(&world.url))?.rw_lock("ours/read")?.reader();
    let ours = Side::new("fencelock", move |count| {
        let start = Instant::now();
        runtime.block_on(pairs(lock.clone(), count))?;
        Ok(start.elapsed())
    });
    Ok(beside(ours, Rival::Curator.measured("read1", &world.connect, "read")?))
}

fn readers(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(&world.url))?.rw_lock("ours/readers")?.reader();
    let ours = Side::new("fencelock", move |count| {
        runtime.block_on(spread(count, CROWD, |_, each| pairs(lock.clone(), each)))
    });
    Ok(beside(ours, Rival::Curator.measured("read16", &world.connect, "readers")?))
}

fn crowd(world: &World) -> Result<Case> {
    let ours = processes(world, Kind::Readers)?;
    Ok(beside(ours, Rival::Curator.crowd("mostly4", &world.connect, "mostly")?))
}

fn permit(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let client = runtime.block_on(Client::connect(&world.url))?;
    let lock = client.semaphore("ours/permit", OF)?.taking(1);
    let ours = Side::new("fencelock", move |count| {
        let start = Instant::now();
        runtime.block_on(pairs(lock.clone(), count))?;
        Ok(start.elapsed())
    });
    Ok(beside(ours, Rival::Curator.measured("permits1", &world.connect, "permit")?))
}

fn permits(world: &World) -> Result<Case> {
    let ours = processes(world, Kind::Permits)?;
    Ok(beside(ours, Rival::Curator.crowd("permits4", &world.connect, "permits")?))
}
