//! A waiter: its place, its heartbeats, and how the lock comes to it.

use fencelock_engine::reply::{Failure, Push, RefusalKind, Released, Standing, State};
use fencelock_engine::{Ask, Name, Options, Patience, Time};

use crate::talk::{MS, SECOND, TOKEN, Talk, explicit, granted, leased, patience, queued, refused};

fn wanting(name: &'static str, state: State) -> Talk {
    let mut talk = Talk::new(name);
    talk.take(1, 1);
    talk.pass(MS * 20);
    talk.say(state);
    talk
}

#[test]
fn a_waiter_shows_itself_in_time_for_its_turn() {
    let mut talk = wanting("queue", State { publish_failed: true, ..queued(77, 5_000) });
    for ahead in [4_000, 3_990, 3_990, 500, 40, 2, 1] {
        talk.pass(SECOND * 12);
        talk.pass(MS * 7);
        talk.say(queued(77, ahead));
    }
    talk.pass(SECOND * 3);
    talk.say(State { expires_in: Some(MS * 300), ..queued(77, 0) });
    talk.pass(SECOND);
    talk.say(State { expires_in: Some(SECOND * 20), ..queued(77, 0) });
    talk.pass(SECOND * 2);
    talk.say(State { others_waiting: 3, losses: 2, ..granted(TOKEN) });
    talk.end();
}

#[test]
fn what_is_due_soon_goes_along_with_a_heartbeat_and_what_is_due_later_does_not() {
    let mut talk = Talk::new("together");
    let quarter = Options::default().heartbeat() / 4;
    for (call, owner) in [(1, "first"), (2, "soon"), (3, "later")] {
        talk.acquire(call, explicit(owner));
        talk.say(queued(70 + u64::from(call), 0));
        talk.pass(quarter);
    }
    talk.pass(SECOND);
    talk.end();
}

#[test]
fn a_short_claim_is_looked_after_more_often() {
    let mut talk = Talk::new("short_claim");
    talk.acquire(1, leased(MS * 600, 1));
    talk.say(queued(5, 3));
    talk.pass(SECOND);
    talk.say(queued(5, 1));
    talk.pass(SECOND);
    let hold = talk.hold();
    talk.push_granted(hold, TOKEN, 0);
    talk.say(State { lease: MS * 600, ..granted(TOKEN) });
    talk.pass(SECOND);
    talk.end();
}

#[test]
fn a_push_counts_from_the_last_answer() {
    // After so long, whether a beat is under way, with which token.
    for (name, span, token) in [
        ("push_soon", MS * 300, TOKEN),
        ("push_in_flight", MS * 1_010, TOKEN),
        ("push_late", MS * 2_980, TOKEN),
        ("push_too_late", MS * 4_000, TOKEN),
        ("push_echo", MS * 300, TOKEN - 1),
    ] {
        let mut talk = Talk::new(name);
        talk.take(1, 1);
        let hold = talk.hold();
        talk.say(queued(77, 2));
        talk.pass(span);
        talk.push_granted(hold, token, 3);
        talk.push_granted(hold, token, 4);
        talk.pass(MS * 30);
        talk.say(State { last: TOKEN - 1, ..queued(77, 0) });
        talk.pass(MS * 30);
        talk.say(State { others_waiting: 1, ..granted(TOKEN) });
        talk.take(2, 2);
        talk.release(1);
        talk.end();
    }
}

#[test]
fn a_push_that_comes_before_the_answer_waits_for_it() {
    for (name, state) in [
        ("early_queued", queued(77, 0)),
        ("early_granted", granted(TOKEN)),
        ("early_old", State { last: TOKEN, ..queued(77, 0) }),
    ] {
        let mut talk = Talk::new(name);
        talk.take(1, 1);
        let hold = talk.hold();
        talk.push_granted(hold, TOKEN, 1);
        talk.pass(MS * 10);
        talk.say(state);
        talk.pass(MS * 10);
        talk.say(granted(TOKEN));
        talk.end();
    }
}

#[test]
fn a_waiter_that_is_called_looks_at_once() {
    let mut talk = wanting("called", queued(77, 2));
    talk.pass(MS * 100);
    talk.push(Push::Changed { lock: Name::new("x").unwrap(), hold: talk_hold(&talk) });
    talk.pass(MS * 10);
    talk.say(granted(TOKEN));
    talk.end();
}

/// The hold of the only entry.
fn talk_hold(talk: &Talk) -> fencelock_engine::id::HoldId {
    talk.seen[0]
}

#[test]
fn a_waiter_that_the_store_forgot_queues_again_at_its_place() {
    let mut talk = wanting("forgotten", queued(77, 2));
    for standing in [Standing::Gone, Standing::Released, Standing::Contended] {
        talk.pass(SECOND * 2);
        talk.say(State::bare(standing));
        talk.say(queued(77, 1));
    }
    // Its acquire may still be under way: it keeps its id.
    talk.pass(SECOND * 2);
    talk.say(State::bare(Standing::Gone));
    talk.fail(Failure::Unknown);
    talk.pass(MS * 20);
    talk.say(queued(77, 1));
    talk.pass(SECOND * 2);
    talk.say(State::bare(Standing::Gone));
    talk.pass(SECOND);
    talk.end();
}

