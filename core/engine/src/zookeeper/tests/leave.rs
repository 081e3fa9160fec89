use super::*;
use crate::reply::{Abandoned, Standing};
use crate::zookeeper::ZkWrite;

fn noted(talk: &Talk) -> String {
    match talk.ops()[..] {
        [ZkOp::Multi(parts)] => match &parts[0] {
            ZkWrite::Set { data, .. } => String::from_utf8(data.clone()).unwrap(),
            other => panic!("{other:?}"),
        },
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn p12_the_note_says_how_the_hold_ended() {
    for (told, lost, note) in [
        (true, false, "fencelock 1 released 4 0"),
        (true, true, "fencelock 1 released 4 1"),
        // Nobody was told of the grant: the next one hears what this one would have.
        (false, false, "fencelock 1 released 4 2"),
    ] {
        let mut talk = Talk::held(1, 4);
        talk.release(1, told, lost);
        assert_eq!(noted(&talk), note);
    }
}

/// Counter-example 30: the release is lost with the connection.
#[test]
fn p03_a_release_that_was_not_answered_is_repeated() {
    let mut talk = Talk::held(1, 4);
    let request = talk.release(1, true, false);
    talk.answer([lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.hear(Input::Disconnected { reason: String::new() });
    let request = talk.release(1, true, false);
    assert_eq!(talk.reply(request), Err(Failure::NotSent));
    talk.hear(Input::Reattached);
    talk.answer_sync(done());
    talk.calls.clear();
    let request = talk.release(1, true, false);
    assert_eq!(noted(&talk), "fencelock 1 released 4 0");
    // It was done the first time.
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::NoNode)))]);
    assert_eq!(talk.released(request), Released::Unknown);
    let request = talk.release(1, true, false);
    assert_eq!(talk.released(request), Released::Unknown);
    assert!(talk.calls.is_empty());
}

#[test]
fn p03_a_node_whose_deletion_is_not_confirmed_is_deleted_after_the_reconnect() {
    let mut talk = Talk::new();
    talk.acquire(1, true);
    talk.answer([created(1, 0, 9), children(&[&node(1, 0), "item"]), data("")]);
    let delete = ZkOp::Delete { path: path(&node(1, 0)) };
    assert_eq!(talk.ops(), [&delete]);
    talk.answer([lost()]);
    talk.hear(Input::Disconnected { reason: String::new() });
    talk.hear(Input::Reattached);
    assert!(talk.ops().contains(&&delete), "{:?}", talk.ops());
    talk.calls.clear();
}

/// Counter-example 71, from the other side: a waiter that goes may have become the holder.
#[test]
fn p11_a_waiter_leaves_as_such_only_while_somebody_comes_before() {
    let mut talk = Talk::waiting(2, 5);
    let request = talk.release(2, false, false);
    let check = ZkWrite::Check { path: path(&node(1, 4)) };
    let delete = ZkWrite::Delete { path: path(&node(2, 5)) };
    assert_eq!(talk.ops(), [&ZkOp::Multi(vec![check, delete])]);
    // The holder went in the same moment.
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoNode)))]);
    talk.answer([children(&[&node(2, 5)]), data("fencelock 1 released 4 0")]);
    assert_eq!(noted(&talk), "fencelock 1 released 5 0");
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);

    let mut talk = Talk::waiting(2, 5);
    let request = talk.release(2, false, false);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);
}

#[test]
fn a_parent_that_may_not_be_written_to_costs_the_note_alone() {
    let mut talk = Talk::held(1, 4);
    let request = talk.release(1, true, false);
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoAuth)))]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&node(1, 4)) }]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

#[test]
fn p04_the_release_of_an_unanswered_acquire_finds_the_node() {
    let mut talk = Talk::unanswered();
    let request = talk.release(1, false, false);
    talk.answer([done(), children(&[&node(1, 4)]), data("")]);
    talk.answer([exists(Stat { czxid: 5, ephemeral_owner: SESSION, ..Stat::default() })]);
    assert_eq!(noted(&talk), "fencelock 1 released 4 2");
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);
}

/// Counter-example 93: the time without a connection does not count.
#[test]
fn p04_a_create_that_may_still_arrive_is_looked_for_after_a_long_outage() {
    let mut talk = Talk::unanswered();
    let request = talk.release(1, false, false);
    talk.answer([done(), children(&[]), data("")]);
    assert_eq!(talk.released(request), Released::Unknown);
    talk.hear(Input::Disconnected { reason: String::new() });
    talk.pass(TIMEOUT * 4);
    talk.calls.clear();
    talk.hear(Input::Reattached);
    let looks = |call: &Call| matches!(call.op, ZkOp::Children { .. });
    assert!(talk.calls.iter().any(looks), "{:?}", talk.ops());
}

