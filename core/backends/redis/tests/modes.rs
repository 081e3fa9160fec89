//! Readers, writers and permits of several clients over a real server.

mod common;

use std::time::Duration;

use common::{Client, acquire, beat, hold, name, release};
use fencelock_engine::HoldId;
use fencelock_engine::reply::{
    Body, Failure, LockInfo, Push, RefusalKind, Released, Standing, State,
};
use fencelock_engine::request::{Acquire, Mode, Op, Release};
use fencelock_testkit::{RedisServer, skip_servers};

const READ: Mode = Mode::Shared;
const WRITE: Mode = Mode::Exclusive;

fn permits(count: u32, of: u32) -> Mode {
    Mode::Permits { count, of }
}

fn is_again(refused: &Result<Body, Failure>) -> bool {
    matches!(refused, Err(Failure::Refused(it)) if it.kind == RefusalKind::Again)
}

impl Client {
    /// Asks again when it is told to, as an engine does.
    fn answered(&self, op: &Op) -> Result<Body, Failure> {
        let ask = || match self.call(op.clone())?.body {
            Body::Beat(mut states) => {
                let state = states.remove(0).map_err(Failure::Refused)?;
                Ok(Body::Beat(vec![Ok(state)]))
            }
            body => Ok(body),
        };
        for _ in 0..3 {
            let answer = ask();
            if !is_again(&answer) {
                return answer;
            }
        }
        panic!("told three times to ask again: {op:?}")
    }

    fn take(&self, lock: &str, mode: Mode, wait: bool) -> (HoldId, State) {
        let hold = hold();
        let Op::Acquire(ask) = acquire(lock, hold, wait) else { panic!() };
        match self.answered(&Op::Acquire(Acquire { mode, ..ask })) {
            Ok(Body::Acquire(state)) => (hold, state),
            other => panic!("{other:?}"),
        }
    }

    fn taken(&self, lock: &str, mode: Mode) -> (HoldId, u64) {
        let (hold, state) = self.take(lock, mode, false);
        assert_eq!(state.standing, Standing::Granted, "{state:?}");
        (hold, state.token)
    }

    fn queued(&self, lock: &str, mode: Mode) -> HoldId {
        let (hold, state) = self.take(lock, mode, true);
        assert_eq!(state.standing, Standing::Queued, "{state:?}");
        hold
    }

    fn give_back(&self, lock: &str, hold: HoldId, mode: Mode, used: u64) -> Released {
        let Op::Release(release) = release(lock, hold) else { panic!() };
        match self.answered(&Op::Release(Release { mode, used, ..release })) {
            Ok(Body::Release(released)) => released,
            other => panic!("{other:?}"),
        }
    }

    fn standing(&self, lock: &str, hold: HoldId, mode: Mode) -> Standing {
        let Op::Beat(mut beats) = beat(&[(lock, hold)]) else { panic!() };
        beats[0].mode = mode;
        match self.answered(&Op::Beat(beats)) {
            Ok(Body::Beat(states)) => states[0].as_ref().unwrap().standing,
            other => panic!("{other:?}"),
        }
    }

    fn look(&self, lock: &str) -> LockInfo {
        match self.answered(&Op::Inspect(name(lock))) {
            Ok(Body::Inspect(Some(info))) => info,
            other => panic!("{other:?}"),
        }
    }

    fn await_granted(&self, wanted: HoldId) -> u64 {
        self.sink.find("the grant", |event| match event {
            fencelock_engine::event::Event::Push(Push::Granted { hold, token, .. })
                if *hold == wanted =>
            {
                Some(*token)
            }
            _ => None,
        })
    }

    fn await_wanted(&self, held: HoldId) {
        self.sink.find("that it is wanted", |event| match event {
            fencelock_engine::event::Event::Push(Push::Wanted { hold, .. }) => {
                (*hold == held).then_some(())
            }
            _ => None,
        });
    }
}

