//! What the store grants and its replicas have not confirmed does not count, and is not left behind.

use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Body, Push, Released, Reply, Standing, State};
use fencelock_engine::request::{Mode, Op, Request, RequestId};
use fencelock_engine::{
    Acquired, Ask, Effect, Engine, ErrorKind, Event, Grant, HoldId, HoldKey, LockKey, LossReason,
    Name, Options, Outcome, Patience, Time,
};

const LEASE: Duration = Duration::from_secs(3);
const SHORT: Standing = Standing::Unconfirmed { by: 0, of: 1 };

struct World {
    engine: Engine<u32>,
    lock: LockKey,
    now: Time,
    sent: Vec<(RequestId, Op)>,
    outcomes: Vec<(u32, Outcome)>,
    lost: Vec<LossReason>,
}

impl World {
    fn new() -> World {
        let options = Options { lease: LEASE, confirm_grants: true, ..Options::default() };
        let mut engine = Engine::new(options, [7; 32]).unwrap();
        let now = Time::from_nanos(1_000_000_000);
        engine.handle(now, Event::Up { now: micros(now) });
        let lock = engine.lock(&Name::new("report").unwrap());
        let (sent, outcomes, lost) = (Vec::new(), Vec::new(), Vec::new());
        World { engine, lock, now, sent, outcomes, lost }
    }

    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Send(Request { id, op }) => self.sent.push((id, op)),
                Effect::Complete(call, outcome) => self.outcomes.push((call, outcome)),
                Effect::Lost(_, reason) => self.lost.push(reason),
                _ => {}
            }
        }
    }

    fn ask(&mut self, ask: Ask, call: u32) {
        let acquired = self.engine.acquire(self.now, self.lock, ask, call).unwrap();
        assert!(matches!(acquired, Acquired::Pending(_)), "{acquired:?}");
        self.drain();
    }

    /// The next request, however long that takes.
    fn next(&mut self) -> (RequestId, Op) {
        while self.sent.is_empty() {
            self.wake();
        }
        self.sent.remove(0)
    }

    fn wake(&mut self) {
        self.now = self.engine.next_wake().unwrap().max(self.now);
        self.engine.wake(self.now);
        self.drain();
    }

    fn answer(&mut self, request: RequestId, body: Body) {
        let result = Ok(Reply { now: micros(self.now), body });
        self.engine.handle(self.now, Event::Reply { request, result });
        self.drain();
    }

    fn push(&mut self, push: Push) {
        self.engine.handle(self.now, Event::Push(push));
        self.drain();
    }

    /// A lock that is held, and confirmed.
    fn hold(&mut self, ask: Ask) -> HoldKey {
        self.ask(ask, 1);
        let (request, _) = self.next();
        self.answer(request, Body::Acquire(granted()));
        self.grant(1).hold
    }

    fn grant(&self, call: u32) -> Grant {
        match self.outcomes.iter().find(|(of, _)| *of == call) {
            Some((_, Outcome::Granted(grant))) => grant.clone(),
            other => panic!("not granted: {other:?}"),
        }
    }
}

fn micros(now: Time) -> u64 {
    1_700_000_000_000_000 + now.as_nanos() / 1_000
}

fn granted() -> State {
    State { token: 5, end: 1_028, lease: LEASE, ..State::bare(Standing::Granted) }
}

fn queued() -> State {
    State { last: 4, ticket: 9, ..State::bare(Standing::Queued) }
}

fn pushed(hold: HoldId) -> Push {
    let (lock, abandoned) = (Name::new("report").unwrap(), Abandoned::No);
    Push::Granted { lock, hold, token: 5, end: 1_028, abandoned, losses: 0, others_waiting: 0 }
}

fn acquires(op: &Op) -> HoldId {
    let Op::Acquire(ask) = op else { panic!("{op:?}") };
    ask.hold
}

fn beats(op: &Op) -> HoldId {
    let Op::Beat(beats) = op else { panic!("{op:?}") };
    beats[0].hold
}

#[test]
fn bug_141_a_grant_that_is_never_confirmed_is_asked_for_again_and_given_back() {
    let mut world = World::new();
    world.ask(Ask { patience: Patience::Try, ..Ask::local(1) }, 1);
    let (mut tries, mut hold) = (0, None);
    let released = loop {
        let (request, op) = world.next();
        if let Op::Release(release) = op {
            break (request, release.hold);
        }
        assert_eq!(*hold.get_or_insert(acquires(&op)), acquires(&op), "it is the same hold");
        tries += 1;
        world.answer(request, Body::Acquire(State::bare(SHORT)));
    };
    assert!(tries > 3, "{tries}");
    assert_eq!(Some(released.1), hold);
    let [(1, Outcome::Failed(error))] = &world.outcomes[..] else { panic!("{:?}", world.outcomes) };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("of 1 replica"), "{error}");
    // It was answered: no late copy of it is waited out.
    world.answer(released.0, Body::Release(Released::Left));
    assert_eq!(world.engine.next_wake(), None);
}

