use super::*;
use crate::reply::Standing;
use crate::validity::valid_until;
use crate::zookeeper::ZkWrite;

/// An eleventh of the timeout, rounded up.
const PACE: Duration = Duration::from_micros(545_455);

/// One round trip through the leader.
fn round(talk: &mut Talk) {
    talk.pass(PACE);
    talk.answer_sync(done());
}

/// Counter-examples 29, 66 and 88: what counts is a round trip through the leader that was answered a
/// third of the timeout before another one left that was answered, too.
#[test]
fn p08_validity_counts_from_an_earlier_round_trip() {
    let mut talk = Talk::held(1, 4);
    let connected = talk.now;
    let until = |talk: &mut Talk| {
        let under_way = std::mem::take(&mut talk.calls);
        let request = talk.beat(1);
        talk.answer([
            exists(Stat { ephemeral_owner: SESSION, ..Stat::default() }),
            exists(Stat { num_children: 1, ..Stat::default() }),
        ]);
        talk.calls.extend(under_way);
        let lease = talk.state(request).lease;
        valid_until(talk.now, lease)
    };
    let full = crate::validity::margin(TIMEOUT);
    let near = |a: Time, b: Time| a <= b && b.since(a) < Duration::from_micros(1);
    assert!(near(until(&mut talk), connected + full));
    // The first round trip left at once, and was answered; the second proves the first.
    talk.pass(Duration::from_millis(20));
    talk.calls.clear();
    talk.pass(PACE - Duration::from_millis(20));
    assert!(near(until(&mut talk), connected + full), "not before it is answered");
    talk.answer_sync(done());
    for _ in 0..3 {
        assert!(near(until(&mut talk), connected + full));
        round(&mut talk);
    }
    // The one that left at once had been answered before it was looked at here.
    round(&mut talk);
    assert!(near(until(&mut talk), connected + PACE + full));
    round(&mut talk);
    assert!(near(until(&mut talk), connected + PACE * 2 + full));
}

/// Counter-example 113: one that was long on its way was heard when it was answered, at the latest.
#[test]
fn p08_a_round_trip_that_is_answered_late_counts_late() {
    let mut talk = Talk::held(1, 4);
    let first = talk.now;
    talk.pass(Duration::from_millis(20));
    talk.calls.clear();
    talk.pass(PACE);
    talk.pass(PACE * 4);
    let late = talk.now;
    talk.answer_sync(done());
    let base = |talk: &Talk| talk.machine.session.as_ref().unwrap().base;
    while talk.now.since(late) < TIMEOUT / 3 {
        assert!(base(&talk) <= first, "{:?}", talk.now.since(late));
        round(&mut talk);
    }
    round(&mut talk);
    assert!(base(&talk) > first);
}

/// A server that is cut off from its leader still answers reads: nothing is renewed by that.
#[test]
fn p08_without_the_leader_a_beat_waits_and_fails_with_the_connection() {
    for heals in [false, true] {
        let mut talk = Talk::held(1, 4);
        talk.pass(Duration::from_millis(20));
        talk.calls.clear();
        for _ in 0..8 {
            // The round trips are not answered.
            talk.pass(PACE);
        }
        assert_eq!(talk.calls.len(), 1, "no second one before the first is answered");
        let sync = std::mem::take(&mut talk.calls);
        let request = talk.beat(1);
        talk.answer([
            exists(Stat { ephemeral_owner: SESSION, ..Stat::default() }),
            exists(Stat { num_children: 1, ..Stat::default() }),
        ]);
        assert!(talk.events().is_empty(), "there is nothing to say");
        talk.calls = sync;
        if heals {
            // What it proves left too long ago; the next ones prove this one.
            talk.answer_sync(done());
            for _ in 0..4 {
                round(&mut talk);
                assert!(talk.events().is_empty());
            }
            round(&mut talk);
            assert!(matches!(talk.state(request).standing, Standing::Granted));
        } else {
            talk.hear(Input::Disconnected { reason: "gone".to_owned() });
            assert_eq!(talk.reply(request), Err(Failure::Unknown));
        }
    }
}

/// Counter-example 70: the hold's own node is deleted by somebody.
#[test]
fn p08_the_holder_hears_that_its_node_was_deleted() {
    let mut talk = Talk::held(1, 4);
    let own = path(&node(1, 4));
    assert!(talk.calls.is_empty(), "a hold of a moment pays for no watch");
    talk.pass(Duration::from_millis(20));
    assert_eq!(
        talk.ops(),
        [
            &ZkOp::Multi(vec![
                ZkWrite::Check { path: own.clone() },
                ZkWrite::Set { path: LOCK.to_owned(), data: b"fencelock 1 held 4 1".to_vec() },
            ]),
            &ZkOp::GetData { path: own.clone(), watch: true },
            &ZkOp::Children { path: LOCK.to_owned(), watch: true },
        ]
    );
    talk.answer([done(), data("fencelock 1 6000 5 tests"), children(&[&node(1, 4)])]);
    assert_eq!(talk.pushes(), []);
    talk.fired(own, Change::Deleted);
    assert_eq!(talk.pushes(), [Push::Broken { lock: name(), hold: hold(1) }]);
    let request = talk.beat(1);
    assert_eq!(talk.state(request).standing, Standing::Gone);
}

