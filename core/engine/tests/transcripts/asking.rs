//! Questions that concern no hold.

use fencelock_engine::Name;
use fencelock_engine::reply::{Body, Broken, Failure, RefusalKind};
use fencelock_engine::request::Break;

use crate::talk::{MS, SECOND, TOKEN, Talk, refused};

fn asked(talk: &mut Talk) {
    let (now, name) = (talk.time(), Name::new("y").unwrap());
    talk.engine.inspect(now, &name, 1);
    talk.engine.list(now, "y", 7, 2);
    talk.engine.break_lock(now, Break { lock: name.clone(), token: TOKEN, hold: None }, 3);
    talk.engine.revoke(now, &name, 4);
    talk.engine.ping(now, 5);
    talk.step("inspect 1, list 2, break 3, revoke 4, ping 5");
}

#[test]
fn each_question_has_its_answer() {
    for mut talk in [Talk::new("asked"), Talk::session("asked_session")] {
        asked(&mut talk);
        talk.pass(MS * 100);
        talk.body(Body::Inspect(None));
        talk.body(Body::List(vec![Name::new("yes").unwrap()]));
        talk.body(Body::Break(Broken::ChangedHands(7)));
        talk.body(Body::Revoke(true));
        talk.body(Body::Time);
        talk.pass(SECOND * 10);
        talk.end();
    }
}

#[test]
fn questions_are_repeated_and_end_in_time() {
    let mut talk = Talk::new("asked_in_vain");
    asked(&mut talk);
    talk.fail(refused(RefusalKind::Again));
    talk.fail(Failure::Unknown);
    talk.fail(refused(RefusalKind::Retry));
    talk.fail(refused(RefusalKind::Unsupported));
    talk.pass(SECOND);
    talk.down();
    talk.pass(SECOND / 4);
    talk.up();
    talk.pass(SECOND);
    talk.pass(SECOND * 4);
    talk.end();
}

#[test]
fn a_listing_lasts_while_the_store_answers() {
    let mut talk = Talk::new("listing");
    let now = talk.time();
    talk.engine.list(now, "", 100, 1);
    talk.step("list 1");
    let list = talk.open.remove(0);
    for _ in 0..3 {
        talk.pass(SECOND * 2);
        talk.body(Body::Time);
    }
    talk.pass(SECOND * 2);
    talk.fail(refused(RefusalKind::Misconfigured));
    talk.pass(SECOND);
    talk.reply(list.id, Ok(Body::List(Vec::new())));
    talk.engine.list(talk.time(), "", 100, 2);
    talk.step("list 2");
    talk.pass(SECOND * 2);
    talk.open.remove(0);
    talk.fail(Failure::Unknown);
    talk.pass(SECOND * 4);
    talk.end();
}

#[test]
fn a_listing_without_a_connection_ends_at_its_bound() {
    let mut talk = Talk::new("listing_cut");
    let now = talk.time();
    talk.engine.list(now, "a", 10, 1);
    talk.step("list 1");
    talk.pass(MS * 100);
    talk.down();
    talk.pass(SECOND * 5);
    talk.end();
}
