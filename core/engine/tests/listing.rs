//! A listing may take longer than a request may go unanswered.

use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Reply};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::{Ask, Effect, Engine, ErrorKind, Event, Name, Options, Outcome, Time};

const LIMIT: Duration = Duration::from_secs(3);

/// An engine whose store answers what it is told to.
struct Talk {
    engine: Engine<&'static str>,
    now: Time,
    /// Whether the store tells its time.
    answers: bool,
    listings: Vec<RequestId>,
    unanswered: Vec<RequestId>,
    reconnects: usize,
    /// The claims that acquires asked for.
    claims: Vec<Duration>,
    ended: Vec<(&'static str, Outcome)>,
}

impl Talk {
    fn new() -> Talk {
        let options = Options { request_timeout: LIMIT, ..Options::default() };
        let mut talk = Talk {
            engine: Engine::new(options, [7; 32]).unwrap(),
            now: Time::from_nanos(1_000_000_000),
            answers: true,
            listings: Vec::new(),
            unanswered: Vec::new(),
            reconnects: 0,
            claims: Vec::new(),
            ended: Vec::new(),
        };
        talk.hear(Event::Up { now: 1 });
        talk
    }

    fn hear(&mut self, event: Event) {
        self.engine.handle(self.now, event);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Send(Request { id, op: Op::List { .. } }) => self.listings.push(id),
                Effect::Send(Request { id, op: Op::Time }) if self.answers => {
                    let result = Ok(Reply { now: 1, body: Body::Time });
                    self.engine.handle(self.now, Event::Reply { request: id, result });
                }
                Effect::Send(Request { id, op: Op::Acquire(ask) }) => {
                    self.claims.extend(ask.wait.map(|wait| wait.claim));
                    self.unanswered.push(id);
                }
                Effect::Send(Request { id, .. }) => self.unanswered.push(id),
                Effect::Reconnect(_) => self.reconnects += 1,
                Effect::Complete(call, outcome) => self.ended.push((call, outcome)),
                other => panic!("{other:?}"),
            }
        }
    }

    fn list(&mut self) {
        self.engine.list(self.now, "", 10, "list");
        self.drain();
    }

    /// Lets time pass, waking the engine whenever it wants.
    fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(next) = self.engine.next_wake().filter(|next| *next <= until) {
            self.now = self.now.max(next);
            self.engine.wake(self.now);
            self.drain();
            // A connection that was given up stays so here until the test says more.
            if self.engine.next_wake().is_some_and(|again| again <= self.now) {
                break;
            }
        }
        self.now = until;
    }

    fn cut(&mut self) {
        let lost: Vec<_> = self.listings.drain(..).chain(self.unanswered.drain(..)).collect();
        for request in lost {
            self.hear(Event::Reply { request, result: Err(Failure::Unknown) });
        }
        self.hear(Event::Down { reason: "cut".to_owned() });
    }

    fn unavailable(&self) -> usize {
        let kinds = self.ended.iter().filter_map(|(_, outcome)| match outcome {
            Outcome::Failed(error) => Some(error.kind()),
            _ => None,
        });
        kinds.filter(|kind| *kind == ErrorKind::Unavailable).count()
    }
}

#[test]
fn promise_13_a_long_listing_disturbs_nobody_and_ends() {
    let mut talk = Talk::new();
    talk.list();
    for _ in 0..20 {
        talk.pass(LIMIT);
        talk.engine.ping(talk.now, "ping");
        talk.drain();
    }
    assert_eq!((talk.reconnects, talk.listings.len()), (0, 1), "{:?}", talk.ended);
    assert!(talk.ended.iter().all(|(call, _)| *call == "ping"), "{:?}", talk.ended);
    let names = vec![Name::new("x").unwrap()];
    let result = Ok(Reply { now: 1, body: Body::List(names.clone()) });
    talk.hear(Event::Reply { request: talk.listings[0], result });
    assert_eq!(talk.ended.last(), Some(&("list", Outcome::Listed(names))));
    talk.pass(LIMIT * 10);
    assert_eq!((talk.ended.len(), talk.reconnects), (21, 0));
    assert_eq!(talk.engine.next_wake(), None, "nothing is left of it");
}

#[test]
fn promise_13_a_listing_ends_in_time_when_the_store_falls_silent() {
    let mut talk = Talk::new();
    talk.list();
    talk.pass(LIMIT * 2);
    talk.answers = false;
    // It answered for the last time half a bound ago, or later.
    talk.pass(LIMIT);
    assert_eq!(talk.unavailable(), 1, "{:?}", talk.ended);
    talk.pass(LIMIT);
    assert_eq!(talk.reconnects, 1, "the connection is given up");
}

#[test]
fn promise_13_a_listing_whose_connection_broke_begins_anew_or_ends_in_time() {
    let mut talk = Talk::new();
    talk.list();
    talk.pass(LIMIT * 2);
    talk.cut();
    talk.pass(LIMIT / 4);
    talk.hear(Event::Up { now: 1 });
    assert_eq!(talk.listings.len(), 1, "asked again");
    talk.pass(LIMIT * 5);
    assert!(talk.ended.is_empty(), "{:?}", talk.ended);
    talk.cut();
    talk.pass(LIMIT);
    assert_eq!(talk.unavailable(), 1);
}

#[test]
fn promise_13_other_requests_still_tell_of_a_dead_connection_beside_a_listing() {
    let mut talk = Talk::new();
    talk.answers = false;
    talk.list();
    talk.engine.ping(talk.now, "ping");
    talk.drain();
    talk.pass(LIMIT);
    assert_eq!((talk.reconnects, talk.unavailable()), (1, 2));
}

#[test]
fn a_long_listing_is_no_sign_of_a_slow_store() {
    let mut talk = Talk::new();
    talk.list();
    talk.pass(LIMIT * 20);
    let result = Ok(Reply { now: 1, body: Body::List(Vec::new()) });
    talk.hear(Event::Reply { request: talk.listings[0], result });
    let lock = talk.engine.lock(&Name::new("x").unwrap());
    talk.engine.acquire(talk.now, lock, Ask::local(1), "acquire").unwrap();
    talk.drain();
    assert_eq!(talk.claims, [Options::default().claim], "a hand-off to nobody lasts no longer");
    talk.pass(LIMIT);
    assert_eq!(talk.reconnects, 1, "nor is a dead connection found later");
}

#[test]
fn promise_13_a_connection_that_stood_still_for_long_is_doubted_in_time() {
    let mut talk = Talk::new();
    talk.answers = false;
    talk.engine.ping(talk.now, "before");
    talk.drain();
    // The server stands still for an hour, and answers.
    talk.pass(LIMIT * 1200);
    let result = Ok(Reply { now: 1, body: Body::Time });
    talk.hear(Event::Reply { request: talk.unanswered[0], result });
    assert_eq!(talk.reconnects, 1);
    // Then the connection dies, silently.
    talk.engine.ping(talk.now, "after");
    talk.drain();
    talk.pass(LIMIT * 20);
    assert_eq!(talk.reconnects, 2, "a minute is enough");
}
