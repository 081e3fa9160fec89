//! A holder: how it is granted the lock, renewed, extended, and told.

use fencelock_engine::reply::{
    Abandoned, Body, Failure, Push, Refusal, RefusalKind, Released, Standing, State,
};
use fencelock_engine::request::Op;
use fencelock_engine::{Ask, Name, Options};

use crate::talk::{MS, SECOND, TOKEN, Talk, explicit, granted, leased, refused};

#[test]
fn the_watchdog_renews_a_third_of_the_way_and_again_soon_when_that_fails() {
    let mut talk = Talk::new("watchdog");
    talk.take(1, 1);
    talk.pass(MS * 40);
    let abandoned = Abandoned::Unknown;
    talk.say(State { abandoned, publish_failed: true, ..granted(TOKEN) });
    talk.pass(SECOND * 10);
    talk.pass(MS * 30);
    talk.say(granted(TOKEN));
    talk.pass(SECOND * 10);
    for failure in [Failure::Unknown, Failure::NotSent, refused(RefusalKind::Retry)] {
        talk.fail(failure);
        talk.pass(SECOND);
    }
    for _ in 0..5 {
        talk.fail(refused(RefusalKind::Again));
        talk.pass(MS * 5);
    }
    talk.pass(SECOND);
    talk.fail(refused(RefusalKind::Misconfigured));
    talk.pass(SECOND * 2);
    // Answered late, and shorter than asked.
    talk.say(State { lease: SECOND * 12, ..granted(TOKEN) });
    talk.pass(SECOND * 4);
    // A shorter word does not take back what was answered before.
    talk.say(State { lease: SECOND, ..granted(TOKEN) });
    talk.pass(SECOND);
    talk.body(Body::Time);
    talk.pass(SECOND * 20);
    talk.end();
}

#[test]
fn what_others_do_is_told_once_and_forgotten_when_they_go() {
    let mut talk = Talk::new("wanted");
    talk.take(1, 1);
    let hold = talk.hold();
    let name = Name::new("x").unwrap();
    talk.say(State { others_waiting: 2, ..granted(TOKEN) });
    talk.push(Push::Wanted { lock: name.clone(), hold });
    talk.pass(SECOND * 10);
    talk.say(granted(TOKEN));
    talk.pass(SECOND * 5);
    // A renewal is under way when somebody comes.
    talk.pass(SECOND * 5);
    talk.pass(MS * 10);
    talk.push(Push::Wanted { lock: name.clone(), hold });
    talk.pass(MS * 10);
    talk.say(granted(TOKEN));
    talk.take(2, 2);
    talk.release(1);
    talk.released(Released::Done);
    talk.end();
}

#[test]
fn a_hold_that_the_store_has_no_more_is_lost() {
    for (name, state) in [
        ("lost_gone", State::bare(Standing::Gone)),
        ("lost_released", State::bare(Standing::Released)),
        ("lost_queued", State { last: TOKEN, ..State::bare(Standing::Queued) }),
        ("lost_other_token", granted(TOKEN + 5_000)),
    ] {
        let mut talk = Talk::new(name);
        talk.take(1, 1);
        talk.say(granted(TOKEN));
        talk.take(2, 2);
        talk.pass(SECOND * 10);
        talk.say(state);
        talk.pass(MS * 10);
        while !talk.open.is_empty() {
            match talk.open[0].op {
                Op::Release(_) => talk.released(Released::Unknown),
                _ => talk.say(granted(TOKEN + 10_000)),
            }
        }
        talk.release(1);
        talk.end();
    }
}

#[test]
fn a_broken_hold_is_lost_and_one_that_waits_is_not() {
    let mut talk = Talk::new("broken");
    let name = Name::new("x").unwrap();
    talk.take(1, 1);
    let hold = talk.hold();
    talk.push(Push::Broken { lock: name.clone(), hold });
    talk.say(granted(TOKEN));
    talk.take(2, 1);
    talk.push(Push::Broken { lock: name.clone(), hold });
    talk.push(Push::Broken { lock: name, hold });
    talk.take(3, 1);
    talk.say(State { losses: 3, ..granted(TOKEN + 2_000) });
    talk.release(3);
    talk.end();
}

