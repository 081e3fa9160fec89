//! A fleet of clients on one lock, at a server that stands still or is slow for a while.
//!
//! `FENCELOCK_FLEET` is how many clients there are, 200 by default. Each needs a descriptor here and
//! one at the server: `ulimit -n` must allow for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fencelock::Client;
use fencelock_testkit::{RedisServer, eventually, skip_servers};

/// Shorter than the server's pauses.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(250);

fn size() -> usize {
    std::env::var("FENCELOCK_FLEET").map_or(200, |text| text.parse().expect("a number"))
}

/// What one client has done.
#[derive(Default)]
struct Member {
    turns: AtomicU64,
    reconnects: AtomicU64,
}

/// Clients, each with a connection of its own, that take turns on one lock.
struct Fleet {
    members: Arc<Vec<Member>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Fleet {
    fn start(server: &RedisServer) -> Fleet {
        let members: Arc<Vec<Member>> = Arc::new((0..size()).map(|_| Member::default()).collect());
        let over = Arc::new(AtomicBool::new(false));
        // Two threads carry them all, each with a runtime of its own.
        let threads = (0..2).map(|part| {
            let (url, members, over) = (server.url(), members.clone(), over.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let tasks = tokio::task::LocalSet::new();
                for member in (part..members.len()).step_by(2) {
                    tasks.spawn_local(take_turns(
                        url.clone(),
                        members.clone(),
                        member,
                        over.clone(),
                    ));
                }
                runtime.unwrap().block_on(tasks);
            })
        });
        let threads = threads.collect();
        let fleet = Fleet { members, over, threads };
        fleet.all_take_another_turn("first");
        fleet
    }

    fn turns(&self) -> u64 {
        self.members.iter().map(|member| member.turns.load(Ordering::Relaxed)).sum()
    }

    /// Waits until each client has had the lock once more.
    fn all_take_another_turn(&self, which: &str) {
        let (start, before) = (Instant::now(), self.turns());
        let seen: Vec<u64> =
            self.members.iter().map(|member| member.turns.load(Ordering::Relaxed)).collect();
        // A larger fleet takes longer than the bound of `eventually` for a turn of each.
        for (member, seen) in self.members.iter().zip(seen) {
            eventually("another turn of each client", || {
                (member.turns.load(Ordering::Relaxed) > seen).then_some(())
            });
        }
        let (took, turns) = (start.elapsed(), self.turns() - before);
        println!(
            "{which} turn of {} clients: {took:.1?}, {:.0} turns/s",
            size(),
            turns as f64 / took.as_secs_f64()
        );
    }

    fn end(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("no panic in a client");
        }
        self.members.iter().map(|member| member.reconnects.load(Ordering::Relaxed)).sum()
    }
}

async fn take_turns(url: String, members: Arc<Vec<Member>>, member: usize, over: Arc<AtomicBool>) {
    let client = Client::builder(url)
        .request_timeout(REQUEST_TIMEOUT)
        .connect_timeout(Duration::from_secs(60))
        .connect()
        .await
        .expect("a connection");
    let lock = client.lock("fleet").expect("a good name");
    let member = &members[member];
    while !over.load(Ordering::Relaxed) {
        let guard = lock.acquire().await.expect("an unbounded wait does not end in vain");
        member.turns.fetch_add(1, Ordering::Relaxed);
        // What became of it is of no interest here: a hold whose server stands still may be lost.
        let _ = guard.release().await;
        member.reconnects.store(client.metrics().reconnects, Ordering::Relaxed);
    }
}

/// How many connections the server has ever taken.
fn connections(server: &RedisServer) -> u64 {
    let redis::Value::BulkString(text) = server.cli(&["INFO", "stats"]).unwrap() else { panic!() };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    line.unwrap().trim().parse().unwrap()
}

/// A connection that answers late is no dead one: nobody gives it up, however long the server takes.
#[test]
fn p13_a_fleet_outlives_a_server_that_stands_still() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let fleet = Fleet::start(&server);
    let before = connections(&server);
    server.stop().unwrap();
    std::thread::sleep(REQUEST_TIMEOUT * 12);
    server.cont().unwrap();
    fleet.all_take_another_turn("after a pause: next");
    let made = connections(&server) - before;
    println!("{made} connections were made meanwhile");
    assert!(made < 3 * size() as u64, "a storm of {made} connections");
    assert_eq!(fleet.end(), 0, "connections were given up");
}

#[test]
fn p13_a_fleet_outlives_a_server_that_is_slow() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let fleet = Fleet::start(&server);
    let before = connections(&server);
    // It answers now and then, and then later than a request's timeout.
    for _ in 0..10 {
        server.stop().unwrap();
        std::thread::sleep(REQUEST_TIMEOUT * 2);
        server.cont().unwrap();
        std::thread::sleep(REQUEST_TIMEOUT / 10);
    }
    fleet.all_take_another_turn("after slowness: next");
    let made = connections(&server) - before;
    println!("{made} connections were made meanwhile");
    assert!(made < 3 * size() as u64, "a storm of {made} connections");
    assert_eq!(fleet.end(), 0, "connections were given up");
}
