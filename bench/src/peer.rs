//! The second process of a hand-off: this program again, told on its standard input when to wait.

use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use fencelock::{Client, Lock, blocking};
use futures_util::StreamExt;
use rustix::time::{ClockId, clock_gettime};

use crate::local::Flavor;
use crate::weight::weight;
use crate::{Result, bare};

/// The channel of the process that began.
pub const HERE: &str = "bare/here";
/// The channel of its peer.
pub const THERE: &str = "bare/there";
/// The lock that changes hands.
pub const LOCK: &str = "ours/handoff";

/// The read-write lock of a crowd.
const MOSTLY_READ: &str = "ours/mostly-read";
/// The semaphore of a crowd.
const PERMITS: &str = "ours/permits";
/// How many permits there are.
pub const OF: u32 = 4;

/// How many tasks wait at once.
pub const WAITERS: u64 = 10_000;

/// How long they get to queue, and to come to rest.
const REST: Duration = Duration::from_secs(3);

/// A script that tells a subscriber, and nothing else.
const TELL: &str = "redis.call('PUBLISH', KEYS[1], ARGV[1]) return 1";
/// As long as the message of a grant.
const WORDS: &str = "1 granted 0123456789abcdef0123456789abcdef 1767225600000000 1767225600001023 0 \
                     0 bare/handoff";

/// How the peer waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In a blocking acquire.
    Thread,
    /// In an async acquire.
    Task,
    /// With four tasks that want the lock at once, again and again.
    Crowd,
    /// With four tasks that want the lock at once, mostly to read.
    Readers,
    /// With four tasks that want a permit at once.
    Permits,
    /// With ten thousand tasks that wait at once, and its weight before and then.
    Waiters,
    /// As a subscriber that reads its own socket.
    BareThread,
    /// As an async subscriber.
    BareTask,
}

impl Kind {
    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Thread => "thread",
            Kind::Task => "task",
            Kind::Crowd => "crowd",
            Kind::Readers => "readers",
            Kind::Permits => "permits",
            Kind::Waiters => "waiters",
            Kind::BareThread => "bare-thread",
            Kind::BareTask => "bare-task",
        }
    }

    /// Reads the name.
    pub fn parse(word: &str) -> Option<Kind> {
        use Kind::{BareTask, BareThread, Crowd, Permits, Readers, Task, Thread, Waiters};
        [Thread, Task, Crowd, Readers, Permits, Waiters, BareThread, BareTask]
            .into_iter()
            .find(|kind| kind.word() == word)
    }
}

/// Nanoseconds on a clock that all processes of the machine share.
pub fn nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The script that tells a subscriber.
///
/// # Errors
/// When the server refuses it.
pub fn tell(connection: &mut redis::Connection, channel: &str) -> Result<redis::Cmd> {
    let sha: String = redis::cmd("SCRIPT").arg("LOAD").arg(TELL).query(connection)?;
    let mut command = redis::cmd("EVALSHA");
    command.arg(sha).arg(1).arg(channel).arg(WORDS);
    Ok(command)
}

/// The peer, as the process that began sees it. It ends when its standard input does.
pub struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `program` as a peer and waits until it is connected.
    ///
    /// # Errors
    /// When it does not come up.
    pub fn start(program: &Path, kind: Kind, url: &str) -> Result<Peer> {
        let mut child = Command::new(program)
            .args(["peer", kind.word(), url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("the peer has no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("the peer has no output")?);
        let mut peer = Peer { child, input, output };
        peer.answer()?;
        Ok(peer)
    }

    /// Asks for one wait, or for `count` turns.
    ///
    /// # Errors
    /// When it has gone.
    pub fn ask(&mut self, turns: Option<u64>) -> Result<()> {
        writeln!(self.input, "{}", turns.unwrap_or(0))?;
        Ok(self.input.flush()?)
    }

    /// Its next word: a number.
    ///
    /// # Errors
    /// When it has gone.
    pub fn answer(&mut self) -> Result<u64> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err("the second process has ended".into());
        }
        Ok(line.trim().parse()?)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Whatever fails here: it ends by itself with its input.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Is a peer, until the input ends.
///
/// # Errors
/// When the server or the other process does not answer.
pub fn serve(kind: Kind, url: &str) -> Result<()> {
    let asks = listen();
    match kind {
        Kind::Thread => by_thread(url, &asks),
        Kind::Task => by_task(url, &asks),
        Kind::Crowd => crowd(url, asks, |client| Ok(vec![client.lock(LOCK)?])),
        Kind::Readers => crowd(url, asks, |client| {
            let both = client.rw_lock(MOSTLY_READ)?;
            // One in ten writes.
            Ok([vec![both.writer()], vec![both.reader(); 9]].concat())
        }),
        Kind::Permits => {
            crowd(url, asks, |client| Ok(vec![client.semaphore(PERMITS, OF)?.taking(1)]))
        }
        Kind::Waiters => waiters(url, &asks),
        Kind::BareThread => bare_thread(url, &asks),
        Kind::BareTask => bare_task(url, &asks),
    }
}

/// On a thread of its own, so that the process ends with its input even while it waits for a lock.
fn listen() -> Receiver<u64> {
    let (sender, asks) = channel();
    std::thread::spawn(move || {
        for line in stdin().lines() {
            match line.ok().and_then(|line| line.parse().ok()) {
                Some(turns) if sender.send(turns).is_ok() => {}
                _ => break,
            }
        }
        std::process::exit(0);
    });
    asks
}

fn answer(number: u64) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{number}")?;
    Ok(out.flush()?)
}

fn by_thread(url: &str, asks: &Receiver<u64>) -> Result<()> {
    let lock = blocking::Client::connect(url)?.lock(LOCK)?;
    answer(0)?;
    for turns in asks {
        let mut at = 0;
        for _ in 0..turns.max(1) {
            let guard = lock.acquire()?;
            at = nanos();
            guard.release()?;
        }
        answer(at)?;
    }
    Ok(())
}

fn by_task(url: &str, asks: &Receiver<u64>) -> Result<()> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(url))?.lock(LOCK)?;
    answer(0)?;
    for turns in asks {
        let at = runtime.block_on(async {
            let mut at = 0;
            for _ in 0..turns.max(1) {
                let guard = lock.acquire().await?;
                at = nanos();
                guard.release().await?;
            }
            Ok::<_, fencelock::Error>(at)
        })?;
        answer(at)?;
    }
    Ok(())
}

