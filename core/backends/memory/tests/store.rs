//! The memory store by its transport alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Broken, Failure, Push, Released, Standing};
use fencelock_engine::request::{Op, Release, Request, RequestId};
use fencelock_engine::transport::{Doubt, Sink, Transport};
use fencelock_engine::{ClientId, Event};
use fencelock_memory::{MemoryTransport, Options, open};
use fencelock_testkit::recorder::{BOUND, Client, LEASE, fresh, hold, name};

/// These stores give the connection up whatever is owed.
const DOUBT: Doubt = Doubt { owed: RequestId(0), heard: None };

fn client(store: &str) -> Client<MemoryTransport> {
    let options = Options::from_url(&format!("memory:{store}")).unwrap();
    Client::open(|id, sink| open(options, id, sink).unwrap())
}

fn store() -> String {
    format!("store-{}", fresh())
}

#[test]
fn a_lock_is_granted_once_and_released() {
    let (store, lock) = (store(), name("a"));
    let (one, two) = (client(&store), client(&store));
    let first = hold();
    let state = one.take(&lock, first);
    assert_eq!(state.standing, Standing::Granted);
    assert!(state.end > state.token);
    assert_eq!(one.take(&lock, first).token, state.token, "a repeated acquire is the same hold");
    assert_eq!(two.take(&lock, hold()).standing, Standing::Contended);
    assert_eq!(one.release(&lock, first), Released::Done);
    assert_eq!(one.release(&lock, first), Released::Done, "a repeated release is harmless");
    let second = hold();
    let next = two.take(&lock, second);
    assert_eq!(next.standing, Standing::Granted);
    assert_eq!(next.abandoned, Abandoned::No);
    assert!(next.token > state.token);
    one.release(&lock, first);
    assert_eq!(two.beat(&lock, second).standing, Standing::Granted, "the successor is untouched");
    two.release(&lock, second);
    assert_eq!(one.release(&lock, first), Released::Unknown);
}

#[test]
fn a_release_hands_over_to_the_first_waiter_by_push() {
    let (store, lock) = (store(), name("a"));
    let (one, two, three) = (client(&store), client(&store), client(&store));
    let (first, second, third) = (hold(), hold(), hold());
    let state = one.take(&lock, first);
    assert_eq!(two.queue(&lock, second).standing, Standing::Queued);
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == first);
    assert!(one.push(BOUND, wanted).is_some());
    let behind = three.queue(&lock, third);
    assert_eq!((behind.standing, behind.ahead), (Standing::Queued, 1));
    one.release(&lock, first);
    let (token, end) = two.granted(BOUND, second).expect("the first waiter is told");
    assert!(token > state.token && end >= token);
    assert_eq!(three.granted(Duration::ZERO, third), None);
    assert_eq!(three.release(&lock, third), Released::Left, "a cancelled wait leaves the queue");
    assert!(three.inspect(&lock).unwrap().waiters.is_empty());
    assert_eq!(two.release(&lock, second), Released::Done);
}