#[test]
fn leases_are_kept_extended_and_let_end() {
    let mut talk = Talk::new("leases");
    talk.acquire(1, leased(SECOND * 6, 1));
    talk.pass(MS * 20);
    talk.say(State { lease: SECOND * 6, ..granted(TOKEN) });
    // Levels: shorter, longer, the watchdog's, bounded.
    talk.acquire(2, leased(SECOND * 3, 1));
    talk.acquire(3, leased(SECOND * 12, 1));
    talk.pass(MS * 20);
    talk.say(State { lease: SECOND * 12, ..granted(TOKEN) });
    talk.extend(4, 2, SECOND * 9);
    talk.extend(5, 2, SECOND * 8 * 24 * 3600);
    talk.extend(6, 2, SECOND * 20);
    talk.pass(MS * 20);
    talk.say(State { lease: SECOND * 20, ..granted(TOKEN) });
    while !talk.open.is_empty() {
        talk.say(State { lease: SECOND * 20, ..granted(TOKEN) });
    }
    talk.acquire(7, Ask { max_hold: Some(SECOND * 8), ..Ask::local(1) });
    talk.take(8, 1);
    talk.pass(SECOND * 6);
    while !talk.open.is_empty() {
        talk.say(granted(TOKEN));
    }
    talk.release(8);
    talk.release(7);
    talk.pass(SECOND);
    talk.release(2);
    talk.pass(SECOND * 30);
    talk.release(1);
    talk.release(1);
    talk.end();
}

#[test]
fn an_extended_hold_is_renewed_for_as_long_as_any_other() {
    let mut talk = Talk::new("extended");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.extend(2, 1, SECOND * 90);
    talk.say(State { lease: SECOND * 90, ..granted(TOKEN) });
    talk.pass(SECOND * 31);
    talk.say(State { lease: SECOND * 59, ..granted(TOKEN) });
    talk.pass(SECOND * 10);
    talk.end();
}

/// Another hold of the owner may have shown the token under which it speaks as another holder.
#[test]
fn an_explicit_owners_lease_is_taken_back_under_the_first_token_that_is_free() {
    let mut talk = Talk::new("owner_keeps");
    talk.acquire(1, Ask { lease: Some(SECOND * 10), ..explicit("job") });
    talk.say(State { lease: SECOND * 10, ..granted(TOKEN) });
    talk.extend(2, 1, SECOND * 90);
    // The extend has failed by then.
    talk.pass(SECOND * 4);
    for _ in 0..2 {
        talk.say(State { lease: SECOND * 90, ..granted(TOKEN) });
    }
    talk.say(State { lease: MS * 5_960, ..granted(TOKEN) });
    talk.pass(SECOND * 8);
    talk.end();
}

#[test]
fn a_store_that_keeps_more_than_was_asked_is_told_at_once() {
    let mut talk = Talk::new("kept");
    talk.acquire(1, leased(SECOND * 2, 1));
    talk.say(State { lease: SECOND * 100, ..granted(TOKEN) });
    talk.say(State { lease: SECOND * 100, ..granted(TOKEN) });
    talk.take(2, 2);
    talk.release(1);
    while !talk.open.is_empty() {
        talk.say(granted(TOKEN));
    }
    talk.acquire(3, leased(SECOND * 200, 3));
    talk.release(2);
    talk.pass(MS * 10);
    while !talk.open.is_empty() {
        talk.say(State { lease: SECOND * 200, ..granted(TOKEN) });
    }
    talk.acquire(4, leased(SECOND * 2, 4));
    talk.release(3);
    talk.pass(MS * 10);
    talk.fail(Failure::Unknown);
    talk.pass(SECOND * 3);
    talk.end();
}

#[test]
fn a_session_is_looked_at_in_its_own_time() {
    let options = Options { local_run_grants: 2, ..Options::default() };
    let options = Options { keeping: fencelock_engine::Keeping::Session, ..options };
    let mut talk = Talk::with("session", options);
    let state = State { lease: SECOND * 4, end: TOKEN + 3, ..granted(TOKEN) };
    for owner in 1..8 {
        talk.take(owner, u64::from(owner));
    }
    talk.say(state);
    for call in 1..6 {
        talk.pass(MS * 3);
        talk.release(call);
        talk.pass(MS);
        while !talk.open.is_empty() {
            talk.say(state);
        }
    }
    talk.pass(SECOND * 5);
    talk.end();
}

/// As when the server had to be sent the script anew.
#[test]
fn a_renewal_that_the_store_wants_again_is_repeated_at_once_three_times() {
    let mut talk = Talk::new("renewal_again");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.pass(SECOND * 11);
    for _ in 0..5 {
        let message = "no".to_owned();
        let again = Refusal { kind: RefusalKind::Again, message };
        talk.body(Body::Beat(vec![Err(again)]));
        talk.pass(MS);
    }
    talk.pass(SECOND);
    talk.say(granted(TOKEN));
    talk.pass(SECOND * 11);
    talk.end();
}
