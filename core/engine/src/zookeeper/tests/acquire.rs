use super::*;
use crate::reply::{Abandoned, RefusalKind, Standing};
use crate::zookeeper::NodeKind;
use crate::zookeeper::name::Kind;

#[test]
fn an_acquire_is_one_round_trip_and_so_is_a_release() {
    let mut talk = Talk::new();
    talk.batches = 0;
    let request = talk.acquire(1, true);
    assert_eq!(talk.batches, 1);
    match talk.ops()[..] {
        [
            ZkOp::Create { path, data, kind: NodeKind::EphemeralSequential },
            ZkOp::Children { path: parent, watch: false },
            ZkOp::GetData { path: noted, watch: false },
        ] => {
            assert_eq!(*path, node_stem(LOCK, hold(1), Kind::Lock));
            assert!(path.starts_with("/shop/cart/_c_abc00000-0000-0000-0000-"), "{path}");
            assert_eq!((parent.as_str(), noted.as_str()), (LOCK, LOCK));
            assert!(data.starts_with(b"fencelock 1 6000 0000000000000005 tests"));
        }
        ref other => panic!("{other:?}"),
    }
    talk.answer([created(1, 8, 100), children(&[&node(1, 8)]), data("fencelock 1 released 7 0")]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::No));
    // Counter-example 67: between this number and the next there is room for the hand-offs.
    assert_eq!((state.token, state.end), (102_400, 102_400 + 1_023));
    assert!(state.end < 101 * 1_024);

    let request = talk.release(1, true, false);
    assert_eq!(talk.batches, 2);
    assert_eq!(
        talk.ops(),
        [&ZkOp::Multi(vec![
            crate::zookeeper::ZkWrite::Set {
                path: LOCK.to_owned(),
                data: b"fencelock 1 released 8 0".to_vec()
            },
            crate::zookeeper::ZkWrite::Delete { path: path(&node(1, 8)) },
        ])]
    );
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

#[test]
fn a_missing_path_is_made_in_one_round_trip_with_the_node() {
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    talk.answer([Err(ZkError::NoNode), Err(ZkError::NoNode), Err(ZkError::NoNode)]);
    // Whether a lock lies above.
    assert_eq!(talk.ops(), [&ZkOp::Children { path: "/shop".to_owned(), watch: false }]);
    talk.batches = 0;
    talk.answer([Err(ZkError::NoNode)]);
    assert_eq!(talk.batches, 1);
    let made: Vec<_> = talk
        .ops()
        .iter()
        .filter_map(|op| match op {
            ZkOp::Create { path, kind: NodeKind::Container, .. } => Some(path.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(made, ["/shop", "/shop/cart"]);
    assert_eq!(talk.ops().len(), 5);
    let exists = Err(ZkError::NodeExists);
    talk.answer([exists, done(), created(1, 0, 9), children(&[&node(1, 0)]), data("")]);
    assert_eq!(talk.state(request).abandoned, Abandoned::Unknown, "nothing is known of a new node");
}

#[test]
fn a_container_that_is_reaped_between_two_steps_is_made_again_and_not_for_ever() {
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    let none = || Err(ZkError::NoNode);
    talk.answer([none(), none(), none()]);
    talk.answer([children(&["cart"])]);
    let mut rounds = 0;
    while talk.calls.len() == 5 {
        talk.answer([done(), done(), none(), none(), none()]);
        rounds += 1;
        assert!(rounds < 10);
    }
    assert!(rounds > 1);
    assert!(
        matches!(talk.reply(request), Err(Failure::Refused(r)) if r.kind == RefusalKind::Retry)
    );
}

#[test]
fn a_lock_below_a_lock_and_above_one_are_refused() {
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    let none = || Err(ZkError::NoNode);
    talk.answer([none(), none(), none()]);
    talk.answer([children(&["lock-0000000001"])]);
    match talk.reply(request) {
        Err(Failure::Refused(refusal)) => {
            assert!(refusal.message.contains("nested"), "{refusal:?}")
        }
        other => panic!("{other:?}"),
    }
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    talk.answer([created(1, 0, 9), children(&[&node(1, 0), "item"]), data("")]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&node(1, 0)) }]);
    match talk.reply(request) {
        Err(Failure::Refused(refusal)) => assert!(refusal.message.contains("item"), "{refusal:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn p09_a_try_that_finds_the_lock_taken_makes_no_node() {
    let mut talk = Talk::new();
    let request = talk.acquire(2, false);
    assert!(matches!(talk.ops()[..], [ZkOp::Sync { .. }, ZkOp::Children { .. }]));
    talk.answer([done(), children(&[&node(1, 4)])]);
    assert_eq!(talk.state(request).standing, Standing::Contended);
    assert!(talk.calls.is_empty());
    // Free: then as every acquire. One that comes second after all leaves no node.
    let request = talk.acquire(3, false);
    talk.answer([done(), children(&[])]);
    talk.answer([created(3, 6, 9), children(&[&node(1, 5), &node(3, 6)]), data("")]);
    assert!(matches!(talk.ops()[..], [ZkOp::Multi(_)]));
    talk.answer([done()]);
    assert_eq!(talk.state(request).standing, Standing::Contended);
}

/// Counter-example 31: the watch is on the predecessor alone, and one that is gone before the
/// watch is set is noticed.
#[test]
fn p09_only_the_predecessor_is_watched_and_its_end_is_not_missed() {
    let mut talk = Talk::new();
    let request = talk.acquire(3, true);
    let names = [node(1, 4), node(2, 5), node(3, 6)];
    let list = || children(&[&names[2], &names[0], &names[1]]);
    talk.answer([created(3, 6, 100), list(), data("")]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.others_waiting), (Standing::Queued, 2));
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: path(&names[1]), watch: true }]);
    talk.answer([Err(ZkError::NoNode)]);
    assert!(matches!(talk.ops()[..], [ZkOp::Children { watch: false, .. }, ZkOp::GetData { .. }]));
    talk.answer([children(&[&names[2], &names[0]]), data("")]);
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: path(&names[0]), watch: true }]);
    talk.answer([data("")]);
    assert_eq!(talk.pushes(), []);
    assert!(talk.calls.is_empty());
}

