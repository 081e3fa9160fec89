//! A lock that passes from one process to another: from the call of release here to the return of
//! acquire there.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use fencelock::{Client, blocking};

use crate::local::Flavor;
use crate::peer::{HERE, Kind, LOCK, Peer, THERE, nanos, tell};
use crate::{Aim, Case, Plan, Result, Side, bare};

/// How long the other process gets to fall asleep in its wait.
const SETTLE: Duration = Duration::from_micros(300);
/// Longer than this, something is broken.
const LIMIT: Duration = Duration::from_secs(30);

/// All cases of this kind; `program` is started as the second process.
pub fn plans(program: &Path, url: &str) -> Vec<Plan> {
    let plan = |name, make: fn(&Path, &str) -> Result<Case>| {
        let (program, url) = (program.to_owned(), url.to_owned());
        Plan::new(name, move || make(&program, &url))
    };
    vec![
        plan("hand-off between processes, blocking", by_thread),
        plan("hand-off between processes, async", by_task),
        plan("two processes taking turns, blocking", turns),
    ]
}

fn by_thread(program: &Path, url: &str) -> Result<Case> {
    let mut wire = bare::client(url)?.get_connection()?;
    let tell = tell(&mut wire, THERE)?;
    let mut bare = Peer::start(program, Kind::BareThread, url)?;
    Ok(Case {
        aim: Aim::Ratio(1.3),
        sides: vec![
            thread_side(program, url)?,
            Side::new("a script publishes, a subscriber reads", move |count| {
                let mut took = 0;
                for _ in 0..count {
                    bare.ask(None)?;
                    bare.answer()?;
                    thread::sleep(SETTLE);
                    let start = nanos();
                    tell.exec(&mut wire)?;
                    took += since(start, bare.answer()?)?;
                }
                Ok(Duration::from_nanos(took))
            }),
        ],
    })
}

fn by_task(program: &Path, url: &str) -> Result<Case> {
    let theirs = Flavor::Current.runtime()?;
    let mut wire = theirs.block_on(bare::multiplexed(url))?;
    let tell = tell(&mut bare::client(url)?.get_connection()?, THERE)?;
    let mut bare = Peer::start(program, Kind::BareTask, url)?;
    Ok(Case {
        aim: Aim::Ratio(1.3),
        sides: vec![
            task_side(program, url)?,
            Side::new("a script publishes, a subscriber reads", move |count| {
                theirs.block_on(async {
                    let mut took = 0;
                    for _ in 0..count {
                        bare.ask(None)?;
                        bare.answer()?;
                        thread::sleep(SETTLE);
                        let start = nanos();
                        tell.exec_async(&mut wire).await?;
                        took += since(start, bare.answer()?)?;
                    }
                    Ok(Duration::from_nanos(took))
                })
            }),
        ],
    })
}

/// Ours, in blocking calls, on any store.
pub(crate) fn thread_side(program: &Path, url: &str) -> Result<Side> {
    let lock = blocking::Client::connect(url)?.lock(LOCK)?;
    let mut peer = Peer::start(program, Kind::Thread, url)?;
    Ok(Side::new("fencelock", move |count| {
        let mut took = 0;
        for _ in 0..count {
            let guard = lock.acquire()?;
            peer.ask(None)?;
            let asked = Instant::now();
            while !guard.is_wanted() {
                if asked.elapsed() > LIMIT {
                    return Err("the second process never asked for the lock".into());
                }
                thread::sleep(SETTLE);
            }
            thread::sleep(SETTLE);
            let start = nanos();
            guard.release()?;
            took += since(start, peer.answer()?)?;
        }
        Ok(Duration::from_nanos(took))
    }))
}

/// Ours, in async calls, on any store.
pub(crate) fn task_side(program: &Path, url: &str) -> Result<Side> {
    let ours = Flavor::Current.runtime()?;
    let lock = ours.block_on(Client::connect(url))?.lock(LOCK)?;
    let mut peer = Peer::start(program, Kind::Task, url)?;
    Ok(Side::new("fencelock", move |count| {
        ours.block_on(async {
            let mut took = 0;
            for _ in 0..count {
                let guard = lock.acquire().await?;
                peer.ask(None)?;
                tokio::time::timeout(LIMIT, guard.wanted()).await?;
                thread::sleep(SETTLE);
                let start = nanos();
                guard.release().await?;
                took += since(start, peer.answer()?)?;
            }
            Ok(Duration::from_nanos(took))
        })
    }))
}

/// Both processes take turns as fast as they can. A turn of ours is a release and an acquire, that
/// of the floor a single script: so the figure is for information.
fn turns(program: &Path, url: &str) -> Result<Case> {
    let lock = blocking::Client::connect(url)?.lock(LOCK)?;
    let mut peer = Peer::start(program, Kind::Thread, url)?;
    let client = bare::client(url)?;
    let mut wire = client.get_connection()?;
    let tell = tell(&mut wire, THERE)?;
    let mut ear = client.get_connection()?;
    let mut bare = Peer::start(program, Kind::BareThread, url)?;
    Ok(Case {
        aim: Aim::None,
        sides: vec![
            Side::new("fencelock", move |count| {
                let each = count.div_ceil(2);
                let start = Instant::now();
                peer.ask(Some(each))?;
                for _ in 0..each {
                    lock.acquire()?.release()?;
                }
                peer.answer()?;
                Ok(start.elapsed())
            }),
            Side::new("scripts publish to each other", move |count| {
                let mut ear = ear.as_pubsub();
                ear.subscribe(HERE)?;
                let each = count.div_ceil(2);
                bare.ask(Some(each))?;
                let start = Instant::now();
                for _ in 0..each {
                    tell.exec(&mut wire)?;
                    ear.get_message()?;
                }
                bare.answer()?;
                Ok(start.elapsed())
            }),
        ],
    })
}

/// What arrived before it was sent was something else.
fn since(start: u64, end: u64) -> Result<u64> {
    end.checked_sub(start).ok_or_else(|| "the second process answered too early".into())
}
