//! What it costs that a replica confirms each grant, beside the same server without that.

use std::cell::OnceCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use fencelock::{Client, Lock, blocking};
use fencelock_testkit::{RedisServer, eventually};
use tokio::runtime::Runtime;

use crate::local::Flavor;
use crate::{Aim, Case, Plan, Result, Side};

/// How many tasks, each with a lock of its own.
const KEYS: u64 = 64;

/// A master and its replica, which are started when the first case needs them.
#[derive(Clone, Default)]
struct Servers(Rc<OnceCell<[RedisServer; 2]>>);

impl Servers {
    fn url(&self) -> Result<String> {
        if self.0.get().is_none() {
            let master = RedisServer::start()?;
            let primary = format!("replicaof 127.0.0.1 {}", master.port());
            let replica = RedisServer::builder().config(&primary).start()?;
            eventually("the replica follows", || {
                let confirmed = master.cli(&["WAIT", "1", "100"]).ok()?;
                (confirmed == redis::Value::Int(1)).then_some(())
            });
            // Nobody else fills it.
            let _ = self.0.set([master, replica]);
        }
        Ok(self.0.get().map_or_else(String::new, |servers| servers[0].url()))
    }
}

/// One caller, and many.
pub fn plans() -> Vec<Plan> {
    let one = Servers::default();
    let many = one.clone();
    vec![
        Plan::new("a replica confirms, blocking pair", move || by_thread(&one.url()?)),
        Plan::new("a replica confirms, 64 tasks on 64 keys", move || by_tasks(&many.url()?)),
    ]
}

fn by_thread(url: &str) -> Result<Case> {
    let lock = |options: &str| blocking::Client::connect(format!("{url}{options}"))?.lock("pair");
    let side = |name, lock: blocking::Lock| {
        Side::new(name, move |count| {
            let start = Instant::now();
            for _ in 0..count {
                lock.acquire()?.release()?;
            }
            Ok(start.elapsed())
        })
    };
    let sides = vec![side("sync_replicas=1", lock("?sync_replicas=1")?), side("plain", lock("")?)];
    Ok(Case { aim: Aim::None, sides })
}

fn by_tasks(url: &str) -> Result<Case> {
    let side = |name, options: &str| -> Result<Side> {
        let runtime = Flavor::Current.runtime()?;
        let client = runtime.block_on(Client::connect(format!("{url}{options}")))?;
        let locks = (0..KEYS).map(|at| client.lock(format!("{name}/{at}")));
        let locks: Vec<Lock> = locks.collect::<Result<_, _>>()?;
        Ok(Side::new(name, move |count| spread(&runtime, &locks, count)))
    };
    let sides = vec![side("sync_replicas=1", "?sync_replicas=1")?, side("plain", "")?];
    Ok(Case { aim: Aim::None, sides })
}

/// Spreads `count` pairs over a task for each lock.
fn spread(runtime: &Runtime, locks: &[Lock], count: u64) -> Result<Duration> {
    let each = count.div_ceil(KEYS);
    runtime.block_on(async {
        let start = Instant::now();
        let tasks = locks.iter().cloned().map(|lock| {
            tokio::spawn(async move {
                for _ in 0..each {
                    lock.acquire().await?.release().await?;
                }
                Ok::<_, fencelock::Error>(())
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await??;
        }
        Ok(start.elapsed().mul_f64(count as f64 / (each * KEYS) as f64))
    })
}