#[test]
fn p08_a_node_that_is_gone_at_the_beat_is_noticed_too() {
    let mut talk = Talk::held(1, 4);
    let request = talk.beat(1);
    talk.answer([Ok(ZkReply::Exists(None)), exists(Stat::default())]);
    assert_eq!(talk.state(request).standing, Standing::Gone);
}

/// The beat's answer would forget the place, and with it who waits for an answer.
#[test]
fn a_beat_that_finds_no_node_leaves_it_to_the_acquire_under_way() {
    let mut talk = Talk::waiting(2, 5);
    talk.beat(2);
    let beat = std::mem::take(&mut talk.calls);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    let request = talk.acquire(2, true);
    let lists = std::mem::replace(&mut talk.calls, beat);
    talk.answer([Ok(ZkReply::Exists(None)), Ok(ZkReply::Exists(None))]);
    talk.calls = lists;
    talk.calls.drain(..2);
    talk.answer([children(&[]), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Gone);
}

#[test]
fn a_beat_of_a_waiter_asks_nothing_while_it_is_being_found_out_where_it_stands() {
    let mut talk = Talk::new();
    talk.acquire(2, true);
    talk.answer([created(2, 5, 100), children(&[&node(1, 4), &node(2, 5)]), data("")]);
    let calls = talk.calls.len();
    let beat = talk.beat(2);
    assert_eq!(talk.calls.len(), calls);
    assert_eq!(talk.state(beat).standing, Standing::Queued);
    let mut talk = Talk::waiting(2, 5);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    let calls = talk.calls.len();
    let beat = talk.beat(2);
    assert_eq!(talk.calls.len(), calls);
    assert_eq!(talk.state(beat).standing, Standing::Queued);
}

#[test]
fn p03_a_release_under_way_says_itself_what_became_of_the_node() {
    let mut talk = Talk::held(1, 4);
    talk.pass(Duration::from_millis(20));
    talk.answer([done(), data("fencelock 1 6000 5 tests"), children(&[&node(1, 4)])]);
    let release = talk.release(1, true, false);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    assert!(talk.events().is_empty());
    talk.answer([done()]);
    assert_eq!(talk.released(release), Released::Done);
}

#[test]
fn a_hold_that_is_being_released_or_without_a_connection_is_not_looked_after() {
    let mut talk = Talk::held(1, 4);
    talk.release(1, true, false);
    let calls = talk.calls.len();
    talk.pass(Duration::from_millis(20));
    assert_eq!(talk.calls.len(), calls, "{:?}", talk.ops());
    let mut talk = Talk::held(1, 4);
    talk.hear(Input::Disconnected { reason: String::new() });
    talk.pass(Duration::from_millis(20));
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
}

#[test]
fn a_holder_that_lasts_notes_it_unless_the_parent_may_not_be_written_to() {
    for (error, denied) in [
        (ZkError::At(1, Box::new(ZkError::NoAuth)), true),
        (ZkError::At(1, Box::new(ZkError::NoNode)), false),
        (ZkError::At(0, Box::new(ZkError::NoAuth)), false),
        (ZkError::ConnectionLoss, false),
    ] {
        let mut talk = Talk::held(1, 4);
        talk.pass(Duration::from_millis(20));
        talk.answer([Err(error.clone()), data(""), children(&[&node(1, 4)])]);
        talk.release(1, true, false);
        let notes = matches!(talk.ops()[..], [ZkOp::Multi(_)]);
        assert_eq!(notes, !denied, "{error:?}");
    }
}

#[test]
fn p10_the_holder_is_told_of_waiters_and_of_revocation() {
    let mut talk = Talk::held(1, 4);
    talk.pass(Duration::from_millis(20));
    talk.answer([done(), data("x"), children(&[&node(1, 4)])]);
    talk.fired(LOCK.to_owned(), Change::Children);
    talk.answer([children(&[&node(1, 4), &node(2, 5)])]);
    let wanted = Push::Wanted { lock: name(), hold: hold(1) };
    assert_eq!(talk.pushes(), std::slice::from_ref(&wanted));
    talk.fired(LOCK.to_owned(), Change::Children);
    assert!(talk.calls.is_empty(), "once is enough");
    talk.fired(path(&node(1, 4)), Change::Data);
    talk.answer([data("__REVOKE__")]);
    assert_eq!(talk.pushes(), [wanted]);
}

#[test]
fn p10_a_beat_counts_who_else_is_there() {
    let mut talk = Talk::held(1, 4);
    let request = talk.beat(1);
    talk.answer([
        exists(Stat { ephemeral_owner: SESSION, ..Stat::default() }),
        exists(Stat { num_children: 3, ..Stat::default() }),
    ]);
    assert_eq!(talk.state(request).others_waiting, 2);
}

#[test]
fn p09_a_waiter_looks_again_after_a_reconnect_and_at_its_heartbeat() {
    let mut talk = Talk::waiting(2, 5);
    talk.reattach();
    assert!(matches!(talk.ops()[..], [ZkOp::Children { .. }, ZkOp::GetData { .. }]));
    talk.answer([children(&[&node(1, 4), &node(2, 5)]), data("")]);
    talk.answer([data("")]);
    // A lost watch costs a heartbeat at the most.
    let request = talk.beat(2);
    talk.answer([exists(Stat::default()), Ok(ZkReply::Exists(None))]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    talk.answer([children(&[&node(2, 5)]), data("fencelock 1 released 4 0")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(2) }]);
}

#[test]
fn p09_a_waiter_whose_list_is_under_way_does_not_make_another_after_a_reconnect() {
    let mut talk = Talk::waiting(2, 5);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    let lists = std::mem::take(&mut talk.calls);
    talk.reattach();
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
    talk.calls = lists;
    talk.answer([children(&[&node(2, 5)]), data("")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(2) }]);
}