/// By then its old server has handed on what it had taken in, or its session is over.
#[test]
fn p04_a_create_that_may_still_arrive_is_looked_for_for_three_timeouts() {
    // The loss is heard at once, or when there is a connection again.
    for late in [false, true] {
        for (early, looks) in [(Duration::from_nanos(1), 1), (Duration::ZERO, 0)] {
            let mut talk = if late { Talk::new() } else { Talk::unanswered() };
            if late {
                talk.acquire(1, true);
                talk.answer([lost(), lost(), lost()]);
            }
            let until = talk.now + TIMEOUT * 3;
            talk.release(1, false, false);
            talk.answer([done(), children(&[]), data("")]);
            talk.pass(TIMEOUT);
            assert_eq!(talk.calls.len(), 2, "a look with each round trip");
            talk.answer_sync(done());
            talk.answer([children(&[])]);
            talk.pass((until - early).since(talk.now));
            talk.answer_sync(done());
            assert_eq!(talk.calls.len(), looks, "{late}, {early:?} before");
        }
    }
}

#[test]
fn p04_what_turns_up_at_a_look_is_deleted_and_that_is_confirmed() {
    for confirmed in [true, false] {
        let mut talk = Talk::unanswered();
        talk.release(1, false, false);
        talk.answer([done(), children(&[]), data("")]);
        talk.pass(TIMEOUT);
        talk.answer_sync(done());
        talk.answer([children(&[&node(1, 4), &node(2, 5)])]);
        let delete = ZkOp::Delete { path: path(&node(1, 4)) };
        assert_eq!(talk.ops(), [&delete]);
        talk.answer([if confirmed { Err(ZkError::NoNode) } else { lost() }]);
        talk.reattach();
        assert_eq!(talk.ops().contains(&&delete), !confirmed);
    }
}

/// Whose it is, is being found out.
#[test]
fn p01_the_node_of_a_hold_that_is_sought_is_left_alone() {
    let mut talk = Talk::unanswered();
    let request = talk.acquire(2, true);
    talk.answer([created(2, 5, 100), children(&[&node(1, 4), &node(2, 5)]), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    assert!(matches!(talk.ops()[..], [ZkOp::GetData { .. }]), "{:?}", talk.ops());
}

/// Counter-example 102: the connection went between two looks.
#[test]
fn p04_what_was_sought_and_not_reached_is_sought_again() {
    let mut talk = Talk::unanswered();
    talk.release(1, false, false);
    talk.answer([done(), children(&[&node(1, 4)]), data("")]);
    // It is there; whether it is ours could not be asked.
    talk.answer([Err(ZkError::NotSent)]);
    for _ in 0..9 {
        talk.pass(TIMEOUT / 2);
        talk.answer_sync(done());
    }
    talk.calls.clear();
    talk.events();
    let request = talk.release(1, false, false);
    talk.answer([done(), children(&[&node(1, 4)]), data("")]);
    talk.answer([exists(Stat { czxid: 5, ephemeral_owner: SESSION, ..Stat::default() })]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);
}

/// A repeat of both, of which the wait was answered.
#[test]
fn p03_a_release_that_goes_along_with_a_known_wait_is_made() {
    let mut talk = Talk::waiting(2, 5);
    talk.acquire(3, true);
    talk.answer([created(3, 7, 110), children(&[&node(1, 4), &node(3, 7)]), data("")]);
    talk.answer([data("fencelock 1 6000 00 other")]);
    let request = talk.release_and_wait(3, 2);
    let own = ZkWrite::Delete { path: path(&node(3, 7)) };
    assert_eq!(talk.ops()[0], &ZkOp::Multi(vec![own]));
    talk.answer([done(), children(&[&node(1, 4), &node(2, 5)]), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
}

#[test]
fn p10_releasing_and_queueing_again_is_one_round_trip() {
    let mut talk = Talk::held(1, 4);
    talk.batches = 0;
    let request = talk.release_and_wait(1, 2);
    assert_eq!((talk.batches, talk.calls.len()), (1, 4));
    talk.answer([
        done(),
        created(2, 5, 103),
        children(&[&node(2, 5)]),
        data("fencelock 1 released 4 0"),
    ]);
    let state = talk.state(request);
    assert_eq!((state.token, state.abandoned), (103 * 1024, Abandoned::No));
}

/// Counter-example 105: the hold was granted under another node, of which its holder was told.
#[test]
fn p12_an_old_release_that_finds_a_left_over_says_nothing_of_its_holder() {
    let mut talk = Talk::unanswered();
    let used = 4 * 1024;
    let old = Release::new(name(), hold(1), used);
    talk.ask(Op::Release(old));
    talk.answer([done(), children(&[&node(1, 4)]), data("fencelock 1 released 3 1")]);
    talk.answer([exists(Stat { czxid: 5, ephemeral_owner: SESSION, ..Stat::default() })]);
    assert_eq!(noted(&talk), "fencelock 1 released 4 1");
    talk.calls.clear();
}