#[test]
fn an_expired_hold_is_told_to_the_next_as_abandoned() {
    let (store, lock) = (store(), name("a"));
    let (one, two) = (client(&store), client(&store));
    let mut ask = one.request(&lock, hold(), false);
    ask.lease = Duration::from_millis(100);
    let lost = ask.hold;
    let state = one.acquire(ask);
    assert_eq!(state.standing, Standing::Granted);
    let next = loop {
        let next = two.take(&lock, hold());
        if next.standing == Standing::Granted {
            break next;
        }
        thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(next.abandoned, Abandoned::Yes);
    assert!(next.token > state.token);
    assert_eq!(one.beat(&lock, lost).standing, Standing::Gone, "a late renewal revives nothing");
}

#[test]
fn a_waiter_whose_client_has_closed_is_passed_over() {
    let (store, lock) = (store(), name("a"));
    let (one, two, three) = (client(&store), client(&store), client(&store));
    let (first, third) = (hold(), hold());
    one.take(&lock, first);
    two.queue(&lock, hold());
    three.queue(&lock, third);
    two.transport.close();
    let delivered = two.recorder.delivered();
    one.release(&lock, first);
    assert!(three.granted(BOUND, third).is_some());
    assert_eq!(two.recorder.delivered(), delivered, "nothing is delivered after the close");
}

#[test]
fn break_ends_the_hold_and_tells_its_holder() {
    let (store, lock) = (store(), name("a"));
    let (one, two) = (client(&store), client(&store));
    let first = hold();
    let seen = one.take(&lock, first).token;
    assert_eq!(two.break_lock(&lock, seen - 1), Broken::ChangedHands(seen));
    assert_eq!(two.break_lock(&lock, seen), Broken::Ended(1));
    assert_eq!(two.break_lock(&lock, seen), Broken::NotHeld);
    assert_eq!(two.break_lock(&name("never used"), seen), Broken::NotHeld);
    let broken = |push: &Push| matches!(push, Push::Broken { hold, .. } if *hold == first);
    assert!(one.push(BOUND, broken).is_some());
    let next = two.take(&lock, hold());
    assert_eq!(next.abandoned, Abandoned::Yes);
    assert_eq!(two.break_lock(&lock, seen), Broken::ChangedHands(next.token));
}

#[test]
fn names_are_listed_by_prefix_whatever_their_characters() {
    let one = client(&store());
    for text in ["a", "a%", "a%b", "a_b", "ab", "b", "ä", "{x}", "}x", "x'; --", "日本"] {
        assert_eq!(one.take(&name(text), hold()).standing, Standing::Granted, "{text}");
    }
    assert_eq!(one.list("a", 100), ["a", "a%", "a%b", "a_b", "ab"]);
    assert_eq!(one.list("a%", 100), ["a%", "a%b"]);
    assert_eq!(one.list("日", 100), ["日本"]);
    assert_eq!(one.list("", 3), ["a", "a%", "a%b"]);
    assert_eq!(one.list("no such", 100), [""; 0]);
    assert!(one.inspect(&name("unknown")).is_none());
    one.beat(&name("unknown"), hold());
    assert!(one.inspect(&name("unknown")).is_none(), "a beat makes no lock");
}

#[test]
fn stores_of_other_names_are_others_and_one_outlives_its_clients() {
    let (store, lock) = (store(), name("a"));
    let one = client(&store);
    assert_eq!(client(&format!("{store}-other")).take(&lock, hold()).standing, Standing::Granted);
    let first = hold();
    let before = one.take(&lock, first);
    one.release(&lock, first);
    drop(one);
    assert!(client(&store).take(&lock, hold()).token > before.token);
}

#[test]
fn never_two_holders_and_tokens_rise_under_contention() {
    const ROUNDS: usize = 500;
    let (store, lock) = (Arc::new(store()), name("hot"));
    let inside = Arc::new(AtomicUsize::new(0));
    let last = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (store, lock) = (Arc::clone(&store), lock.clone());
            let (inside, last) = (Arc::clone(&inside), Arc::clone(&last));
            thread::spawn(move || {
                let client = client(&store);
                for _ in 0..ROUNDS {
                    let (hold, token) = client.insist(&lock);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    assert!(last.swap(token, Ordering::SeqCst) < token, "a token went back");
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert_eq!(client.release(&lock, hold), Released::Done);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(last.load(Ordering::SeqCst) > 0);
}

/// A client that answers each grant by releasing, from within the delivery.
struct Relay {
    transport: std::sync::OnceLock<Arc<MemoryTransport>>,
    store_lock: fencelock_engine::Name,
    grants: AtomicUsize,
    nested: AtomicBool,
    requests: AtomicU64,
}

impl Sink for Relay {
    fn deliver(&self, event: Event) {
        assert!(!self.nested.swap(true, Ordering::SeqCst), "delivered within a delivery");
        if let Event::Push(Push::Granted { hold, .. }) = event {
            self.grants.fetch_add(1, Ordering::SeqCst);
            let lock = self.store_lock.clone();
            let release = Release::new(lock, hold, 0);
            let id = RequestId(self.requests.fetch_add(1, Ordering::SeqCst));
            let transport = self.transport.get().expect("it was opened");
            transport.enqueue(Request { id, op: Op::Release(release) });
            transport.flush();
        }
        self.nested.store(false, Ordering::SeqCst);
    }
}

#[test]
fn a_delivery_may_flush_and_cause_others() {
    let (store, lock) = (store(), name("chain"));
    let first = client(&store);
    let held = hold();
    first.take(&lock, held);
    let relays: Vec<_> = (0..20)
        .map(|_| {
            let relay = Arc::new(Relay {
                transport: Default::default(),
                store_lock: lock.clone(),
                grants: AtomicUsize::new(0),
                nested: AtomicBool::new(false),
                requests: AtomicU64::new(1),
            });
            let id = ClientId::new(fresh(), "").unwrap();
            let sink = Arc::clone(&relay) as Arc<dyn Sink>;
            let transport = open(Options { name: store.clone() }, id, sink).unwrap();
            transport.flush();
            let op = Op::Acquire(first.request(&lock, hold(), true));
            relay.transport.set(Arc::clone(&transport)).ok();
            transport.enqueue(Request { id: RequestId(0), op });
            transport.flush();
            relay
        })
        .collect();
    first.release(&lock, held);
    for relay in &relays {
        assert_eq!(relay.grants.load(Ordering::SeqCst), 1);
    }
    assert!(first.inspect(&lock).unwrap().holds.is_empty());
}

#[test]
fn reconnect_fails_what_was_not_flushed() {
    let one = client(&store());
    let id = one.send(Op::Time);
    one.transport.reconnect(DOUBT);
    one.transport.flush();
    assert_eq!(one.reply(id), Err(Failure::NotSent));
    one.up();
    assert!(one.now() > 0);
}

#[test]
fn requests_of_other_times_are_refused() {
    let (one, lock) = (client(&store()), name("a"));
    let mut ask = one.request(&lock, hold(), false);
    ask.not_after = 1;
    assert_eq!(one.acquire(ask).standing, Standing::Late);
    assert!(one.inspect(&lock).is_none());
    assert_eq!(one.take(&lock, hold()).lease, LEASE);
}

#[test]
fn urls() {
    assert_eq!(Options::from_url("memory:").unwrap(), Options::default());
    assert_eq!(Options::from_url("memory:x").unwrap(), Options { name: "x".to_owned() });
    for wrong in ["memory", "sqlite:x", "memory:x?y=z"] {
        assert!(Options::from_url(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn readers_hold_together_and_a_writer_alone() {
    let store = store();
    fencelock_testkit::modes::readers_and_a_writer(|| client(&store), &name("a"));
}

#[test]
fn permits_are_counted() {
    let store = store();
    fencelock_testkit::modes::permits_of_a_semaphore(|| client(&store), &name("a"));
}

#[test]
fn those_let_in_together_are_told_their_own_tokens() {
    let store = store();
    fencelock_testkit::modes::tokens_of_a_hand_off(|| client(&store), &name("a"));
}