fn layout(server: &RedisServer, lock: &str) -> String {
    let key = format!("fl:{{{lock}}}");
    match server.cli(&["HGET", &key, "v"]).unwrap() {
        redis::Value::BulkString(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn readers_of_several_clients_hold_together_and_a_writer_follows_them() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let (a, b, c) = (Client::to(&server), Client::to(&server), Client::to(&server));

    let (first, one) = a.taken("job", READ);
    let (second, two) = b.taken("job", READ);
    assert!(two > one);
    assert_eq!(layout(&server, "job"), "2");
    let writer = c.queued("job", WRITE);
    a.await_wanted(first);
    b.await_wanted(second);
    assert_eq!(c.take("job", READ, false).1.standing, Standing::Contended, "past a writer");
    let readers = [a.queued("job", READ), b.queued("job", READ)];
    assert_eq!(c.standing("job", writer, WRITE), Standing::Queued);
    let info = a.look("job");
    assert_eq!(info.holds.iter().map(|it| it.hold).collect::<Vec<_>>(), [first, second]);
    assert!(info.holds.iter().all(|it| it.mode == READ));
    let waits: Vec<_> = info.waiters.iter().map(|it| it.mode).collect();
    assert_eq!(waits, [WRITE, READ, READ]);

    assert_eq!(a.give_back("job", first, READ, one), Released::Done);
    assert_eq!(b.give_back("job", second, READ, two), Released::Done);
    let three = c.await_granted(writer);
    assert!(three > two);
    assert_eq!(c.standing("job", writer, WRITE), Standing::Granted);
    assert_eq!(c.give_back("job", writer, WRITE, three), Released::Done);
    for (client, hold) in [&a, &b].into_iter().zip(readers) {
        let token = client.await_granted(hold);
        assert!(token > three);
        assert_eq!(client.give_back("job", hold, READ, token), Released::Done);
    }
    assert_eq!(layout(&server, "job"), "1");
    let (last, four) = c.taken("job", WRITE);
    assert!(four > three);
    assert_eq!(c.give_back("job", last, WRITE, four), Released::Done);
}

#[test]
fn permits_of_several_clients_are_counted() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let (a, b) = (Client::to(&server), Client::to(&server));

    let (first, one) = a.taken("pool", permits(2, 3));
    let large = b.queued("pool", permits(2, 3));
    let tried = b.take("pool", permits(1, 3), false).1;
    assert_eq!(tried.standing, Standing::Contended, "past the larger one");
    let other = acquire("pool", hold(), false);
    let Op::Acquire(other) = other else { panic!() };
    let another = RefusalKind::OtherPermits { of: 3 };
    let kinds = [another, RefusalKind::Misconfigured, RefusalKind::Misconfigured];
    for (mode, kind) in [permits(1, 4), READ, WRITE].into_iter().zip(kinds) {
        match b.answered(&Op::Acquire(Acquire { mode, ..other.clone() })) {
            Err(Failure::Refused(refused)) => {
                assert_eq!(refused.kind, kind);
                assert!(refused.message.contains('3'), "{}", refused.message);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(a.give_back("pool", first, permits(2, 3), one), Released::Done);
    assert_eq!(a.give_back("pool", first, permits(2, 3), one), Released::Done, "once");
    let two = b.await_granted(large);
    let (third, _) = a.taken("pool", permits(1, 3));
    assert_eq!(a.take("pool", permits(1, 3), false).1.standing, Standing::Contended);
    assert_eq!(b.give_back("pool", large, permits(2, 3), two), Released::Done);
    assert_eq!(a.give_back("pool", third, permits(1, 3), 0), Released::Done);
    // Free, the name may say another number, or become a lock's.
    let (fourth, _) = b.taken("pool", permits(4, 4));
    assert_eq!(b.give_back("pool", fourth, permits(4, 4), 0), Released::Done);
    b.taken("pool", WRITE);
}

#[test]
fn what_an_eviction_takes_of_a_shared_lock_is_found_again_or_lost_alone() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let held: Vec<_> = (0..3).map(|_| client.taken("job", READ).0).collect();
    let all = |standing| {
        for hold in &held {
            assert_eq!(client.standing("job", *hold, READ), standing);
        }
    };
    server.cli(&["DEL", "fl:{job}:d"]).unwrap();
    all(Standing::Granted);
    assert_eq!(server.cli(&["ZCARD", "fl:{job}:d"]), Ok(redis::Value::Int(6)));
    // Every key goes by itself, later.
    for end in ["", ":h", ":d"] {
        let left = server.cli(&["PTTL", &format!("fl:{{job}}{end}")]).unwrap();
        let redis::Value::Int(left) = left else { panic!("{left:?}") };
        assert!(Duration::from_millis(left.unsigned_abs()) > Duration::from_secs(23 * 3_600));
    }
    let waits = client.queued("job", WRITE);
    server.cli(&["DEL", "fl:{job}:h"]).unwrap();
    assert_eq!(client.standing("job", waits, WRITE), Standing::Granted, "its readers are lost");
    all(Standing::Gone);
}
