//! What needs no store: re-entry, and hand-off among the threads or tasks of one client.

use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use fencelock::{Client, blocking};
use parking_lot::{Mutex, MutexGuard, ReentrantMutex};
use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::Runtime;

use crate::{Aim, Case, Plan, Result, Side};

/// How many contend.
const CROWD: u64 = 16;
/// How many guards are held at once when only the acquire is timed.
const STACK: usize = 256;
/// How long a crowd of threads gets to come to wait.
const QUEUE: Duration = Duration::from_millis(20);

/// Which runtime tasks run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavor {
    /// One thread, the caller's.
    Current,
    /// Two worker threads.
    Multi,
}

impl Flavor {
    /// Makes one.
    ///
    /// # Errors
    /// When the system gives no thread or poller.
    pub fn runtime(self) -> Result<Runtime> {
        Ok(match self {
            Flavor::Current => {
                tokio::runtime::Builder::new_current_thread().enable_all().build()?
            }
            Flavor::Multi => tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?,
        })
    }
}

/// All cases of this kind.
pub fn plans() -> Vec<Plan> {
    vec![
        Plan::new("re-entry, the acquire", reentry),
        Plan::new("re-entry, acquire and release", reentry_pair),
        Plan::new("re-entry, acquire and release, async", reentry_async),
        Plan::new("local hand-off, 16 threads", threads),
        Plan::new("local hand-off, 16 tasks, one thread", || tasks(Flavor::Current)),
        Plan::new("local hand-off, 16 tasks, two workers", || tasks(Flavor::Multi)),
    ]
}

/// The acquire alone; the release is not timed.
fn reentry() -> Result<Case> {
    let client = blocking::Client::connect("memory:")?;
    let lock = client.lock("reentry")?;
    let floor: &'static ReentrantMutex<()> = Box::leak(Box::default());
    Ok(Case {
        aim: Aim::Nanos(20.0),
        sides: vec![
            Side::new("fencelock", move |count| {
                let held = lock.acquire()?;
                let took = stacked(count, || Ok(lock.try_acquire()?))?;
                held.release()?;
                Ok(took)
            }),
            Side::new("parking_lot::ReentrantMutex", move |count| {
                let _held = floor.lock();
                stacked(count, || Ok(floor.lock()))
            }),
            Side::new("its parts: a mutex, the clock, an allocation", parts),
        ],
    })
}

/// What no re-entry into a lock with a lease can do without.
fn parts(count: u64) -> Result<Duration> {
    let mutex = Mutex::new(0u64);
    stacked(count, || {
        let cell = Arc::new([0u64; 8]);
        let mut inside = mutex.lock();
        *inside += clock_gettime(ClockId::Boottime).tv_nsec as u64;
        Ok(cell)
    })
}

fn stacked<T>(count: u64, mut take: impl FnMut() -> Result<T>) -> Result<Duration> {
    let mut stack = Vec::with_capacity(STACK);
    let mut took = Duration::ZERO;
    let mut left = count;
    while left > 0 {
        let batch = left.min(STACK as u64);
        let start = Instant::now();
        for _ in 0..batch {
            stack.push(take()?);
        }
        took += start.elapsed();
        black_box(&stack);
        stack.clear();
        left -= batch;
    }
    Ok(took)
}

fn reentry_pair() -> Result<Case> {
    let client = blocking::Client::connect("memory:")?;
    let lock = client.lock("reentry")?;
    let floor = ReentrantMutex::new(());
    Ok(Case {
        aim: Aim::None,
        sides: vec![
            Side::new("fencelock", move |count| {
                let held = lock.acquire()?;
                let start = Instant::now();
                for _ in 0..count {
                    drop(black_box(lock.try_acquire()?));
                }
                let took = start.elapsed();
                held.release()?;
                Ok(took)
            }),
            Side::new("parking_lot::ReentrantMutex", move |count| {
                let _held = floor.lock();
                let start = Instant::now();
                for _ in 0..count {
                    drop(black_box(floor.lock()));
                }
                Ok(start.elapsed())
            }),
        ],
    })
}

