//! Pairs and hand-offs on ZooKeeper: ours, beside the bare client, Curator and kazoo.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fencelock::{Client, Lock, blocking};
use fencelock_testkit::ZooKeeper;
use zookeeper_client as zk;

use crate::local::Flavor;
use crate::peer::{Kind, Peer};
use crate::rivals::Rival;
use crate::{Aim, Case, Failed, Plan, Result, Side, handoff};

pub mod shared;

/// How many tasks, each with a lock of its own.
const PATHS: u64 = 64;
/// How many tasks want one lock.
const CROWD: u64 = 16;
/// How many processes want one lock.
const PROCESSES: u64 = 4;

/// Where the servers are, and what to start as other processes.
#[derive(Clone)]
struct World {
    url: String,
    connect: String,
    program: PathBuf,
}

impl World {
    fn new(program: &Path, servers: &ZooKeeper) -> World {
        World { url: servers.url(), connect: servers.connect_string(), program: program.to_owned() }
    }
}

/// All cases of this kind; `program` is started as other processes.
pub fn plans(program: &Path, servers: &ZooKeeper) -> Vec<Plan> {
    let world = World::new(program, servers);
    let plan = |name, make: fn(&World) -> Result<Case>| {
        let world = world.clone();
        Plan::new(name, move || make(&world))
    };
    vec![
        plan("pair, async", pair_async),
        plan("pair, blocking", pair_blocking),
        plan("64 tasks on 64 paths", paths),
        plan("16 tasks of one process on one path", hot),
        plan("4 processes with 4 tasks each on one path", crowd),
        plan("hand-off between processes, async", handoff_async),
        plan("hand-off between processes, blocking", handoff_blocking),
    ]
}

/// The bare client: one node made and deleted, which is the least that a lock can do.
struct Floor {
    client: zk::Client,
    path: String,
}

impl Floor {
    async fn connect(world: &World, path: &str) -> Result<Floor> {
        let connector = zk::Client::connector().with_session_timeout(Duration::from_secs(30));
        let client = connector.connect(&world.connect).await?;
        Floor::under(&client, path).await
    }

    async fn under(client: &zk::Client, path: &str) -> Result<Floor> {
        // Not a container, which the server would take away between two rounds.
        let parent = zk::CreateMode::Persistent.with_acls(zk::Acls::anyone_all());
        client.mkdir(path, &parent).await?;
        Ok(Floor { client: client.clone(), path: format!("{path}/n-") })
    }

    /// `noted`: the node goes together with a note for whoever comes next, which is what ours asks for.
    async fn pairs(&self, count: u64, noted: bool) -> Result<()> {
        let options = zk::CreateMode::EphemeralSequential.with_acls(zk::Acls::anyone_all());
        let parent = self.path.trim_end_matches("/n-");
        let data: &[u8] = if noted { &[b'b'; 40] } else { b"" };
        for _ in 0..count {
            let (_, sequence) = self.client.create(&self.path, data, &options).await?;
            let node = format!("{}{sequence}", self.path);
            if !noted {
                self.client.delete(&node, None).await?;
                continue;
            }
            let mut writer = self.client.new_multi_writer();
            let note = format!("fencelock 1 released {sequence} 0");
            writer.add_set_data(parent, note.as_bytes(), None)?;
            writer.add_delete(&node, None)?;
            writer.commit().await?;
        }
        Ok(())
    }

    fn side(world: &World, name: &'static str, path: &str, noted: bool) -> Result<Side> {
        let runtime = Flavor::Current.runtime()?;
        let floor = runtime.block_on(Floor::connect(world, path))?;
        Ok(Side::new(name, move |count| {
            let start = Instant::now();
            runtime.block_on(floor.pairs(count, noted))?;
            Ok(start.elapsed())
        }))
    }

    /// Both floors of a pair.
    fn sides(world: &World) -> Result<[Side; 2]> {
        let noted = "the same, with the note that ours leaves";
        Ok([
            Floor::side(world, "one create and one delete", "/floor/pair", false)?,
            Floor::side(world, noted, "/floor/noted", true)?,
        ])
    }
}

/// The case's own sides, and those of the others.
fn beside(aim: Aim, mut sides: Vec<Side>, rival: impl Fn(Rival) -> Result<Side>) -> Result<Case> {
    for other in Rival::ALL {
        sides.push(rival(other)?);
    }
    Ok(Case { aim, sides })
}

