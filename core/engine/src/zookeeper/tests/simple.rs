use super::*;
use crate::reply::Standing;
use crate::zookeeper::NodeKind;

fn made(czxid: i64) -> Result {
    let stat = Stat { czxid, ephemeral_owner: SESSION, ..Stat::default() };
    Ok(ZkReply::Created { path: LOCK.to_owned(), stat })
}

fn of(number: u128, session: i64) -> Result {
    let data = format!("{} fencelock 1 6000 5 tests", hold(number)).into_bytes();
    Ok(ZkReply::Data { data, stat: Stat { czxid: 3, ephemeral_owner: session, ..Stat::default() } })
}

#[test]
fn everybody_watches_the_one_node_and_tries_again_when_it_goes() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = talk.acquire(1, true);
    talk.answer([Err(ZkError::NodeExists)]);
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: LOCK.to_owned(), watch: true }]);
    talk.answer([of(2, SESSION + 1)]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
    talk.fired(LOCK.to_owned(), Change::Deleted);
    assert!(matches!(talk.ops()[..], [ZkOp::Create { .. }]));
    // Another was quicker.
    talk.answer([Err(ZkError::NodeExists)]);
    talk.answer([of(3, SESSION + 2)]);
    assert_eq!(talk.pushes(), []);
    talk.fired(LOCK.to_owned(), Change::Deleted);
    talk.answer([made(80)]);
    assert_eq!(talk.pushes(), [Push::Changed { lock: name(), hold: hold(1) }]);
    let beat = talk.beat(1);
    assert_eq!(talk.state(beat).token, 80 * 1024);
}

/// Counter-example 108: what is above is taken away whenever nobody stands below it.
#[test]
fn p14_a_waiter_makes_the_path_above_as_often_as_it_goes() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([Err(ZkError::NodeExists)]);
    talk.answer([of(2, SESSION + 1)]);
    for other in 0..9 {
        talk.fired(LOCK.to_owned(), Change::Deleted);
        talk.answer([Err(ZkError::NoNode)]);
        let above = talk.ops().len() - 1;
        assert!(matches!(talk.ops()[0], ZkOp::Create { kind: NodeKind::Container, .. }));
        // Another was quicker.
        let mut made = vec![created(9, 0, 1); above];
        made.push(Err(ZkError::NodeExists));
        talk.answer(made);
        talk.answer([of(3 + other, SESSION + 2)]);
    }
}

/// Counter-example 1: the node has the same name whoever made it.
#[test]
fn p03_only_ones_own_node_is_deleted() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([made(80)]);
    talk.events();
    let request = talk.release(1, true, false);
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: LOCK.to_owned(), watch: false }]);
    talk.answer([of(2, SESSION + 1)]);
    assert_eq!(talk.released(request), Released::Unknown);
    assert!(talk.calls.is_empty());

    talk.acquire(3, true);
    talk.answer([made(81)]);
    talk.events();
    let request = talk.release(3, true, false);
    talk.answer([of(3, SESSION)]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: LOCK.to_owned() }]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

/// Counter-example 101: the node of the hold before was gone already; the one there is the next's.
#[test]
fn p01_a_release_that_finds_nothing_leaves_the_next_node_alone() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([made(80)]);
    talk.events();
    let after = Release::new(name(), hold(1), USED);
    let request = talk.ask(Op::Acquire(Acquire {
        wait: Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT }),
        after: Some(after),
        ..Acquire::new(name(), hold(2), TIMEOUT, u64::MAX)
    }));
    // An operator was quicker.
    talk.answer([Err(ZkError::NoNode), made(81)]);
    assert_eq!(talk.state(request).token, 81 * 1024);
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
}

#[test]
fn p04_a_lost_create_is_found_again() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = talk.acquire(1, false);
    talk.answer([lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.reattach();
    talk.calls.clear();
    let request = talk.acquire(1, false);
    talk.answer([Err(ZkError::NodeExists)]);
    talk.answer([of(1, SESSION)]);
    assert_eq!(talk.state(request).token, 3 * 1024);
}

/// Whoever asks for the lock has overwritten what the node says.
fn unnamed(czxid: i64) -> Result {
    let stat = Stat { czxid, ephemeral_owner: SESSION, ..Stat::default() };
    Ok(ZkReply::Data { data: b"__REVOKE__".to_vec(), stat })
}

/// Counter-example 103: a hold that knows its own node did not make the one that is there.
#[test]
fn p03_a_node_that_does_not_say_whose_it_is_belongs_to_no_hold_that_knows_its_own() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([made(80)]);
    talk.events();
    talk.acquire(2, true);
    talk.release(1, true, false);
    talk.answer([lost(), lost()]);
    talk.reattach();
    talk.calls.clear();
    talk.events();
    talk.release(1, true, false);
    // The node of hold 2: the release of hold 1 was done.
    talk.answer([unnamed(81)]);
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
    let again = talk.acquire(2, true);
    talk.answer([Err(ZkError::NodeExists)]);
    talk.answer([unnamed(81)]);
    assert_eq!(talk.state(again).token, 81 * 1024);
}

/// Two holds whose creates were not answered, on the next connection; a node of ours is there.
fn two_unclear() -> Talk {
    let mut talk = Talk::with(Recipe::Simple);
    for number in [1, 2] {
        talk.acquire(number, true);
        talk.answer([lost()]);
    }
    talk.reattach();
    talk.calls.clear();
    talk.events();
    talk
}

