//! What a holder and a waiter see of a failover, with the times of a real run.

mod figure;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use fencelock::Error;
use fencelock::blocking::{Client, Guard};
use fencelock_testkit::eventually;

use crate::run::Several;

pub use figure::{draw, table};

/// Where the table begins on a page, and where it ends.
pub const MARKS: [&str; 2] = ["<!-- failovers: begin -->", "<!-- failovers: end -->"];

const LOCK: &str = "stock";
/// How long the holder's lease is; it is renewed at a third of it.
pub const LEASE: Duration = Duration::from_secs(9);
/// How long it holds on after the failover, before it releases.
const AFTER: Duration = Duration::from_millis(700);
/// How often one looks.
const LOOK: Duration = Duration::from_millis(2);

/// What happens to which servers.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As people write it.
    pub title: &'static str,
    /// Behind Sentinels, or in a cluster.
    pub sentinels: bool,
    /// An operator has another take over, or the master is killed.
    pub planned: bool,
}

/// All of them.
pub const CASES: [Case; 4] = [
    Case { title: "Sentinel, the master dies", sentinels: true, planned: false },
    Case { title: "Sentinel, planned", sentinels: true, planned: true },
    Case { title: "Cluster, the master dies", sentinels: false, planned: false },
    Case { title: "Cluster, planned", sentinels: false, planned: true },
];

/// What was seen, each time counted from the fault.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Of what.
    pub case: Case,
    /// Another server says that it is a master.
    pub promoted: Duration,
    /// Who is asked (a Sentinel; most servers of the cluster) names it.
    pub told: Duration,
    /// The hold was renewed there: how far it is trusted jumps.
    pub renewed: Duration,
    /// The least that was left of its validity until then.
    pub least: Duration,
    /// The holder releases.
    pub released: Duration,
    /// The waiter has the lock.
    pub granted: Duration,
    /// Tokens rose.
    pub rose: bool,
}

impl Case {
    /// Plays it on servers of its own.
    ///
    /// # Errors
    /// When they cannot be started, or a client fails.
    pub fn play(self) -> io::Result<Seen> {
        let several =
            if self.sentinels { Several::behind_sentinels() } else { Several::in_a_cluster() };
        let mut several = several?;
        let url = format!("{}?lease={}ms&connect_timeout=30s", several.url(), LEASE.as_millis());
        let (holder, waiter) = (connect(&url)?, connect(&url)?);
        let guard = taken(holder.lock(LOCK).and_then(|it| it.acquire()))?;
        let lock = waiter.lock(LOCK).map_err(io::Error::other)?;
        let waits = thread::spawn(move || {
            let guard = lock.acquire()?;
            let at = Instant::now();
            let token = guard.token();
            guard.release()?;
            Ok::<_, Error>((at, token))
        });
        eventually("the waiter waits", || {
            let info = holder.inspect(LOCK).ok()??;
            (!info.waiters.is_empty()).then_some(())
        });
        let old = eventually("somebody has the lock", || several.master_of(LOCK));
        let replicas = several.replicas_of(old);
        // Just renewed, so that all cases have the same left.
        renewal(&guard);
        let begun = Instant::now();
        match self.planned {
            true => eventually("the failover begins", || several.fail_over(old).then_some(())),
            false => several.server(old).kill()?,
        }
        let over = Arc::new(AtomicBool::new(false));
        let watched = thread::scope(|scope| {
            let servers = scope.spawn(|| {
                let promoted = eventually("another is promoted", || {
                    let master = |it: &&usize| several.is_master(**it);
                    replicas.iter().find(master).map(|_| begun.elapsed())
                });
                let told = eventually("another is named", || {
                    several.master_of(LOCK).filter(|it| *it != old).map(|_| begun.elapsed())
                });
                over.store(true, Ordering::SeqCst);
                (promoted, told)
            });
            // A planned failover's old master may renew it until the client leaves.
            let (mut least, mut last) = (guard.remaining(), guard.remaining());
            let renewed = loop {
                thread::sleep(LOOK);
                let now = guard.remaining();
                least = least.min(now);
                if now > last + LEASE / 10 && over.load(Ordering::SeqCst) {
                    break begun.elapsed();
                }
                last = now;
                if begun.elapsed() > Duration::from_secs(60) {
                    return Err(io::Error::other("the hold was not renewed"));
                }
            };
            let servers =
                servers.join().map_err(|_| io::Error::other("the servers were not seen"))?;
            Ok((servers, renewed, least))
        });
        let ((promoted, told), renewed, least) = watched?;
        thread::sleep(AFTER);
        let (released, token) = (begun.elapsed(), guard.token());
        guard.release().map_err(io::Error::other)?;
        let waited = waits.join().map_err(|_| io::Error::other("the waiter panicked"))?;
        let (at, next) = waited.map_err(io::Error::other)?;
        let granted = at.saturating_duration_since(begun);
        Ok(Seen {
            case: self,
            promoted,
            told,
            renewed,
            least,
            released,
            granted,
            rose: next > token,
        })
    }
}

fn connect(url: &str) -> io::Result<Client> {
    Client::connect(url).map_err(io::Error::other)
}

fn taken(guard: Result<Guard, Error>) -> io::Result<Guard> {
    guard.map_err(io::Error::other)
}

/// Waits until the hold has been renewed.
fn renewal(guard: &Guard) {
    let mut last = guard.remaining();
    eventually("a renewal", || {
        let now = guard.remaining();
        let jumped = now > last + LEASE / 10;
        last = now;
        jumped.then_some(())
    });
}