/// How many tasks of a crowd want the lock at once.
const CROWD: u64 = 4;

/// `locks`: what each task takes, one after the other, not all beginning at the same.
fn crowd(
    url: &str,
    asks: Receiver<u64>,
    locks: fn(&Client) -> Result<Vec<Lock>, fencelock::Error>,
) -> Result<()> {
    let runtime = Flavor::Current.runtime()?;
    let locks = locks(&runtime.block_on(Client::connect(url))?)?;
    answer(0)?;
    // Waited for within the runtime: what the client has to do after the last turn, such as to give up a
    // place in a queue, must not wait for the next round.
    let (sender, mut turns) = tokio::sync::mpsc::unbounded_channel();
    std::thread::scope(|scope| {
        scope.spawn(move || asks.iter().all(|turns| sender.send(turns).is_ok()));
        runtime.block_on(async {
            while let Some(turns) = turns.recv().await {
                let tasks: Vec<_> = (0..CROWD)
                    .map(|task| {
                        let (locks, turns) = (locks.clone(), (turns + task) / CROWD);
                        tokio::spawn(async move {
                            let from = 3 * task as usize;
                            for lock in locks.iter().cycle().skip(from).take(turns as usize) {
                                lock.acquire().await?.release().await?;
                            }
                            Ok::<_, fencelock::Error>(())
                        })
                    })
                    .collect();
                for task in tasks {
                    task.await??;
                }
                answer(nanos())?;
            }
            Ok(())
        })
    })
}

fn waiters(url: &str, asks: &Receiver<u64>) -> Result<()> {
    let runtime = Flavor::Current.runtime()?;
    let lock = runtime.block_on(Client::connect(url))?.lock(LOCK)?;
    answer(0)?;
    for _ in asks {
        runtime.block_on(async {
            let say = || {
                let (bytes, threads) = weight(std::process::id())?;
                answer(bytes)?;
                answer(threads)
            };
            say()?;
            let tasks: Vec<_> = (0..WAITERS)
                .map(|_| {
                    let lock = lock.clone();
                    tokio::spawn(async move { lock.acquire().await?.release().await })
                })
                .collect();
            tokio::time::sleep(REST).await;
            say()?;
            let mut granted = 0;
            for task in tasks {
                task.await??;
                granted += 1;
            }
            answer(granted)
        })?;
    }
    Ok(())
}

fn bare_thread(url: &str, asks: &Receiver<u64>) -> Result<()> {
    let client = bare::client(url)?;
    let mut wire = client.get_connection()?;
    let back = tell(&mut wire, HERE)?;
    let mut ear = client.get_connection()?;
    let mut ear = ear.as_pubsub();
    ear.subscribe(THERE)?;
    answer(0)?;
    for turns in asks {
        let mut at = 0;
        if turns == 0 {
            answer(0)?;
            ear.get_message()?;
            at = nanos();
        }
        for _ in 0..turns {
            ear.get_message()?;
            back.exec(&mut wire)?;
        }
        answer(at)?;
    }
    Ok(())
}

fn bare_task(url: &str, asks: &Receiver<u64>) -> Result<()> {
    let runtime = Flavor::Current.runtime()?;
    let mut ear = runtime.block_on(async {
        let mut ear = bare::client(url)?.get_async_pubsub().await?;
        ear.subscribe(THERE).await?;
        Ok::<_, crate::Failed>(ear.into_on_message())
    })?;
    answer(0)?;
    for _ in asks {
        answer(0)?;
        let heard = runtime.block_on(ear.next());
        let at = nanos();
        heard.ok_or("the subscription has ended")?;
        answer(at)?;
    }
    Ok(())
}