#[test]
fn a_grant_counts_from_the_request_that_was_confirmed() {
    let mut world = World::new();
    world.ask(Ask::local(1), 1);
    let (request, _) = world.next();
    world.answer(request, Body::Acquire(State::bare(SHORT)));
    let (request, _) = world.next();
    let sent = world.now;
    world.answer(request, Body::Acquire(granted()));
    let hold = world.grant(1).hold;
    let until = fencelock_engine::validity::valid_until(sent, LEASE);
    assert!(world.engine.remaining(until - Duration::from_nanos(1), hold).is_some());
    assert!(world.engine.remaining(until, hold).is_none());
}

#[test]
fn a_renewal_that_is_not_confirmed_does_not_count_and_the_loss_is_told_in_time() {
    let mut world = World::new();
    let until = fencelock_engine::validity::valid_until(world.now, LEASE);
    let hold = world.hold(Ask::local(1));
    let mut tries = 0;
    loop {
        let (request, op) = world.next();
        if matches!(op, Op::Release(_)) {
            break;
        }
        assert!(world.engine.remaining(world.now, hold).is_some());
        beats(&op);
        tries += 1;
        world.answer(request, Body::Beat(vec![Ok(State::bare(SHORT))]));
    }
    assert!(tries > 3, "{tries}");
    assert_eq!(world.lost, [LossReason::NotRenewed]);
    assert_eq!(world.now, until);
}

#[test]
fn bug_144_a_grant_by_push_counts_once_it_has_been_confirmed() {
    let mut world = World::new();
    world.ask(Ask::local(1), 1);
    let (request, op) = world.next();
    let hold = acquires(&op);
    world.answer(request, Body::Acquire(queued()));
    world.push(pushed(hold));
    // It is asked for at once.
    let (request, op) = world.sent.remove(0);
    assert_eq!(beats(&op), hold);
    world.answer(request, Body::Beat(vec![Ok(State::bare(SHORT))]));
    assert!(world.outcomes.is_empty(), "{:?}", world.outcomes);
    let (request, op) = world.next();
    assert_eq!(beats(&op), hold);
    world.answer(request, Body::Beat(vec![Ok(granted())]));
    assert_eq!(world.grant(1).token.get(), 5);
}

#[test]
fn a_push_that_overtakes_the_answer_is_asked_about_too() {
    let mut world = World::new();
    world.ask(Ask::local(1), 1);
    let (request, op) = world.next();
    world.push(pushed(acquires(&op)));
    assert!(world.sent.is_empty(), "{:?}", world.sent);
    world.answer(request, Body::Acquire(queued()));
    let (request, _) = world.sent.remove(0);
    assert!(world.outcomes.is_empty(), "{:?}", world.outcomes);
    world.answer(request, Body::Beat(vec![Ok(granted())]));
    world.grant(1);
}

#[test]
fn bug_165_an_upgrade_that_is_not_confirmed_is_asked_for_again() {
    let mut world = World::new();
    let hold = world.hold(Ask { mode: Mode::Shared, ..Ask::local(1) });
    world.engine.try_upgrade(world.now, hold, 2).unwrap();
    world.drain();
    for standing in [SHORT, SHORT, Standing::Granted] {
        assert_eq!(world.outcomes.len(), 1, "{:?}", world.outcomes);
        let (request, op) = world.next();
        assert!(matches!(&op, Op::Convert(ask) if ask.to == Mode::Exclusive), "{op:?}");
        world.answer(request, Body::Convert(State { standing, token: 6, ..granted() }));
    }
    assert!(matches!(world.outcomes[1], (2, Outcome::Converted(_))), "{:?}", world.outcomes);
}

#[test]
fn a_release_that_went_along_with_it_is_done() {
    let mut world = World::new();
    world.ask(Ask::local(1), 1);
    let (request, op) = world.next();
    let hold = acquires(&op);
    // Another client waits, and a local caller behind it: the lock is released and queued for at once.
    world.answer(request, Body::Acquire(State { others_waiting: 1, ..granted() }));
    let first = world.grant(1).hold;
    world.ask(Ask::local(2), 2);
    world.now = world.now + Duration::from_millis(50);
    world.engine.release(world.now, first, Some(3)).unwrap();
    world.drain();
    let (request, op) = world.next();
    let Op::Acquire(ask) = &op else { panic!("{op:?}") };
    assert_eq!(ask.after.as_ref().map(|release| release.hold), Some(hold));
    world.answer(request, Body::Acquire(State::bare(SHORT)));
    assert!(world.outcomes.contains(&(3, Outcome::Released)), "{:?}", world.outcomes);
}
