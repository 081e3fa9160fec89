//! Questions to all servers.

use super::*;
use crate::reply::{Broken, LockInfo, RefusalKind};
use crate::request::{Break, Mode, Resize};

fn info(talk: &mut Talk, id: RequestId) -> LockInfo {
    match talk.reply(id) {
        Some(Ok(Body::Inspect(Some(info)))) => info,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lock_looks_as_if_one_server_kept_it() {
    let mut talk = Talk::new();
    talk.servers[1].ahead = 400;
    let state = talk.held(1);
    let id = talk.ask(Op::Inspect(name()));
    talk.serve_all();
    let info = info(&mut talk, id);
    assert_eq!(info.holds.len(), 1);
    assert_eq!((info.holds[0].hold, info.holds[0].token), (hold(1), state.token));
    assert_eq!((info.token, info.waiting, info.waiters.len()), (state.token, 0, 0));
}

#[test]
fn who_has_one_vote_of_three_waits() {
    let mut talk = Talk::new();
    talk.taken(2, 9);
    talk.held(1);
    let id = talk.ask(Op::Inspect(name()));
    talk.serve_all();
    let info = info(&mut talk, id);
    assert_eq!(info.holds.iter().map(|it| it.hold).collect::<Vec<_>>(), [hold(1)]);
    assert_eq!((info.waiters.len(), info.waiting), (1, 1));
}

#[test]
fn a_question_takes_enough_answers_and_no_more_time_than_that() {
    let mut talk = Talk::new();
    let id = talk.ask(Op::List { prefix: String::new(), limit: 5 });
    talk.serve(0);
    talk.wait(Duration::from_secs(1));
    assert_eq!(talk.reply(id), None);
    talk.serve(2);
    talk.wait(Duration::from_millis(101));
    assert_eq!(talk.reply(id), Some(Ok(Body::List(vec![name()]))));
    let id = talk.ask(Op::Time);
    talk.servers[1].arrived.clear();
    talk.servers[2].arrived.clear();
    talk.serve(0);
    talk.wait(Duration::from_secs(3));
    assert_eq!(talk.reply(id), Some(Err(Failure::Unknown)));
}

#[test]
fn a_break_ends_the_votes_of_the_hold_that_was_seen() {
    let mut talk = Talk::new();
    let state = talk.held(1);
    let wrong = Break { lock: name(), token: state.token - 1, hold: None };
    let id = talk.ask(Op::Break(wrong));
    talk.serve_all();
    assert_eq!(talk.reply(id), Some(Ok(Body::Break(Broken::ChangedHands(state.token)))));
    let id = talk.ask(Op::Break(Break { lock: name(), token: state.token, hold: Some(hold(1)) }));
    talk.serve_all();
    assert_eq!(talk.reply(id), Some(Ok(Body::Break(Broken::Ended(1)))));
    let broken = Event::Push(Push::Broken { lock: name(), hold: hold(1) });
    assert_eq!(talk.events(), [broken]);
    talk.nothing_is_left();
    let id = talk.ask(Op::Break(Break { lock: name(), token: state.token, hold: None }));
    talk.serve_all();
    assert_eq!(talk.reply(id), Some(Ok(Body::Break(Broken::NotHeld))));
}

#[test]
fn what_is_not_there_is_said() {
    let mut talk = Talk::new();
    let of = Resize { lock: name(), of: 3 };
    for op in [Op::Resize(of), Op::Revoke(name())] {
        let id = talk.ask(op);
        assert_eq!(talk.refused(id).kind, RefusalKind::Unsupported);
    }
    let convert = crate::request::Convert::new(name(), hold(1), Mode::Shared, LEASE, 0);
    let id = talk.ask(Op::Convert(convert));
    assert_eq!(talk.refused(id).kind, RefusalKind::Unsupported);
}