impl Talk {
    fn looks(&mut self, number: u128) -> RequestId {
        let request = self.acquire(number, true);
        self.answer([Err(ZkError::NodeExists)]);
        self.answer([unnamed(81)]);
        request
    }
}

#[test]
fn p01_a_node_that_two_holds_may_have_made_is_the_firsts() {
    let mut talk = two_unclear();
    let second = talk.looks(2);
    assert_eq!(talk.state(second).standing, Standing::Queued);
    let first = talk.looks(1);
    assert_eq!(talk.state(first).standing, Standing::Granted);
}

#[test]
fn p01_a_node_that_a_leaving_hold_may_have_made_is_nobody_elses() {
    let mut talk = two_unclear();
    let release = talk.release(2, false, false);
    let look = std::mem::take(&mut talk.calls);
    let first = talk.looks(1);
    assert_eq!(talk.state(first).standing, Standing::Queued);
    talk.calls = look;
    talk.answer([unnamed(81)]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: LOCK.to_owned() }]);
    talk.answer([done()]);
    assert_eq!(talk.released(release), Released::Left);
}

#[test]
fn a_path_above_that_always_goes_is_not_made_for_ever() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = talk.acquire(1, true);
    for _ in 0..4 {
        let above = talk.calls.len() - 1;
        let mut results = vec![created(9, 0, 1); above];
        results.push(Err(ZkError::NoNode));
        talk.answer(results);
    }
    assert!(matches!(talk.ops()[..], [.., ZkOp::Create { .. }]), "four times it is");
    talk.answer([created(9, 0, 1), Err(ZkError::NoNode)]);
    assert!(matches!(talk.reply(request), Err(Failure::Refused(_))));
    assert!(talk.calls.is_empty());
}

/// A holder for so long that it watches its node.
fn lasting() -> Talk {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([made(80)]);
    talk.events();
    talk.pass(Duration::from_millis(20));
    talk.answer([of(1, SESSION)]);
    talk
}

#[test]
fn p08_a_look_at_anothers_node_tells_that_the_hold_before_was_broken() {
    let mut talk = lasting();
    talk.acquire(2, true);
    talk.answer([Err(ZkError::NodeExists)]);
    talk.answer([of(9, SESSION + 1)]);
    assert_eq!(talk.pushes(), [Push::Broken { lock: name(), hold: hold(1) }]);
}

#[test]
fn p08_a_holder_hears_that_its_node_was_deleted_and_that_it_is_wanted() {
    let mut talk = lasting();
    talk.fired(LOCK.to_owned(), Change::Data);
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: LOCK.to_owned(), watch: true }]);
    talk.answer([unnamed(80)]);
    assert_eq!(talk.pushes(), [Push::Wanted { lock: name(), hold: hold(1) }]);
    talk.fired(LOCK.to_owned(), Change::Deleted);
    assert_eq!(talk.pushes(), [Push::Broken { lock: name(), hold: hold(1) }]);
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
}

#[test]
fn p03_a_release_says_itself_what_became_of_the_node() {
    let mut talk = lasting();
    let release = talk.release(1, true, false);
    talk.fired(LOCK.to_owned(), Change::Deleted);
    assert!(talk.events().is_empty());
    talk.answer([Err(ZkError::NoNode)]);
    assert_eq!(talk.released(release), Released::Unknown);
}

#[test]
fn p08_a_holder_whose_node_is_another_sessions_has_lost_it() {
    for owner in [SESSION, SESSION + 1] {
        let mut talk = lasting();
        let beat = talk.beat(1);
        let stat = Stat { ephemeral_owner: owner, ..Stat::default() };
        talk.answer([exists(stat), exists(stat)]);
        let standing = if owner == SESSION { Standing::Granted } else { Standing::Gone };
        assert_eq!(talk.state(beat).standing, standing);
    }
}

#[test]
fn an_inspection_tells_whose_the_one_node_is() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = talk.ask(Op::Inspect(name()));
    talk.answer([done(), of(2, SESSION + 1)]);
    let Ok(Body::Inspect(Some(info))) = talk.reply(request) else { panic!() };
    let [it] = &info.holds[..] else { panic!("{info:?}") };
    assert_eq!((it.hold, &*it.client, &*it.label, it.lease), (hold(2), "5", "tests", TIMEOUT));
}

#[test]
fn p09_a_node_that_goes_while_it_is_looked_at_is_made_after_the_look() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([Err(ZkError::NodeExists)]);
    talk.fired(LOCK.to_owned(), Change::Deleted);
    assert!(matches!(talk.ops()[..], [ZkOp::GetData { .. }]), "{:?}", talk.ops());
    talk.answer([of(2, SESSION + 1)]);
    assert!(matches!(talk.ops()[..], [ZkOp::Create { .. }]), "{:?}", talk.ops());
}

/// Counter-example 104: a node was made under the one name, so the one before is gone.
#[test]
fn p08_the_next_node_tells_that_the_hold_before_was_broken() {
    let mut talk = Talk::with(Recipe::Simple);
    talk.acquire(1, true);
    talk.answer([made(80)]);
    talk.events();
    talk.acquire(2, true);
    talk.answer([made(81)]);
    let events = talk.events();
    let broken = Event::Push(Push::Broken { lock: name(), hold: hold(1) });
    assert!(events.contains(&broken), "{events:?}");
    let release = talk.release(1, true, false);
    assert!(talk.calls.is_empty(), "{:?}", talk.ops());
    assert_eq!(talk.released(release), Released::Unknown);
}
