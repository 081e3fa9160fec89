//! Connections that break, fall silent, are slow, or reach a store that needs an operator.

use fencelock_engine::{Error, ErrorKind, Event, Options};

use crate::talk::{MS, SECOND, TOKEN, Talk, granted, leased, queued};

#[test]
fn after_a_cut_holds_and_waiters_show_themselves_first() {
    let mut talk = Talk::new("cut");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.acquire(2, crate::talk::explicit("other"));
    talk.say(queued(77, 0));
    talk.acquire(3, crate::talk::explicit("third"));
    talk.pass(MS * 100);
    talk.down();
    talk.take(4, 1);
    talk.take(5, 5);
    talk.pass(SECOND);
    talk.up();
    while !talk.open.is_empty() {
        talk.say(granted(TOKEN));
    }
    talk.down();
    talk.release(4);
    talk.release(1);
    talk.pass(SECOND * 4);
    talk.up();
    talk.end();
}

#[test]
fn a_silent_connection_is_doubted_and_nothing_new_is_asked_on_it() {
    let mut talk = Talk::new("silent");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.extend(2, 1, SECOND * 60);
    talk.pass(SECOND * 2);
    talk.acquire(3, crate::talk::explicit("other"));
    talk.pass(MS * 999);
    talk.pass(MS);
    talk.acquire(4, crate::talk::explicit("third"));
    talk.pass(MS * 200);
    // It answers after all.
    talk.say(granted(TOKEN));
    talk.pass(SECOND * 5);
    talk.end();
}

#[test]
fn a_slow_store_is_given_longer() {
    let mut talk = Talk::new("slow");
    talk.take(1, 1);
    talk.pass(MS * 2_500);
    talk.say(granted(TOKEN));
    talk.extend(2, 1, SECOND * 60);
    talk.pass(SECOND * 9);
    talk.pass(SECOND);
    talk.say(granted(TOKEN));
    talk.acquire(3, crate::talk::explicit("other"));
    talk.pass(MS * 10);
    talk.say(queued(77, 3));
    talk.pass(SECOND * 20);
    talk.end();
}

#[test]
fn who_waits_for_a_store_that_needs_an_operator_is_told() {
    let mut talk = Talk::new("operator");
    talk.take(1, 1);
    talk.say(granted(TOKEN));
    talk.take(2, 2);
    let now = talk.time();
    talk.engine.ping(now, 3);
    let error = Error::new(ErrorKind::Misconfigured, "wrong password");
    talk.engine.handle(now, Event::Misconfigured(error));
    talk.step("the store needs an operator");
    talk.take(4, 4);
    talk.engine.ping(now, 5);
    talk.step("ping 5");
    talk.pass(SECOND * 11);
    talk.up();
    talk.say(granted(TOKEN));
    talk.end();
}

#[test]
fn before_there_is_a_connection_calls_wait_to_their_bound() {
    let mut talk =
        Talk::with("unconnected", Options { request_timeout: MS * 700, ..Options::default() });
    talk.down();
    talk.acquire(1, crate::talk::patience(fencelock_engine::Patience::Try, 1));
    talk.acquire(2, leased(SECOND, 2));
    let now = talk.time();
    talk.engine.ping(now, 3);
    talk.step("ping 3");
    talk.pass(SECOND);
    talk.up();
    talk.end();
}
