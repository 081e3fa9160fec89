//! Clocks and times at the ends of their range.

use std::time::Duration;

use fencelock_engine::reply::{Body, Reply, Standing, State};
use fencelock_engine::request::{Acquire, Op, Request};
use fencelock_engine::{Ask, Effect, Engine, Event, LockKey, Name, Options, Outcome, Time};

const NOW: Time = Time::from_nanos(1_000_000_000);

fn engine() -> (Engine<u32>, LockKey) {
    let mut engine = Engine::new(Options::default(), [7; 32]).unwrap();
    let lock = engine.lock(&Name::new("x").unwrap());
    engine.handle(NOW, Event::Up { now: u64::MAX });
    (engine, lock)
}

fn sent(engine: &mut Engine<u32>) -> (Request, Acquire) {
    match engine.poll_effect() {
        Some(Effect::Send(request @ Request { .. })) => match request.op.clone() {
            Op::Acquire(acquire) => (request, acquire),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn promise_14_an_instant_after_the_end_of_time_is_its_end() {
    let (mut engine, lock) = engine();
    engine.acquire(NOW, lock, Ask::local(1), 1).unwrap();
    assert_eq!(sent(&mut engine).1.not_after, u64::MAX);
}

#[test]
fn promise_02_tokens_are_handed_over_under_any_clock() {
    let (mut engine, lock) = engine();
    for owner in 1..=2 {
        engine.acquire(NOW, lock, Ask::local(u64::from(owner)), owner).unwrap();
    }
    let (request, acquire) = sent(&mut engine);
    let state =
        State { token: 1, end: 1024, lease: acquire.lease, ..State::bare(Standing::Granted) };
    let result = Ok(Reply { now: u64::MAX, body: Body::Acquire(state) });
    engine.handle(NOW, Event::Reply { request: request.id, result });
    let Some(Effect::Complete(1, Outcome::Granted(first))) = engine.poll_effect() else { panic!() };
    engine.release(NOW, first.hold, None).unwrap();
    let Some(Effect::Complete(2, Outcome::Granted(second))) = engine.poll_effect() else {
        panic!()
    };
    assert_eq!(second.token.get(), 2);
}

#[test]
fn times_do_not_leave_their_range() {
    let span = Duration::from_nanos;
    assert_eq!(NOW + span(3), Time::from_nanos(1_000_000_003));
    assert_eq!(NOW - span(3), Time::from_nanos(999_999_997));
    assert_eq!((NOW - Duration::MAX, NOW + Duration::MAX), (Time::ZERO, Time::MAX));
    assert_eq!((NOW.since(NOW - span(3)), NOW.since(NOW + span(3))), (span(3), Duration::ZERO));
}