/// Counter-example 71: a waiter in front gave up; that is no grant.
#[test]
fn p09_the_predecessors_end_is_no_grant_while_others_come_before() {
    let mut talk = Talk::new();
    talk.acquire(3, true);
    let names = [node(1, 4), node(2, 5), node(3, 6)];
    talk.answer([created(3, 6, 100), children(&[&names[0], &names[1], &names[2]]), data("")]);
    talk.answer([data("")]);
    talk.events();
    talk.fired(path(&names[1]), Change::Deleted);
    talk.answer([children(&[&names[0], &names[2]]), data("")]);
    assert_eq!(talk.pushes(), []);
    talk.answer([data("")]);
    // The holder goes: now it is one, and the engine's next beat says so without a round trip.
    talk.fired(path(&names[0]), Change::Deleted);
    talk.answer([children(&[&names[2]]), data("fencelock 1 released 4 0")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(3) }]);
    let beat = talk.beat(3);
    assert!(talk.calls.is_empty());
    let state = talk.state(beat);
    assert_eq!((state.standing, state.token), (Standing::Granted, 102_400));
    assert_eq!(state.abandoned, Abandoned::No);
}

/// Who comes before may forbid to read its node; whether it is there can be known.
#[test]
fn p09_a_predecessor_that_may_not_be_read_and_goes_is_not_waited_for() {
    let mut talk = Talk::new();
    talk.acquire(2, true);
    talk.answer([created(2, 5, 100), children(&[&node(1, 4), &node(2, 5)]), data("")]);
    talk.answer([Err(ZkError::NoAuth)]);
    assert_eq!(talk.ops(), [&ZkOp::Exists { path: path(&node(1, 4)), watch: true }]);
    talk.answer([Ok(ZkReply::Exists(None))]);
    talk.answer([children(&[&node(2, 5)]), data("")]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(2) }]);
}

/// It was read while it held, and not again before it went.
#[test]
fn p12_who_held_the_lock_is_remembered_over_a_reconnect() {
    let mut talk = Talk::waiting(2, 5);
    talk.reattach();
    talk.answer([children(&[&node(1, 4), &node(2, 5)]), data("")]);
    talk.answer([Err(ZkError::NoNode)]);
    talk.answer([children(&[&node(2, 5)]), data("")]);
    let beat = talk.beat(2);
    assert_eq!(talk.state(beat).abandoned, Abandoned::Yes, "one of ours, and it said nothing");
}

#[test]
fn a_change_while_a_list_is_under_way_is_not_lost() {
    let mut talk = Talk::waiting(2, 5);
    talk.fired(path(&node(1, 4)), Change::Data);
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: path(&node(1, 4)), watch: true }]);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    talk.answer([data("")]);
    assert!(matches!(talk.ops()[..], [ZkOp::Children { .. }, ZkOp::GetData { .. }]));
}

