//! What needs a clock of its own.

use std::time::Duration;

use fencelock_engine::reply::{Body, Standing};
use fencelock_engine::request::{Acquire, Op, Release};
use fencelock_engine::store::Caller;
use fencelock_engine::{ClientId, HoldId, Name};

use crate::store::State;

const DAY: u64 = 24 * 3600 * 1_000_000;

fn execute(state: &mut State, now: u64, op: &Op) -> Body {
    let caller = Caller { client: ClientId::new(1, "").unwrap(), polling: false };
    state.execute(now, &caller, op, &mut Vec::new()).unwrap().body
}

/// Gives the token.
fn acquire(state: &mut State, now: u64, lock: &Name, hold: u128) -> u64 {
    let ask = Acquire::new(lock.clone(), HoldId(hold), Duration::from_secs(30), now + 3_000_000);
    match execute(state, now, &Op::Acquire(ask)) {
        Body::Acquire(state) if state.standing == Standing::Granted => state.token,
        body => panic!("{body:?}"),
    }
}

/// Takes and gives back the lock; its holder was told.
fn use_once(state: &mut State, now: u64, lock: &Name, hold: u128, retention: Duration) {
    let used = acquire(state, now, lock, hold);
    let (lock, hold) = (lock.clone(), HoldId(hold));
    let release = Release { retention, ..Release::new(lock, hold, used) };
    execute(state, now + 10, &Op::Release(release));
}

fn name(at: u32) -> Name {
    Name::new(format!("lock-{at:06}")).unwrap()
}

fn listed(state: &mut State, now: u64) -> Vec<Name> {
    let all = Op::List { prefix: String::new(), limit: usize::MAX };
    match execute(state, now, &all) {
        Body::List(names) => names,
        body => panic!("{body:?}"),
    }
}

const SECOND: u64 = 1_000_000;
const START: u64 = 1_000 * DAY;

#[test]
fn names_that_are_used_once_leave_nothing_after_their_retention() {
    const NAMES: u32 = 100_000;
    let mut state = State::default();
    // 40,000 a second.
    let at = |name: u32| START + u64::from(name) * 25;
    let mut most = 0;
    for each in 0..NAMES {
        use_once(&mut state, at(each), &name(each), u128::from(each), Duration::from_secs(1));
        most = most.max(state.names());
    }
    // Those of the last second, and of one step of the sweep.
    assert!(most <= 40_100, "{most}");
    // One that has something to tell stays.
    let dead = Name::new("dead").unwrap();
    acquire(&mut state, at(NAMES), &dead, 1);
    let mut now = at(NAMES);
    while state.names() > 1 {
        now += SECOND;
        assert!(now < at(NAMES) + 3_600 * SECOND, "{} names stay", state.names());
        execute(&mut state, now, &Op::Time);
    }
    assert_eq!(listed(&mut state, now), std::slice::from_ref(&dead));
    // For a day after its holder was found to be gone.
    now += DAY + 120 * SECOND;
    execute(&mut state, now, &Op::Time);
    assert_eq!(state.names(), 0);
}

#[test]
fn with_the_last_client_go_all_names_that_have_nothing_to_tell() {
    let mut state = State::default();
    let sink = std::sync::Arc::new(fencelock_testkit::recorder::Recorder::default());
    let inboxes = [1, 2].map(|_| std::sync::Arc::new(crate::inbox::Inbox::new(sink.clone())));
    state.join("one", inboxes[0].clone());
    state.join("two", inboxes[1].clone());
    let (used, held) = (name(1), name(2));
    use_once(&mut state, START, &used, 1, Duration::from_secs(60));
    acquire(&mut state, START, &held, 2);
    state.leave(START + 20, "one", &inboxes[0]);
    assert_eq!(listed(&mut state, START + 20), [used, held.clone()]);
    state.leave(START + 30, "two", &inboxes[1]);
    assert_eq!(listed(&mut state, START + 30), [held]);
    assert_eq!(state.names(), 1);
}

#[test]
fn a_name_in_use_is_not_forgotten() {
    let mut state = State::default();
    let (hot, mut now) = (name(0), START);
    for round in 0..1_000 {
        now += SECOND;
        use_once(&mut state, now, &hot, round, Duration::from_secs(60));
        let Body::Inspect(Some(info)) = execute(&mut state, now, &Op::Inspect(hot.clone())) else {
            panic!("forgotten in round {round}");
        };
        assert_eq!(info.abandoned, fencelock_engine::reply::Abandoned::No);
    }
    assert_eq!(state.names(), 1);
}
