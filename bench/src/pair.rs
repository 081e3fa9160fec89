//! Acquire and release at a Redis server, both replies awaited, nobody else wanting the lock.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fencelock::{Client, blocking};
use fencelock_engine::Name;
use redis::Value;
use redis::aio::MultiplexedConnection;

use crate::bare::{self, Scripts};
use crate::local::Flavor;
use crate::{Aim, Case, Failed, Plan, Result, Side};

/// How many tasks, each with a lock of its own.
pub(crate) const KEYS: u64 = 64;

/// One caller, one lock.
pub fn single(url: &str) -> Vec<Plan> {
    let (thread, task) = (url.to_owned(), url.to_owned());
    vec![
        Plan::new("Redis pair, blocking", move || by_thread(&thread)),
        Plan::new("Redis pair, async", move || by_task(&task)),
    ]
}

/// Many tasks, each with a lock of its own.
pub fn many(url: &str) -> Vec<Plan> {
    let (one, two) = (url.to_owned(), url.to_owned());
    vec![
        Plan::new("64 tasks on 64 keys, one thread", move || keys(&one, Flavor::Current)),
        Plan::new("64 tasks on 64 keys, two workers", move || keys(&two, Flavor::Multi)),
    ]
}

fn by_thread(url: &str) -> Result<Case> {
    let lock = blocking::Client::connect(url)?.lock("ours/pair")?;
    let mut connection = bare::client(url)?.get_connection()?;
    let mut scripts = Scripts::load(&mut connection)?;
    let name = Name::new("bare/pair")?;
    let mut last = 0;
    Ok(Case {
        aim: Aim::Ratio(1.15),
        sides: vec![
            Side::new("fencelock", move |count| {
                let start = Instant::now();
                for _ in 0..count {
                    lock.acquire()?.release()?;
                }
                Ok(start.elapsed())
            }),
            Side::new("redis::Connection", move |count| {
                let start = Instant::now();
                for _ in 0..count {
                    let (acquire, hold) = scripts.acquire(&name, last);
                    last = bare::token(&acquire.query(&mut connection)?)?;
                    scripts.release(&name, hold, last).query::<Value>(&mut connection)?;
                }
                Ok(start.elapsed())
            }),
        ],
    })
}

fn by_task(url: &str) -> Result<Case> {
    let ours = Flavor::Current.runtime()?;
    let lock = ours.block_on(Client::connect(url))?.lock("ours/pair")?;
    let theirs = Flavor::Current.runtime()?;
    let mut connection = theirs.block_on(bare::multiplexed(url))?;
    let mut scripts = Scripts::load(&mut bare::client(url)?.get_connection()?)?;
    let name = Name::new("bare/pair")?;
    let mut last = 0;
    Ok(Case {
        aim: Aim::None,
        sides: vec![
            Side::new("fencelock", move |count| {
                ours.block_on(async {
                    let start = Instant::now();
                    for _ in 0..count {
                        lock.acquire().await?.release().await?;
                    }
                    Ok(start.elapsed())
                })
            }),
            Side::new("redis::aio::MultiplexedConnection", move |count| {
                theirs.block_on(async {
                    let start = Instant::now();
                    for _ in 0..count {
                        let (acquire, hold) = scripts.acquire(&name, last);
                        last = bare::token(&acquire.query_async(&mut connection).await?)?;
                        let release = scripts.release(&name, hold, last);
                        release.query_async::<Value>(&mut connection).await?;
                    }
                    Ok(start.elapsed())
                })
            }),
        ],
    })
}

fn keys(url: &str, flavor: Flavor) -> Result<Case> {
    let ours = flavor.runtime()?;
    let client = ours.block_on(Client::connect(url))?;
    let locks: Vec<_> =
        (0..KEYS).map(|at| client.lock(format!("ours/{at}"))).collect::<Result<_, _>>()?;
    let names: Vec<Name> =
        (0..KEYS).map(|at| Name::new(format!("bare/{at}"))).collect::<Result<_, _>>()?;
    let theirs = flavor.runtime()?;
    let connection = theirs.block_on(bare::multiplexed(url))?;
    let mut wire = bare::client(url)?.get_connection()?;
    let scripts = Arc::new(Mutex::new(Scripts::load(&mut wire)?));
    let mut sole = Scripts::load(&mut wire)?;
    let pipe_names = names.clone();
    Ok(Case {
        aim: Aim::Ratio(1.25),
        sides: vec![
            Side::new("fencelock", move |count| {
                ours.block_on(spread(count, |at, each| {
                    let lock = locks[at].clone();
                    async move {
                        for _ in 0..each {
                            lock.acquire().await?.release().await?;
                        }
                        Ok(())
                    }
                }))
            }),
            Side::new("64 tasks on a MultiplexedConnection", move |count| {
                theirs.block_on(spread(count, |at, each| {
                    pairs(connection.clone(), scripts.clone(), names[at].clone(), each)
                }))
            }),
            Side::new("redis::pipe of 64 on a Connection", move |count| {
                let rounds = count.div_ceil(KEYS);
                let start = Instant::now();
                for _ in 0..rounds {
                    piped(&mut wire, &mut sole, &pipe_names)?;
                }
                Ok(start.elapsed().mul_f64(count as f64 / (rounds * KEYS) as f64))
            }),
        ],
    })
}

async fn pairs(
    mut connection: MultiplexedConnection,
    scripts: Arc<Mutex<Scripts>>,
    name: Name,
    count: u64,
) -> Result<()> {
    let mut last = 0;
    for _ in 0..count {
        let (acquire, hold) = locked(&scripts).acquire(&name, last);
        last = bare::token(&acquire.query_async(&mut connection).await?)?;
        let release = locked(&scripts).release(&name, hold, last);
        release.query_async::<Value>(&mut connection).await?;
    }
    Ok(())
}

fn locked(scripts: &Mutex<Scripts>) -> std::sync::MutexGuard<'_, Scripts> {
    scripts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One pair for each name, all acquires in one write, then all releases.
fn piped(wire: &mut redis::Connection, scripts: &mut Scripts, names: &[Name]) -> Result<()> {
    let (mut acquires, mut holds) = (redis::pipe(), Vec::with_capacity(names.len()));
    for name in names {
        let (acquire, hold) = scripts.acquire(name, 0);
        acquires.add_command(acquire);
        holds.push(hold);
    }
    let replies: Vec<Value> = acquires.query(wire)?;
    let mut releases = redis::pipe();
    for ((name, hold), reply) in names.iter().zip(holds).zip(&replies) {
        releases.add_command(scripts.release(name, hold, bare::token(reply)?));
    }
    releases.query::<Vec<Value>>(wire)?;
    Ok(())
}

/// Spreads `count` pairs over a task for each key.
pub(crate) async fn spread<F>(count: u64, mut task: impl FnMut(usize, u64) -> F) -> Result<Duration>
where
    F: Future<Output = Result<(), Failed>> + Send + 'static,
{
    let each = count.div_ceil(KEYS);
    let start = Instant::now();
    let tasks: Vec<_> = (0..KEYS as usize).map(|at| tokio::spawn(task(at, each))).collect();
    for task in tasks {
        task.await??;
    }
    Ok(start.elapsed().mul_f64(count as f64 / (each * KEYS) as f64))
}
