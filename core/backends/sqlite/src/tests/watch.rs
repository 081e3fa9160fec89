//! What a look at the file reads, counted in instructions of SQLite's own machine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fencelock_engine::reply::{Body, Push, Standing};
use fencelock_engine::request::{Acquire, Break, Op, Request, RequestId, Wait};
use fencelock_engine::store::Caller;
use fencelock_engine::{ClientId, HoldId, Name};

use crate::clock::Clock;
use crate::options::Options;
use crate::store::Store;
use crate::watch::Watch;

/// A client without its thread.
struct Client {
    store: Store,
    caller: Caller,
    watch: Watch,
    /// Instructions that its connection has executed.
    work: Arc<AtomicU64>,
}

impl Client {
    fn open(path: &Path, number: u64) -> Client {
        let (options, stop) = (Options::new(path), AtomicBool::new(false));
        let mut store =
            Store::open(path.to_owned(), &options, Clock::of_boot("test"), &stop).unwrap();
        let work = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&work);
        store
            .conn
            .progress_handler(
                1,
                Some(move || {
                    count.fetch_add(1, Ordering::Relaxed);
                    false
                }),
            )
            .unwrap();
        let caller = Caller { client: ClientId::new(number, "").unwrap(), polling: false };
        Client { store, caller, watch: Watch::default(), work }
    }

    fn run(&mut self, ops: Vec<Op>) {
        let stop = AtomicBool::new(false);
        let requests: Vec<_> = ops.into_iter().map(|op| Request { id: RequestId(0), op }).collect();
        let seen = &mut self.watch.seen;
        let done = self.store.run(&self.caller, &requests, seen, &stop).unwrap();
        for (request, (_, result)) in requests.iter().zip(&done.replies) {
            if let Body::Acquire(state) = &result.as_ref().unwrap().body {
                assert!(matches!(state.standing, Standing::Granted | Standing::Queued));
            }
            self.watch.note(&request.op, result);
        }
    }

    fn acquire(&self, lock: &Name, hold: u128) -> Op {
        let wait =
            Wait { ticket: 0, claim: Duration::from_secs(3), silence: Duration::from_secs(3) };
        Op::Acquire(Acquire {
            wait: Some(wait),
            ..Acquire::new(
                lock.clone(),
                HoldId(hold),
                Duration::from_secs(3_600),
                self.store.now() + 3_000_000,
            )
        })
    }

    /// What a look finds, and how many instructions it takes.
    fn look(&mut self) -> (Vec<Push>, u64) {
        let before = self.work.load(Ordering::Relaxed);
        let (client, now) = (self.caller.client.id().to_owned(), self.store.now());
        let found = self.watch.look(&self.store.conn, &client, now).unwrap();
        (found, self.work.load(Ordering::Relaxed) - before)
    }
}

fn name(at: u128) -> Name {
    Name::new(format!("lock-{at}")).unwrap()
}

#[test]
fn a_look_reads_what_concerns_the_client_and_not_all_that_it_has() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("locks.db");
    let (mut one, mut two) = (Client::open(&path, 1), Client::open(&path, 2));
    let mut cost = Vec::new();
    let mut held = 0;
    for many in [10, 10_000] {
        let asks: Vec<Op> = (held..many).map(|at| one.acquire(&name(at), at)).collect();
        one.run(asks);
        held = many;
        // Another client writes what is not for this one.
        let elsewhere = Name::new(format!("elsewhere-{many}")).unwrap();
        two.run(vec![two.acquire(&elsewhere, 1_000_000 + many)]);
        assert!(one.store.changed().unwrap());
        let (found, idle) = one.look();
        assert_eq!(found, []);
        // And then something that is: it waits for one, and breaks another.
        let (wanted, broken) = (name(many / 2), name(many / 3));
        two.run(vec![two.acquire(&wanted, 2_000_000 + many)]);
        let what = Break { lock: broken.clone(), token: u64::MAX, hold: None };
        two.run(vec![Op::Break(what)]);
        let (found, busy) = one.look();
        assert_eq!(
            found,
            [
                Push::Broken { lock: broken.clone(), hold: HoldId(many / 3) },
                Push::Wanted { lock: wanted.clone(), hold: HoldId(many / 2) },
            ]
        );
        assert_eq!(one.look().0, [], "it is told once");
        // What was seen goes with the next write.
        one.run(vec![one.acquire(&name(many / 5), many / 5)]);
        assert_eq!(one.watch.seen, []);
        assert_eq!(one.look().1, idle);
        cost.push((idle, busy));
    }
    let [(idle, busy), (idle_many, busy_many)] = cost[..] else { panic!("{cost:?}") };
    // Fixed numbers of rows, found by index.
    assert!(idle < 50 && busy < 500, "{cost:?}");
    assert!(idle_many <= idle && busy_many <= busy + 50, "{cost:?}");
}

#[test]
fn a_grant_is_found_among_many_waits() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("locks.db");
    let (mut one, mut two) = (Client::open(&path, 1), Client::open(&path, 2));
    let many = 1_000_u128;
    two.run((0..many).map(|at| two.acquire(&name(at), at)).collect());
    one.run((0..many).map(|at| one.acquire(&name(at), many + at)).collect());
    // It heard that others want each of them, and has written since.
    assert_eq!(two.look().0.len(), 1_000);
    two.run(vec![two.acquire(&name(many), many)]);
    let release = fencelock_engine::request::Release {
        retention: Duration::from_secs(60),
        ..fencelock_engine::request::Release::new(name(7), HoldId(7), 0)
    };
    two.run(vec![Op::Release(release)]);
    let (found, work) = one.look();
    assert!(
        matches!(&found[..], [Push::Granted { hold, others_waiting: 0, .. }] if *hold == HoldId(many + 7)),
        "{found:?}"
    );
    assert!(work < 500, "{work}");
}
