//! An engine on a store that keeps holds for as long as a session lives.

use std::time::Duration;

use fencelock_engine::reply::{Body, Reply, Standing, State};
use fencelock_engine::request::{Op, Request};
use fencelock_engine::{
    Acquired, Ask, Effect, Engine, Event, Grant, Keeping, LockKey, Name, Options, Outcome, Time,
};

const SESSION: Duration = Duration::from_secs(2);

struct Talk {
    engine: Engine<u32>,
    lock: LockKey,
    now: Time,
    /// What the store answers next.
    others: u32,
    token: u64,
    end: u64,
    sent: Vec<Op>,
    granted: Vec<(u32, Grant)>,
}

impl Talk {
    fn new(options: Options) -> Talk {
        let options = Options { keeping: Keeping::Session, ..options };
        let mut engine = Engine::new(options, [7; 32]).unwrap();
        let lock = engine.lock(&Name::new("x").unwrap());
        let now = Time::from_nanos(1_000_000_000);
        engine.handle(now, Event::Up { now: 1 });
        let (sent, granted) = (Vec::new(), Vec::new());
        Talk { engine, lock, now, others: 0, token: 1 << 60, end: (1 << 60) + 1023, sent, granted }
    }

    /// Answers all that is sent, as a session would, until there is nothing more to do.
    fn drain(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Send(Request { id, op }) => {
                    let state = State {
                        token: self.token,
                        end: self.end,
                        lease: SESSION,
                        others_waiting: self.others,
                        ..State::bare(Standing::Granted)
                    };
                    let body = match &op {
                        Op::Acquire(_) => Body::Acquire(state),
                        Op::Beat(beats) => Body::Beat(vec![Ok(state); beats.len()]),
                        other => panic!("{other:?}"),
                    };
                    self.sent.push(op);
                    let reply = Reply { now: 1, body };
                    self.engine.handle(self.now, Event::Reply { request: id, result: Ok(reply) });
                }
                Effect::Complete(call, Outcome::Granted(grant)) => self.granted.push((call, grant)),
                _ => {}
            }
        }
    }

    fn acquire(&mut self, owner: u32) {
        let ask = Ask::local(u64::from(owner));
        let acquired = self.engine.acquire(self.now, self.lock, ask, owner).unwrap();
        assert!(matches!(acquired, Acquired::Pending(_)));
        self.drain();
    }

    fn release(&mut self) {
        let (_, grant) = self.granted.pop().unwrap();
        let _ = self.engine.release(self.now, grant.hold, None).unwrap();
        self.drain();
    }

    fn beats(&self) -> usize {
        self.sent.iter().filter(|op| matches!(op, Op::Beat(_))).count()
    }

    /// Whether the last request released and queued again.
    fn requeued(&self) -> bool {
        matches!(self.sent.last(), Some(Op::Acquire(acquire)) if acquire.after.is_some())
    }
}

#[test]
fn promise_07_a_session_shorter_than_the_lease_is_renewed_in_its_own_time() {
    let mut talk = Talk::new(Options::default());
    talk.acquire(1);
    let hold = talk.granted[0].1.hold;
    let left = talk.engine.remaining(talk.now, hold).unwrap();
    assert!(left <= SESSION && left > SESSION * 9 / 10, "{left:?}");
    for _ in 0..20 {
        let next = talk.engine.next_wake().unwrap();
        assert!(next <= talk.now + SESSION / 2, "a renewal is due in time");
        talk.now = talk.now.max(next);
        talk.engine.wake(talk.now);
        talk.drain();
        assert!(talk.engine.remaining(talk.now, hold).is_some_and(|left| left > SESSION / 2));
    }
    assert!(talk.beats() >= 10);
}

#[test]
fn promise_10_the_store_is_looked_at_before_each_local_run() {
    let mut talk = Talk::new(Options { local_run_grants: 3, ..Options::default() });
    for owner in 1..=12 {
        talk.acquire(owner);
    }
    let mut looks = Vec::new();
    for _ in 0..9 {
        talk.release();
        looks.push(talk.beats());
        assert!(!talk.requeued(), "nobody waits");
    }
    assert_eq!(looks, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    // Somebody came: that is seen with the next look, and the lock goes to the queue's end.
    talk.others = 1;
    talk.release();
    assert!(talk.requeued(), "{:?}", talk.sent.last());
}

#[test]
fn promise_02_a_block_of_tokens_that_is_used_up_is_not_extended() {
    let mut talk = Talk::new(Options { local_run_grants: 1_000, ..Options::default() });
    talk.end = talk.token + 1;
    for owner in 1..=3 {
        talk.acquire(owner);
    }
    talk.release();
    let (_, second) = talk.granted.last().unwrap();
    assert_eq!(second.token.get(), talk.token + 1, "far above any clock");
    talk.token += 1024;
    talk.end += 1024;
    talk.release();
    assert!(talk.requeued());
    let (_, third) = talk.granted.last().unwrap();
    assert_eq!(third.token.get(), talk.token);
}
