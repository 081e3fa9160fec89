//! What mutation testing found untested: each test sees a small change that no other one saw.
#![expect(clippy::disallowed_types, reason = "a sink of log lines must be shared")]

mod world;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock_engine::request::Request;
use fencelock_engine::transport::{Doubt, Sink, Transport, Watcher};
use fencelock_engine::{Ask, Error, ErrorKind, Event, Name, Note, Options, Outcome, Token};
use world::World;

const MS: Duration = Duration::from_millis(1);

#[test]
fn options_reach_their_bounds() {
    let ok = |options: Options| options.check().is_ok();
    let options = Options::default;
    for (claim, fits) in [(99, false), (100, true), (60_000, true), (60_001, false)] {
        let retention = MS * claim * 2;
        assert_eq!(ok(Options { claim: MS * claim, retention, ..options() }), fits, "{claim}");
    }
    let claim = options().claim;
    assert!(ok(Options { retention: claim * 2, ..options() }));
    assert!(!ok(Options { retention: claim * 2 - MS, ..options() }));
    assert!(ok(Options { request_timeout: MS * 10, ..options() }));
    assert!(!ok(Options { request_timeout: MS * 9, ..options() }));
    assert!(ok(Options { crowd: 1, max_waiters: 1, ..options() }));
    assert!(!ok(Options { crowd: 0, ..options() }));
    assert!(!ok(Options { max_waiters: 0, ..options() }));
}

#[test]
fn a_renewal_is_noted_and_a_waiters_heartbeat_is_none() {
    let mut world = World::new(2);
    world.take(0, 1);
    world.queue(1, 2);
    world.pass(Duration::from_secs(40));
    let renewed = |client: usize| {
        let notes = world.clients[client].notes.iter();
        notes.filter(|note| matches!(note, Note::Renewed(_))).count()
    };
    assert!(world.clients[0].notes.contains(&Note::Renewed(1)), "{:?}", world.clients[0].notes);
    assert!(!world.clients[0].notes.contains(&Note::Renewed(0)));
    assert_eq!(renewed(1), 0);
}

#[test]
fn an_inspection_tells_who_holds_and_who_waits() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    world.queue(1, 2);
    let (now, call) = (world.time(), 1_000);
    world.clients[1].engine.inspect(now, &Name::new("stock").unwrap(), call);
    world.run();
    let Some(Outcome::Inspected(Some(info))) = world.clients[1].outcomes.get(&call) else {
        panic!("{:?}", world.clients[1].outcomes.get(&call))
    };
    assert_eq!((info.token, info.holds.len(), info.waiting), (held.token.get(), 1, 1));
}

#[test]
fn who_waits_within_a_client_is_told_with_its_renewals_and_at_once_to_itself() {
    let mut world = World::new(3);
    world.take(0, 1);
    world.queue(0, 2);
    world.queue(0, 3);
    world.queue(0, 4);
    world.queue(1, 5);
    world.queue(1, 6);
    // What was sent before they came says nothing of them; their own client knows.
    assert_eq!(counts(&mut world, 2), (vec![Some(0)], vec![Some(0)], 1));
    assert_eq!(counts(&mut world, 0), (vec![Some(3)], vec![Some(0)], 4));
    assert_eq!(counts(&mut world, 1), (vec![Some(0)], vec![Some(1)], 2));
    world.pass(Options::default().lease / 2);
    assert_eq!(counts(&mut world, 2), (vec![Some(3)], vec![Some(1)], 5));
}

/// What a client is told of who waits within the holder's, and within each waiter's; and how many
/// wait in all.
fn counts(world: &mut World, client: usize) -> (Vec<Option<u32>>, Vec<Option<u32>>, usize) {
    let (now, call) = (world.time(), 1_000);
    world.clients[client].outcomes.remove(&call);
    world.clients[client].engine.inspect(now, &Name::new("stock").unwrap(), call);
    world.run();
    let Some(Outcome::Inspected(Some(info))) = world.clients[client].outcomes.get(&call) else {
        panic!("{:?}", world.clients[client].outcomes.get(&call))
    };
    let holds = info.holds.iter().map(|hold| hold.local_waiters).collect();
    let waiters = info.waiters.iter().map(|waiter| waiter.local_waiters).collect();
    (holds, waiters, info.waiting)
}

#[test]
fn promise_14_a_release_that_the_store_does_not_confirm_ends_in_time() {
    let mut world = World::new(1);
    let held = world.take(0, 1);
    world.clients[0].swallow_replies = true;
    world.begin_release(0, held.hold).unwrap();
    let call = world.clients[0].outcomes.keys().max().copied().unwrap_or(0) + 1;
    assert!(world.is_pending(0, call));
    world.pass(Options::default().request_timeout * 4);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable);
}

#[test]
fn promise_02_a_record_outlives_the_copies_of_what_a_slow_store_was_asked() {
    let mut world = World::new(1);
    let retention = |world: &World| {
        let said = world.log.iter().rev().find(|line| line.contains("Release(")).unwrap();
        let from = said.find("retention: ").unwrap() + "retention: ".len();
        said[from..].split(',').next().unwrap().to_owned()
    };
    let held = world.take(0, 1);
    world.release(0, held.hold).unwrap();
    assert_eq!(retention(&world), "60s");
    // An answer takes 20 s: claims last as long as any may.
    let held = world.take_with(0, Ask { lease: Some(MS * 100_000), ..Ask::local(1) });
    world.clients[0].slow = true;
    world.extend(0, held.hold, MS * 100_000);
    world.pass(MS * 20_000);
    world.clients[0].slow = false;
    world.arrive();
    world.release(0, held.hold).unwrap();
    assert_eq!(retention(&world), "120s");
}

#[test]
fn an_error_may_be_retried_where_nobody_must_change_anything() {
    use ErrorKind::{Cancelled, Closed, Contended, InvalidArgument, Lost, Misconfigured};
    use ErrorKind::{NotHeld, TimedOut, Unavailable, Unsupported};
    for kind in [Contended, TimedOut, Unavailable] {
        assert!(Error::new(kind, "").is_retryable(), "{kind}");
    }
    for kind in [Cancelled, Lost, NotHeld, Misconfigured, InvalidArgument, Unsupported, Closed] {
        assert!(!Error::new(kind, "").is_retryable(), "{kind}");
    }
}

/// A connection that can do nothing but what each one must.
struct Plain;

impl Transport for Plain {
    fn enqueue(&self, _: Request) {}
    fn flush(&self) {}
    fn reconnect(&self, _: Doubt) {}
    fn close(&self) {}
}

#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Sink for Heard {
    fn deliver(&self, event: Event) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

#[test]
fn several_events_are_delivered_in_their_order() {
    let (heard, up) = (Heard::default(), |now| Event::Up { now });
    let mut events = vec![up(1), up(2), up(3)];
    heard.deliver_all(&mut events);
    assert!(events.is_empty());
    assert_eq!(*heard.0.lock().unwrap(), [1, 2, 3].map(|now| format!("{:?}", up(now))));
}

#[test]
fn a_token_is_written_as_its_number() {
    assert_eq!((Token(7).to_string(), format!("{:>4}", Token(7))), ("7".into(), "   7".into()));
}

struct Nobody;

impl Watcher for Nobody {
    fn watch(&self, _: i32) {}
}

#[test]
fn a_transport_promises_nothing_that_it_does_not_say() {
    assert!(!Plain.executes(), "what is asked may wait for more");
    assert!(!Plain.watch(Arc::new(Nobody)), "its sockets say nothing");
    assert!(Plain.farewell().is_none());
}
