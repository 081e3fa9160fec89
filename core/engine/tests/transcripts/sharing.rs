//! Callers of one client: how the lock goes from hand to hand, and when it goes to others first.

use std::time::Duration;

use fencelock_engine::reply::{Failure, Push, RefusalKind, Released, Standing, State};
use fencelock_engine::{Name, Options, Patience};

use crate::talk::{MS, SECOND, TOKEN, Talk, granted, leased, patience, queued, refused};

/// Held by the first of so many.
fn holding(name: &'static str, options: Options, callers: u32, state: State) -> Talk {
    let mut talk = Talk::with(name, options);
    for owner in 1..=callers {
        talk.take(owner, u64::from(owner));
    }
    talk.say(state);
    talk
}

fn runs(grants: u32, time: Duration) -> Options {
    Options { local_run_grants: grants, local_run_time: time, ..Options::default() }
}

#[test]
fn a_run_ends_after_so_many_grants() {
    let others = State { others_waiting: 1, ..granted(TOKEN) };
    let mut talk = holding("run_grants", runs(2, SECOND), 5, others);
    for call in 1..4 {
        talk.pass(MS);
        talk.release(call);
    }
    // The release went along with the acquire.
    talk.pass(MS);
    talk.say(queued(77, 1));
    talk.pass(SECOND);
    talk.say(granted(TOKEN + 2_000));
    talk.release(4);
    talk.end();
}

#[test]
fn a_run_counts_only_while_others_wait() {
    let mut talk = holding("run_alone", runs(2, SECOND), 6, granted(TOKEN));
    let (lock, hold) = (Name::new("x").unwrap(), talk.seen[0]);
    for call in 1..6 {
        if call == 3 {
            talk.push(Push::Wanted { lock: lock.clone(), hold });
        }
        talk.pass(MS);
        talk.release(call);
    }
    talk.end();
}

#[test]
fn a_lock_whose_acquire_may_still_come_is_left_before_it_is_queued_for_again() {
    let mut talk = Talk::with("run_exposed", runs(1, SECOND));
    for owner in 1..=3 {
        talk.take(owner, u64::from(owner));
    }
    talk.fail(Failure::Unknown);
    talk.pass(MS * 20);
    talk.say(State { others_waiting: 1, ..granted(TOKEN) });
    talk.release(1);
    // A copy of the acquire would hold what a release along with the next one ended.
    talk.release(2);
    talk.released(Released::Done);
    talk.pass(SECOND);
    talk.end();
}

#[test]
fn a_run_ends_after_so_long_and_before_latecomers() {
    for (name, span) in [("run_in_time", MS * 9), ("run_at_end", MS * 10)] {
        let mut talk = holding(name, runs(64, MS * 10), 3, granted(TOKEN));
        let (lock, hold) = (Name::new("x").unwrap(), talk.seen[0]);
        talk.pass(MS * 3);
        talk.push(Push::Wanted { lock, hold });
        talk.pass(span);
        talk.release(1);
        talk.end();
    }
    for (name, held) in [("late_short", MS * 5), ("late_long", MS * 6)] {
        let mut talk = holding(name, runs(64, MS * 10), 1, granted(TOKEN));
        let (lock, hold) = (Name::new("x").unwrap(), talk.seen[0]);
        talk.pass(MS);
        talk.push(Push::Wanted { lock, hold });
        talk.pass(MS);
        talk.take(2, 2);
        talk.pass(held - MS * 2);
        talk.release(1);
        talk.pass(MS * 2);
        talk.take(3, 3);
        talk.pass(MS * 2);
        talk.release(2);
        talk.end();
    }
}

#[test]
fn no_run_at_all_when_options_say_so() {
    let mut talk = holding("run_none", runs(0, MS * 10), 2, granted(TOKEN));
    talk.release(1);
    talk.end();
}

#[test]
fn what_goes_along_with_an_acquire_is_released_whatever_becomes_of_that() {
    for (name, end) in
        [("after_late", 0), ("after_unknown", 1), ("after_refused", 2), ("after_gone", 3)]
    {
        let others = State { others_waiting: 1, ..granted(TOKEN) };
        let mut talk = holding(name, runs(0, SECOND), 2, others);
        talk.release(1);
        match end {
            0 => talk.say(State::bare(Standing::Late)),
            1 => talk.fail(Failure::Unknown),
            2 => talk.fail(refused(RefusalKind::Retry)),
            _ => {
                talk.cancel(2);
                talk.say(State::bare(Standing::Late));
            }
        }
        talk.pass(SECOND);
        talk.pass(SECOND * 3);
        while !talk.open.is_empty() {
            match talk.open[0].op {
                fencelock_engine::request::Op::Release(_) => talk.released(Released::Done),
                _ => talk.say(granted(TOKEN + 3_000)),
            }
        }
        talk.end();
    }
}