fn reentry_async() -> Result<Case> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect("memory:"))?.lock("reentry")?;
    let floor = ReentrantMutex::new(());
    Ok(Case {
        aim: Aim::None,
        sides: vec![
            Side::new("fencelock", move |count| {
                runtime.block_on(async {
                    let held = lock.acquire().await?;
                    let start = Instant::now();
                    for _ in 0..count {
                        black_box(lock.acquire().await?).release().await?;
                    }
                    let took = start.elapsed();
                    held.release().await?;
                    Ok(took)
                })
            }),
            Side::new("parking_lot::ReentrantMutex", move |count| {
                let _held = floor.lock();
                let start = Instant::now();
                for _ in 0..count {
                    drop(black_box(floor.lock()));
                }
                Ok(start.elapsed())
            }),
        ],
    })
}

fn threads() -> Result<Case> {
    let client = blocking::Client::connect("memory:")?;
    let lock = client.lock("crowd")?;
    let floor = Mutex::new(());
    Ok(Case {
        aim: Aim::Ratio(1.5),
        sides: vec![
            Side::new("fencelock", move |count| {
                let first = lock.acquire()?;
                crowd(count, || Ok(first.release()?), || Ok(lock.acquire()?.release()?))
            }),
            Side::new("parking_lot, fair unlock", move |count| {
                let pass = |guard| {
                    MutexGuard::unlock_fair(guard);
                    Ok(())
                };
                let first = floor.lock();
                crowd(count, || pass(first), || pass(floor.lock()))
            }),
        ],
    })
}

/// Lets the crowd take turns, `count` in all. They all wait before `begin` is called, so that every
/// turn is a hand-off: a thread that is not waited for takes the same lock again and again.
fn crowd(
    count: u64,
    begin: impl FnOnce() -> Result<()>,
    turn: impl Fn() -> Result<()> + Sync,
) -> Result<Duration> {
    let gate = Barrier::new(CROWD as usize + 1);
    let each = count.div_ceil(CROWD);
    let took = thread::scope(|scope| {
        let workers: Vec<_> = (0..CROWD)
            .map(|_| {
                scope.spawn(|| {
                    gate.wait();
                    (0..each).try_for_each(|_| turn())
                })
            })
            .collect();
        gate.wait();
        thread::sleep(QUEUE);
        let start = Instant::now();
        begin()?;
        for worker in workers {
            worker.join().map_err(|_| "a worker panicked")??;
        }
        Ok::<_, crate::Failed>(start.elapsed())
    })?;
    Ok(took.mul_f64(count as f64 / (each * CROWD) as f64))
}

fn tasks(flavor: Flavor) -> Result<Case> {
    let ours = flavor.runtime()?;
    let lock = ours.block_on(Client::connect("memory:"))?.lock("crowd")?;
    let theirs = flavor.runtime()?;
    let floor = Arc::new(tokio::sync::Mutex::new(()));
    Ok(Case {
        aim: Aim::PerSecond(1e6),
        sides: vec![
            Side::new("fencelock", move |count| {
                ours.block_on(async {
                    let first = lock.acquire().await?;
                    let each = count.div_ceil(CROWD);
                    let crowd = (0..CROWD).map(|_| {
                        let lock = lock.clone();
                        tokio::spawn(async move {
                            for _ in 0..each {
                                lock.acquire().await?.release().await?;
                            }
                            Ok(())
                        })
                    });
                    let crowd = queued(crowd.collect()).await;
                    let start = Instant::now();
                    first.release().await?;
                    joined(crowd, start, count).await
                })
            }),
            Side::new("tokio::sync::Mutex", move |count| {
                theirs.block_on(async {
                    let first = floor.lock().await;
                    let each = count.div_ceil(CROWD);
                    let crowd = (0..CROWD).map(|_| {
                        let floor = floor.clone();
                        tokio::spawn(async move {
                            for _ in 0..each {
                                drop(floor.lock().await);
                            }
                            Ok(())
                        })
                    });
                    let crowd = queued(crowd.collect()).await;
                    let start = Instant::now();
                    drop(first);
                    joined(crowd, start, count).await
                })
            }),
        ],
    })
}

type Crowd = Vec<tokio::task::JoinHandle<Result<()>>>;

/// Lets the crowd come to wait, so that every later grant is a hand-off.
async fn queued(crowd: Crowd) -> Crowd {
    for _ in 0..CROWD * 2 {
        tokio::task::yield_now().await;
    }
    crowd
}

async fn joined(crowd: Crowd, start: Instant, count: u64) -> Result<Duration> {
    for task in crowd {
        task.await??;
    }
    let done = count.div_ceil(CROWD) * CROWD;
    Ok(start.elapsed().mul_f64(count as f64 / done as f64))
}