/// Counter-examples 27 and 69: the reply of the create is lost.
#[test]
fn p04_a_lost_create_is_found_again_by_its_id() {
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    talk.answer([lost(), lost(), lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.reattach();
    talk.calls.clear();
    let request = talk.acquire(1, true);
    // Through the leader first, or the node might not be there yet.
    assert!(matches!(
        talk.ops()[..],
        [ZkOp::Sync { .. }, ZkOp::Children { .. }, ZkOp::GetData { .. }]
    ));
    talk.answer([done(), children(&[&node(1, 3)]), data("")]);
    assert_eq!(talk.ops(), [&ZkOp::Exists { path: path(&node(1, 3)), watch: false }]);
    talk.answer([exists(Stat { czxid: 50, ephemeral_owner: SESSION, ..Stat::default() })]);
    assert_eq!(talk.state(request).token, 50 * 1024);
    assert!(talk.calls.is_empty(), "no second node");
}

#[test]
fn p04_an_orphan_that_turns_up_late_is_deleted() {
    let mut talk = Talk::unanswered();
    let request = talk.acquire(1, true);
    talk.answer([done(), children(&[]), data("")]);
    // Not there: another one. Then the first turns up before it.
    talk.answer([created(1, 7, 60), children(&[&node(1, 6), &node(1, 7)]), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    let delete = ZkOp::Delete { path: path(&node(1, 6)) };
    assert!(talk.ops().contains(&&delete), "{:?}", talk.ops());
}

/// Counter-example 28: a node of an earlier session carries the same id.
#[test]
fn p01_a_node_of_another_session_is_not_taken() {
    let mut talk = Talk::new();
    talk.acquire(1, true);
    talk.answer([lost(), lost(), lost()]);
    talk.hear(Input::Disconnected { reason: String::new() });
    talk.hear(Input::Reattached);
    talk.calls.clear();
    talk.events();
    let request = talk.acquire(1, true);
    talk.answer([done(), children(&[&node(1, 3)]), data("")]);
    talk.answer([exists(Stat { czxid: 50, ephemeral_owner: SESSION - 1, ..Stat::default() })]);
    let delete = ZkOp::Delete { path: path(&node(1, 3)) };
    assert_eq!(talk.ops()[0], &delete);
    talk.answer([done(), done(), children(&[]), data("")]);
    talk.answer([created(1, 4, 60), children(&[&node(1, 4)]), data("")]);
    assert_eq!(talk.state(request).token, 60 * 1024);
}

/// Counter-example 32: Curator sorts the wrap as text, so the numbers are not used up.
#[test]
fn near_the_wrap_an_empty_container_is_made_anew_and_another_is_refused() {
    let worn = i32::MAX - 10;
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    talk.answer([created(1, worn, 100), children(&[&node(1, worn)]), data("")]);
    assert!(matches!(talk.ops()[..], [ZkOp::Multi(parts)] if parts.len() == 2));
    talk.answer([done()]);
    talk.answer([done(), done(), created(1, 0, 102), children(&[&node(1, 0)]), data("")]);
    assert_eq!(talk.state(request).token, 102 * 1024);

    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    let other = node(2, worn - 1);
    talk.answer([created(1, worn, 100), children(&[&other, &node(1, worn)]), data("")]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&node(1, worn)) }]);
    match talk.reply(request) {
        Err(Failure::Refused(refusal)) => {
            assert_eq!(refusal.kind, RefusalKind::Retry);
            assert!(refusal.message.contains("nearly used up"), "{refusal:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn p04_a_container_whose_removal_was_not_answered_is_looked_at_again() {
    let worn = i32::MAX - 10;
    let mut talk = Talk::new();
    let request = talk.acquire(1, true);
    talk.answer([created(1, worn, 100), children(&[&node(1, worn)]), data("")]);
    talk.answer([lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
}

/// Another made its node between the look and the making.
#[test]
fn a_try_that_finds_another_first_takes_its_node_away_and_says_how_many_wait() {
    let mut talk = Talk::new();
    let request = talk.acquire(2, false);
    talk.answer([done(), children(&[])]);
    let names = [node(1, 4), node(2, 5), node(3, 6)];
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    talk.answer([created(2, 5, 100), children(&names), data("")]);
    talk.answer([done()]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.others_waiting), (Standing::Contended, 1));
}

#[test]
fn errors_say_what_to_do() {
    for (error, kind, word) in [
        (ZkError::NoAuth, RefusalKind::Misconfigured, "user:password"),
        (ZkError::InvalidAcl, RefusalKind::Misconfigured, "acl=creator"),
        (ZkError::NotReadOnly, RefusalKind::Retry, "quorum"),
        (ZkError::Quota, RefusalKind::Misconfigured, "quota"),
        (ZkError::Unimplemented, RefusalKind::Unsupported, "3.5"),
        (ZkError::NoChildrenForEphemerals, RefusalKind::Misconfigured, "ephemeral"),
    ] {
        let mut talk = Talk::new();
        let request = talk.acquire(1, true);
        talk.answer([Err(error.clone()), Err(error.clone()), Err(error)]);
        match talk.reply(request) {
            Err(Failure::Refused(refusal)) => {
                assert_eq!(refusal.kind, kind);
                assert!(refusal.message.contains(word), "{refusal:?}");
                assert!(refusal.message.contains(LOCK), "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
        assert!(talk.calls.is_empty());
    }
}
