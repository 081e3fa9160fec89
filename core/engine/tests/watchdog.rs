//! How a renewal that failed is repeated.

use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Refusal, RefusalKind, Reply, Standing, State};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::{Ask, Effect, Engine, Event, Name, Options, Time};

/// The next request that the engine sends, and when.
fn next(engine: &mut Engine<()>, now: &mut Time) -> Option<(RequestId, Op)> {
    loop {
        while let Some(effect) = engine.poll_effect() {
            match effect {
                Effect::Send(Request { id, op }) => return Some((id, op)),
                Effect::Lost(..) => return None,
                _ => {}
            }
        }
        *now = engine.next_wake()?.max(*now);
        engine.wake(*now);
    }
}

#[test]
fn bug_115_the_pause_before_a_repeated_renewal_is_a_quarter_of_what_is_left() {
    let lease = Duration::from_secs(2);
    let options = Options { lease, ..Options::default() };
    let mut engine = Engine::new(options, [7; 32]).unwrap();
    let mut now = Time::from_nanos(1_000_000_000);
    let store = |now: Time| now.as_nanos() / 1_000;
    engine.handle(now, Event::Up { now: store(now) });
    let lock = engine.lock(&Name::new("report").unwrap());
    engine.acquire(now, lock, Ask::local(1), ()).unwrap();
    let Some((request, Op::Acquire(_))) = next(&mut engine, &mut now) else { panic!() };
    let granted = State { token: 5, end: 1_028, lease, ..State::bare(Standing::Granted) };
    let body = Body::Acquire(granted);
    engine.handle(now, Event::Reply { request, result: Ok(Reply { now: store(now), body }) });
    let end = now + lease;

    // The store refuses each renewal until the hold is over.
    let (mut last, mut tries) = (None, 0);
    while let Some((request, Op::Beat(_))) = next(&mut engine, &mut now) {
        if let Some(before) = last {
            let left = end.since(before);
            let longest = (left / 4).max(Duration::from_millis(10));
            assert!(now.since(before) <= longest, "{:?} of {left:?}", now.since(before));
        }
        (last, tries) = (Some(now), tries + 1);
        let message = "LOADING".to_owned();
        let refusal = Refusal { kind: RefusalKind::Retry, message };
        engine.handle(now, Event::Reply { request, result: Err(Failure::Refused(refusal)) });
    }
    assert!(tries > 8, "{tries}");
    assert!(end.since(now) < Duration::from_millis(100), "it was given up early");
}
