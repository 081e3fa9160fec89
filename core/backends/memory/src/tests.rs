//! What needs a clock of its own.

use std::time::Duration;

use fencelock_engine::reply::{Body, Standing};
use fencelock_engine::request::{Acquire, Mode, Op, Release};
use fencelock_engine::store::Caller;
use fencelock_engine::{ClientId, HoldId, Name};

use crate::store::State;

const DAY: u64 = 24 * 3600 * 1_000_000;

fn execute(state: &mut State, now: u64, op: &Op) -> Body {
    let caller = Caller { client: ClientId::new(1, "").unwrap(), polling: false };
    state.execute(now, &caller, op, &mut Vec::new()).unwrap().body
}

fn acquire(state: &mut State, now: u64, lock: &Name, hold: u128) {
    let ask = Acquire {
        lock: lock.clone(),
        hold: HoldId(hold),
        owner: None,
        mode: Mode::Exclusive,
        lease: Duration::from_secs(30),
        not_after: now + 3_000_000,
        floor: 0,
        wait: None,
        attach: None,
        after: None,
    };
    let body = execute(state, now, &Op::Acquire(ask));
    assert!(matches!(body, Body::Acquire(state) if state.standing == Standing::Granted));
}

#[test]
fn locks_idle_for_a_day_are_forgotten() {
    let mut state = State::default();
    let start = 100 * DAY;
    let name = |at: u32| Name::new(format!("lock-{at:04}")).unwrap();
    for at in 0..1_000 {
        acquire(&mut state, start, &name(at), u128::from(at));
        let release = Release {
            lock: name(at),
            hold: HoldId(u128::from(at)),
            used: 0,
            told: true,
            lost: false,
            losses: 0,
        };
        execute(&mut state, start, &Op::Release(release));
    }
    for at in 1_000..1_100 {
        acquire(&mut state, start + 2 * DAY, &name(at), u128::from(at));
    }
    let all = Op::List { prefix: String::new(), limit: usize::MAX };
    let Body::List(names) = execute(&mut state, start + 2 * DAY, &all) else {
        panic!("no list");
    };
    assert_eq!(names, (1_000..1_100).map(name).collect::<Vec<_>>());
}