#[test]
fn a_block_of_tokens_is_topped_up_before_it_ends() {
    let state = State { end: TOKEN + 2, ..granted(TOKEN) };
    let mut talk = holding("block", runs(64, SECOND), 6, state);
    for call in 1..4 {
        talk.pass(MS);
        talk.release(call);
    }
    talk.say(State { end: TOKEN + 1_026, ..granted(TOKEN) });
    talk.release(4);
    talk.end();
}

#[test]
fn tokens_do_not_outrun_the_stores_clock() {
    // Of a clock that stepped back a little, or far.
    for (name, ahead) in
        [("clock_level", 0), ("clock_at", 1_000_000 + 1_024), ("clock_back", 1_003_000)]
    {
        let token = TOKEN + ahead;
        let mut talk = holding(name, runs(64, SECOND), 4, granted(token));
        for call in 1..3 {
            talk.release(call);
            talk.say(State { end: token + 2_047, ..granted(token) });
        }
        talk.end();
    }
}

#[test]
fn news_must_be_fresh_and_time_enough_left_for_the_next() {
    for (name, span) in [("fresh", MS * 990), ("stale", MS * 1_001), ("half", MS * 9_800)] {
        let mut talk = holding(name, runs(64, SECOND), 2, granted(TOKEN));
        talk.pass(span);
        while !talk.open.is_empty() {
            talk.say(granted(TOKEN));
        }
        talk.release(1);
        talk.pass(MS * 10);
        talk.say(granted(TOKEN));
        talk.end();
    }
}

#[test]
fn a_grant_that_was_long_under_way_is_renewed_before_it_is_given() {
    for (name, late) in
        [("grant_late", SECOND * 19), ("grant_later", SECOND * 20), ("grant_over", SECOND * 31)]
    {
        let mut talk =
            Talk::with(name, Options { request_timeout: SECOND * 60, ..Options::default() });
        talk.take(1, 1);
        talk.pass(late);
        talk.say(granted(TOKEN));
        talk.pass(MS * 10);
        talk.say(granted(TOKEN));
        talk.end();
    }
}

#[test]
fn branches_of_an_owner_are_served_together() {
    let mut talk = Talk::new("branches");
    for (call, owner) in [(1, 1), (2, 2), (3, 2), (4, 3), (5, 2)] {
        talk.take(call, owner);
    }
    talk.acquire(6, leased(SECOND * 100, 2));
    talk.acquire(7, patience(Patience::Try, 2));
    talk.say(granted(TOKEN));
    talk.pass(MS);
    talk.release(1);
    talk.pass(MS);
    talk.say(State { lease: SECOND * 100, ..granted(TOKEN) });
    for call in [2, 3, 5, 6] {
        talk.release(call);
    }
    talk.release(4);
    talk.released(Released::Done);
    talk.end();
}

#[test]
fn a_re_entry_that_waits_outlives_its_outer_hold() {
    let mut talk = Talk::new("join");
    talk.acquire(1, leased(SECOND, 1));
    talk.say(State { lease: SECOND, ..granted(TOKEN) });
    talk.take(2, 2);
    talk.acquire(3, leased(SECOND * 9, 1));
    talk.acquire(4, Ask1::TRY);
    talk.extend(5, 1, SECOND * 5);
    talk.release(1);
    talk.pass(MS);
    while !talk.open.is_empty() {
        talk.say(granted(TOKEN));
    }
    talk.release(2);
    talk.end();
}

struct Ask1;
impl Ask1 {
    const TRY: fencelock_engine::Ask = fencelock_engine::Ask {
        owner: fencelock_engine::Owner::Local(1),
        mode: fencelock_engine::request::Mode::Exclusive,
        adopt: false,
        lease: Some(Duration::from_secs(8)),
        max_hold: None,
        patience: Patience::Try,
        attach: None,
    };
}
