//! What the frequent cases cost the server: they read and write a few words, and never the whole lock.

use std::collections::BTreeSet;
use std::time::Duration;

use fencelock_engine::id::HoldId;
use fencelock_engine::name::Name;
use fencelock_engine::redis::Value;
use fencelock_engine::request::{Acquire, Beat, Mode, Op, Release, Wait};
use fencelock_sim::redis::ModelRedis;

use crate::clients::Client;

struct Bench {
    redis: ModelRedis,
    clients: Vec<Client>,
    now: u64,
    token: u64,
}

impl Bench {
    /// The words of the commands that one operation takes, and those of their answers.
    fn work(&mut self, client: usize, op: &Op) -> u64 {
        self.now += 2_000;
        let inboxes: BTreeSet<Vec<u8>> =
            self.clients.iter().map(|client| client.codec.channel().to_vec()).collect();
        let command = self.clients[client].codec.encode(op);
        self.redis.work();
        let (value, _) = self.redis.run(self.now, &command, &|channel| inboxes.contains(channel));
        let op = format!("{op:?}");
        let Value::Array(items) = value else { panic!("{op}: {value:?}") };
        // Of a grant, or of a holder's beat.
        let state = match items.get(1) {
            Some(Value::Array(state)) => state,
            _ => &items[1..],
        };
        if let [Value::Int(0), Value::Int(token), ..] = state {
            self.token = token.unsigned_abs();
        }
        self.redis.work()
    }

    fn acquire(&mut self, hold: u64, wait: bool) -> u64 {
        self.acquire_in("job", Mode::Exclusive, hold, wait)
    }

    fn acquire_in(&mut self, lock: &str, mode: Mode, hold: u64, wait: bool) -> u64 {
        let (claim, silence) = (Duration::from_secs(1), Duration::from_secs(3));
        let ask = Acquire {
            lock: Name::new(lock).unwrap(),
            hold: id(hold),
            owner: None,
            mode,
            read_write: false,
            lease: Duration::from_secs(30),
            not_after: self.now + 100_000,
            floor: 0,
            wait: wait.then_some(Wait { ticket: 0, claim, silence }),
            attach: None,
            after: None,
            local_waiters: 0,
        };
        self.work(hold as usize % 4, &Op::Acquire(ask))
    }

    fn beat(&mut self, hold: u64) -> u64 {
        self.beat_in("job", Mode::Exclusive, hold)
    }

    fn beat_in(&mut self, lock: &str, mode: Mode, hold: u64) -> u64 {
        let (lease, silence) = (Duration::from_secs(30), Duration::from_secs(3));
        let lock = Name::new(lock).unwrap();
        let beat = Beat { silence, mode, ..Beat::new(lock, id(hold), lease) };
        self.work(hold as usize % 4, &Op::Beat(vec![beat]))
    }

    fn release(&mut self, hold: u64, alone: bool) -> u64 {
        let release = Release { alone, ..Release::new(name(), id(hold), self.token) };
        self.work(hold as usize % 4, &Op::Release(release))
    }
}

/// Nobody waits: who shares a lock, and who takes permits.
fn compare_shared(bench: &mut Bench, lock: &str, mode: Mode, first: u64) -> Vec<(u64, u64)> {
    let release = |bench: &mut Bench, hold: u64| {
        let lock = Name::new(lock).unwrap();
        let release = Release { mode, ..Release::new(lock, id(hold), bench.token) };
        bench.work(hold as usize % 4, &Op::Release(release))
    };
    let mut found = vec![
        (52, bench.acquire_in(lock, mode, first, true)),
        (54, bench.beat_in(lock, mode, first)),
        (46, release(bench, first)),
        (48, bench.acquire_in(lock, mode, first + 1, false)),
        (74, bench.acquire_in(lock, mode, first + 2, true)),
        (58, bench.acquire_in(lock, mode, first + 3, true)),
    ];
    for hold in first + 4..first + 70 {
        found.push((58, bench.acquire_in(lock, mode, hold, true)));
    }
    found.push((69, bench.beat_in(lock, mode, first + 9)));
    for hold in first + 1..first + 69 {
        found.push((53, release(bench, hold)));
    }
    found.push((56, release(bench, first + 69)));
    found
}

fn name() -> Name {
    Name::new("job").unwrap()
}

fn id(hold: u64) -> HoldId {
    HoldId(u128::from(hold) << 64)
}

pub fn compare() {
    let clients = (0..4).map(|number| Client::new(number + 1)).collect();
    let redis = ModelRedis::mutated();
    let mut bench = Bench { redis, clients, now: 1_700_000_000_000_000, token: 0 };
    let found = [
        ("the first acquire", 42, bench.acquire(0, true)),
        ("a beat of a holder", 40, bench.beat(0)),
        ("a release of the only one", 28, bench.release(0, true)),
        ("an acquire after it", 34, bench.acquire(1, true)),
        ("its release", 28, bench.release(1, true)),
        ("a late beat after it", 42, bench.beat(1)),
        ("a try", 34, bench.acquire(2, false)),
        ("the first in the queue", 59, bench.acquire(3, true)),
        ("the second in the queue", 73, bench.acquire(4, true)),
        ("the third in the queue", 73, bench.acquire(5, true)),
        ("a beat of a holder before others", 55, bench.beat(2)),
        ("a beat of the first", 52, bench.beat(3)),
        ("a beat of the third", 67, bench.beat(5)),
        ("a release with others", 62, bench.release(2, false)),
        ("the first beat after a hand-over", 55, bench.beat(3)),
        ("a release with others again", 62, bench.release(3, false)),
        ("a release of what is not there", 63, bench.release(7, false)),
        ("a look", 49, bench.work(0, &Op::Inspect(name()))),
    ];
    let dear: Vec<_> = found.iter().filter(|(_, most, found)| found > most).collect();
    assert!(dear.is_empty(), "what, how many words at the most, and how many: {dear:?}");
    for (lock, mode, first) in
        [("prices", Mode::Shared, 100), ("mailers", Mode::Permits { count: 1, of: 99 }, 200)]
    {
        let found = compare_shared(&mut bench, lock, mode, first).into_iter();
        let dear: Vec<_> = found.enumerate().filter(|(_, (most, found))| found > most).collect();
        assert!(
            dear.is_empty(),
            "{lock}: which, and how many words at the most, and how many: {dear:?}"
        );
    }
}