#[test]
fn an_acquire_that_the_store_wants_again_is_repeated_at_once_three_times() {
    let mut talk = Talk::new("acquire_again");
    talk.take(1, 1);
    for _ in 0..4 {
        talk.fail(refused(RefusalKind::Again));
    }
    talk.pass(SECOND);
    talk.say(granted(TOKEN));
    talk.end();
}

#[test]
fn an_acquire_is_repeated_until_it_is_answered() {
    let mut talk = Talk::new("repeated");
    talk.take(1, 1);
    for state in [Standing::Late, Standing::Late, Standing::Late, Standing::Late] {
        talk.pass(MS * 50);
        talk.say(State::bare(state));
    }
    for state in [Standing::Released, Standing::Gone, Standing::Contended] {
        talk.pass(SECOND);
        talk.say(State::bare(state));
    }
    for failure in [Failure::NotSent, Failure::Unknown, refused(RefusalKind::Retry)] {
        talk.pass(SECOND);
        talk.fail(failure);
    }
    talk.pass(SECOND);
    for _ in 0..6 {
        talk.fail(refused(RefusalKind::Again));
    }
    talk.pass(SECOND);
    talk.say(State::bare(Standing::Contended));
    talk.pass(SECOND);
    talk.fail(refused(RefusalKind::Misconfigured));
    talk.take(2, 1);
    talk.fail(refused(RefusalKind::Unsupported));
    talk.end();
}

#[test]
fn bounds_end_waits_and_say_why() {
    let mut talk = Talk::new("bounds");
    let until = |talk: &Talk, span| Patience::Until(talk.time() + span);
    // No answer in time; less than a round trip; the past.
    let (long, short) = (until(&talk, SECOND * 2), until(&talk, MS * 40));
    talk.acquire(1, patience(long, 1));
    talk.acquire(2, patience(short, 2));
    talk.acquire(3, patience(Patience::Until(Time::ZERO), 3));
    talk.pass(SECOND * 3);
    talk.say(queued(7, 1));
    talk.released(Released::Left);
    // Answered: not free in time; what the store refuses is said.
    let bound = until(&talk, MS * 500);
    talk.acquire(4, patience(bound, 4));
    talk.say(queued(7, 1));
    talk.pass(SECOND);
    talk.released(Released::Left);
    let bound = until(&talk, MS * 500);
    talk.acquire(5, patience(bound, 5));
    talk.fail(refused(RefusalKind::Retry));
    talk.pass(MS * 100);
    talk.fail(refused(RefusalKind::Retry));
    talk.pass(SECOND);
    // Tries.
    talk.acquire(6, patience(Patience::Try, 6));
    talk.say(State {
        expires_in: Some(SECOND),
        others_waiting: 1,
        ..State::bare(Standing::Contended)
    });
    talk.acquire(7, patience(Patience::Try, 7));
    talk.take(8, 8);
    talk.say(State::bare(Standing::Contended));
    talk.acquire(9, patience(Patience::Try, 9));
    talk.say(queued(9, 4));
    talk.pass(SECOND);
    talk.end();
}

#[test]
fn a_cancelled_wait_leaves_the_store() {
    let mut talk = Talk::new("cancelled");
    talk.take(1, 1);
    talk.take(2, 2);
    talk.cancel(1);
    talk.cancel(1);
    talk.pass(MS * 10);
    talk.cancel(2);
    talk.say(granted(TOKEN));
    talk.released(Released::Done);
    talk.take(3, 3);
    talk.say(queued(77, 2));
    talk.cancel(3);
    talk.released(Released::Left);
    talk.take(4, 4);
    talk.fail(Failure::NotSent);
    talk.cancel(4);
    talk.take(5, 5);
    talk.say(queued(78, 0));
    talk.pass(SECOND);
    talk.cancel(5);
    talk.say(granted(TOKEN + 2_000));
    talk.released(Released::Done);
    talk.end();
}

#[test]
fn explicit_owners_wait_each_by_itself() {
    let mut talk = Talk::new("explicit");
    talk.acquire(1, explicit("one"));
    talk.acquire(2, explicit("one"));
    talk.acquire(3, Ask { patience: Patience::Try, ..explicit("two") });
    talk.say(granted(TOKEN));
    let attach = talk.token;
    talk.acquire(4, Ask { attach, ..explicit("one") });
    talk.acquire(5, Ask { attach, ..Ask::local(5) });
    talk.say(queued(77, 0));
    talk.say(State::bare(Standing::Contended));
    talk.say(State::bare(Standing::NotHeld));
    talk.pass(MS * 100);
    talk.release(1);
    talk.cancel(2);
    talk.released(Released::Done);
    talk.released(Released::Left);
    talk.end();
}

#[test]
fn no_more_calls_wait_than_options_allow() {
    let mut talk = Talk::with("many", Options { max_waiters: 2, ..Options::default() });
    for owner in 1..4 {
        talk.take(owner, u64::from(owner));
    }
    talk.end();
}
