//! Releases, what may still be under way, and the end of a client.

use fencelock_engine::reply::{Abandoned, Failure, Push, RefusalKind, Released, State};
use fencelock_engine::{Name, Options};

use crate::talk::{MS, SECOND, TOKEN, Talk, granted, queued, refused};

fn releasing(name: &'static str) -> Talk {
    let mut talk = Talk::new(name);
    talk.take(1, 1);
    talk.say(State { losses: 4, abandoned: Abandoned::Yes, ..granted(TOKEN) });
    talk.pass(MS * 10);
    talk.release(1);
    talk
}

#[test]
fn a_release_ends_as_the_store_says() {
    for (name, how) in [
        ("released_done", Released::Done),
        ("released_left", Released::Left),
        ("released_unknown", Released::Unknown),
    ] {
        let mut talk = releasing(name);
        talk.pass(MS * 10);
        talk.released(how);
        talk.end();
    }
}

#[test]
fn a_release_is_repeated_and_what_is_unknown_then_was_done_before() {
    let mut talk = releasing("release_repeated");
    talk.fail(Failure::Unknown);
    talk.pass(MS * 100);
    talk.released(Released::Unknown);
    talk.end();
    // One that never left is none.
    let mut talk = releasing("release_not_sent");
    talk.fail(Failure::NotSent);
    talk.pass(MS * 100);
    talk.fail(refused(RefusalKind::Retry));
    talk.pass(MS * 100);
    for _ in 0..5 {
        talk.fail(refused(RefusalKind::Again));
    }
    talk.pass(MS * 500);
    talk.released(Released::Unknown);
    talk.end();
    let mut talk = releasing("release_refused");
    talk.fail(refused(RefusalKind::Misconfigured));
    talk.end();
    let mut talk = releasing("release_unanswered");
    talk.pass(SECOND * 2);
    talk.fail(Failure::Unknown);
    talk.pass(SECOND * 2);
    talk.released(Released::Done);
    talk.end();
}

#[test]
fn an_acquire_that_may_still_come_is_waited_out() {
    let mut talk = Talk::new("exposed");
    talk.take(1, 1);
    talk.pass(MS * 50);
    talk.fail(Failure::Unknown);
    talk.cancel(1);
    talk.pass(MS * 50);
    // The store's clock reads less than what the acquire allowed: once more, later.
    talk.released(Released::Unknown);
    talk.pass(SECOND);
    talk.pass(SECOND * 2);
    talk.released(Released::Left);
    talk.pass(SECOND * 8);
    talk.end();
    let mut talk = Talk::new("exposed_refused");
    talk.take(1, 1);
    talk.fail(Failure::Unknown);
    talk.pass(MS * 20);
    talk.say(granted(TOKEN));
    talk.take(2, 2);
    talk.release(1);
    talk.fail(refused(RefusalKind::Misconfigured));
    talk.pass(SECOND);
    talk.say(queued(77, 1));
    talk.pass(SECOND * 7);
    while !talk.open.is_empty() {
        talk.fail(refused(RefusalKind::Misconfigured));
    }
    talk.end();
}

#[test]
fn grants_that_nobody_waits_for_are_given_back() {
    let mut talk = releasing("stray");
    let hold = talk.hold();
    // Its own release says what was used.
    talk.push_granted(hold, TOKEN, 0);
    talk.released(Released::Done);
    talk.push_granted(hold, TOKEN + 2_000, 0);
    talk.pass(MS * 10);
    talk.released(Released::Left);
    let lock = Name::new("x").unwrap();
    talk.push(Push::Wanted { lock: lock.clone(), hold });
    talk.push(Push::Broken { lock: lock.clone(), hold });
    talk.push(Push::Changed { lock, hold });
    talk.end();
}

#[test]
fn closing_ends_all_there_is() {
    let mut talk = Talk::new("closing");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.take(2, 2);
    talk.extend(3, 1, SECOND * 40);
    let now = talk.time();
    talk.engine.inspect(now, &Name::new("y").unwrap(), 4);
    talk.engine.close(now, 5);
    talk.step("close 5");
    talk.engine.close(now, 6);
    talk.step("close 6");
    talk.take(7, 7);
    talk.engine.ping(now, 8);
    talk.step("ping 8");
    talk.pass(MS * 10);
    while !talk.open.is_empty() {
        match talk.open[0].op {
            fencelock_engine::request::Op::Release(_) => talk.released(Released::Done),
            _ => talk.say(granted(TOKEN)),
        }
    }
    assert!(talk.engine.is_closed() && talk.engine.has_left_nothing());
    talk.engine.close(now, 9);
    talk.step("close 9");
    talk.end();
}

#[test]
fn a_close_that_the_store_does_not_confirm_ends_in_time() {
    let mut talk =
        Talk::with("closing_in_time", Options { request_timeout: MS * 500, ..Options::default() });
    talk.take(1, 1);
    let now = talk.time();
    talk.engine.close(now, 2);
    talk.step("close 2");
    talk.pass(MS * 499);
    assert!(!talk.engine.is_closed());
    talk.pass(MS);
    assert!(talk.engine.is_closed() && !talk.engine.has_left_nothing());
    talk.end();
}