async fn pairs(lock: Lock, count: u64) -> Result<(), Failed> {
    for _ in 0..count {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

fn pair_async(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(&world.url))?.lock("ours/pair")?;
    let ours = Side::new("fencelock", move |count| {
        let start = Instant::now();
        runtime.block_on(pairs(lock.clone(), count))?;
        Ok(start.elapsed())
    });
    let [bare, noted] = Floor::sides(world)?;
    let rival = |it: Rival| it.measured("pairs", &world.connect, "pair");
    beside(Aim::Ratio(1.3), vec![ours, bare, noted], rival)
}

fn pair_blocking(world: &World) -> Result<Case> {
    let lock = blocking::Client::connect(&world.url)?.lock("ours/pair")?;
    let ours = Side::new("fencelock", move |count| {
        let start = Instant::now();
        for _ in 0..count {
            lock.acquire()?.release()?;
        }
        Ok(start.elapsed())
    });
    let [bare, noted] = Floor::sides(world)?;
    let rival = |it: Rival| it.measured("pairs", &world.connect, "pair");
    beside(Aim::Ratio(1.3), vec![ours, bare, noted], rival)
}

fn paths(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let client = runtime.block_on(Client::connect(&world.url))?;
    let locks: Vec<Lock> =
        (0..PATHS).map(|at| client.lock(format!("ours/paths/{at}"))).collect::<Result<_, _>>()?;
    let ours = Side::new("fencelock", move |count| {
        runtime.block_on(spread(count, PATHS, |at, each| pairs(locks[at].clone(), each)))
    });
    let runtime = Flavor::Current.runtime()?;
    let floors = runtime.block_on(async {
        let first = Floor::connect(world, "/floor/paths").await?;
        let mut floors = Vec::new();
        for at in 0..PATHS {
            let floor = Floor::under(&first.client, &format!("/floor/paths/{at}")).await?;
            floors.push(std::sync::Arc::new(floor));
        }
        Ok::<_, Failed>(floors)
    })?;
    let floor = Side::new("one create and one delete", move |count| {
        runtime.block_on(spread(count, PATHS, |at, each| {
            let floor = floors[at].clone();
            async move { floor.pairs(each, false).await }
        }))
    });
    let rival = |it: Rival| it.measured("paths64", &world.connect, "paths");
    beside(Aim::None, vec![ours, floor], rival)
}

fn hot(world: &World) -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(&world.url))?.lock("ours/hot")?;
    let ours = Side::new("fencelock", move |count| {
        runtime.block_on(spread(count, CROWD, |_, each| pairs(lock.clone(), each)))
    });
    let rival = |it: Rival| it.measured("hot16", &world.connect, "hot");
    beside(Aim::None, vec![ours], rival)
}

/// Local hand-off counts here: a process keeps the lock for a bounded run among its own.
fn crowd(world: &World) -> Result<Case> {
    let ours = processes(world, Kind::Crowd)?;
    // Five times the rate.
    beside(Aim::Ratio(0.2), vec![ours], |it| it.crowd("hot4", &world.connect, "crowd"))
}

/// Processes of ours that work at once.
fn processes(world: &World, kind: Kind) -> Result<Side> {
    let mut peers: Vec<Peer> = (0..PROCESSES)
        .map(|_| Peer::start(&world.program, kind, &world.url))
        .collect::<Result<_>>()?;
    Ok(Side::new("fencelock", move |count| {
        let start = Instant::now();
        for (at, peer) in peers.iter_mut().enumerate() {
            peer.ask(Some((count + at as u64) / PROCESSES))?;
        }
        for peer in &mut peers {
            peer.answer()?;
        }
        Ok(start.elapsed())
    }))
}

fn handoff_async(world: &World) -> Result<Case> {
    let ours = handoff::task_side(&world.program, &world.url)?;
    beside(Aim::Ratio(1.0), vec![ours], |it| it.handoff(&world.connect, "handoff"))
}

fn handoff_blocking(world: &World) -> Result<Case> {
    let ours = handoff::thread_side(&world.program, &world.url)?;
    beside(Aim::Ratio(1.0), vec![ours], |it| it.handoff(&world.connect, "handoff"))
}

/// Spreads `count` pairs over so many tasks.
async fn spread<F>(
    count: u64,
    tasks: u64,
    mut task: impl FnMut(usize, u64) -> F,
) -> Result<Duration>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let start = Instant::now();
    let tasks: Vec<_> =
        (0..tasks).map(|at| tokio::spawn(task(at as usize, (count + at) / tasks))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(start.elapsed())
}