/// Counter-example 100: an operator broke the lock and the empty container was reaped, while the
/// connection was away.
#[test]
fn p09_a_waiter_whose_lock_is_gone_altogether_queues_again() {
    let mut talk = Talk::waiting(2, 5);
    talk.reattach();
    talk.events();
    talk.answer([Err(ZkError::NoNode), Err(ZkError::NoNode)]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(2) }]);
    let request = talk.beat(2);
    assert_eq!(talk.state(request).standing, Standing::Gone);
}

/// Counter-example 100, for any other reason: the next heartbeat looks again.
#[test]
fn p09_a_list_that_failed_is_made_again_at_the_heartbeat() {
    let mut talk = Talk::waiting(2, 5);
    talk.reattach();
    talk.answer([Err(ZkError::Throttled), Err(ZkError::Throttled)]);
    assert!(talk.calls.is_empty());
    talk.beat(2);
    assert!(matches!(talk.ops()[..], [ZkOp::Children { .. }, ZkOp::GetData { .. }]));
    talk.calls.clear();
}

#[test]
fn an_expired_session_ends_everything() {
    let mut talk = Talk::held(1, 4);
    let acquire = talk.acquire(2, true);
    talk.calls.clear();
    talk.hear(Input::Expired);
    assert_eq!(talk.reply(acquire), Err(Failure::NotSent), "what it made went with the session");
    let request = talk.beat(1);
    assert_eq!(talk.reply(request), Err(Failure::NotSent));
    talk.connect(SESSION + 1);
    talk.answer_sync(done());
    talk.events();
    let request = talk.beat(1);
    assert_eq!(talk.state(request).standing, Standing::Gone);
    let request = talk.release(1, true, true);
    assert_eq!(talk.released(request), Released::Unknown);
}

#[test]
fn results_of_an_earlier_session_are_not_heard() {
    let mut talk = Talk::new();
    talk.acquire(2, true);
    let old = std::mem::take(&mut talk.calls);
    talk.hear(Input::Expired);
    talk.connect(SESSION + 1);
    talk.answer_sync(done());
    talk.events();
    for call in old {
        talk.hear(Input::Result { call: call.id, result: created(2, 1, 4) });
    }
    assert!(talk.events().is_empty() && talk.calls.is_empty());
}

/// A session that took long to get may be near its end when it is had.
#[test]
fn the_engine_may_ask_only_when_a_grant_would_be_worth_something() {
    let mut talk = Talk::new();
    talk.hear(Input::Expired);
    talk.events();
    talk.calls.clear();
    let since = talk.now;
    talk.now = talk.now + Duration::from_secs(5);
    let input = Input::Connected { session: 9, timeout: TIMEOUT, since, wall: 0 };
    talk.hear(input);
    talk.answer_sync(done());
    for _ in 0..4 {
        assert!(talk.events().is_empty());
        round(&mut talk);
    }
    assert!(matches!(talk.events(), [Event::Up { .. }]));
}

#[test]
fn whoever_doubts_the_connection_has_another_made() {
    let mut talk = Talk::new();
    talk.machine.reconnect();
    assert_eq!(talk.machine.poll_output(), Some(Output::Reconnect));
}

#[test]
fn a_refused_login_is_told_as_such() {
    let mut talk = Talk::new();
    talk.hear(Input::AuthFailed { reason: "who are you".to_owned() });
    let events = talk.events();
    assert!(events.iter().any(|event| matches!(event, Event::Misconfigured(_))), "{events:?}");
}
