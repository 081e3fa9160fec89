//! Explicit owners.

use super::*;
use crate::id::OwnerId;
use crate::reply::{RefusalKind, Standing};

/// An owner tries to take the lock, or to attach to its hold.
fn owned(hold: HoldId, attach: Option<u64>) -> Op {
    Op::Acquire(Acquire {
        owner: Some(OwnerId::new("trace").unwrap()),
        attach,
        ..Acquire::new(name(), hold, TIMEOUT, u64::MAX)
    })
}

/// An owner's first hold is granted.
fn held_by_owner() -> Talk {
    let mut talk = Talk::new();
    let first = talk.ask(owned(hold(1), None));
    talk.answer([done(), children(&[])]);
    talk.answer([created(1, 0, 100), children(&[&node(1, 0)]), data("")]);
    assert_eq!(talk.state(first).token, 102_400);
    talk
}

/// Counter-example 68: an owner in a second process is a stranger there.
#[test]
fn p06_an_owner_joins_within_the_client_and_waits_behind_another() {
    let mut talk = held_by_owner();
    let second = talk.ask(owned(hold(2), Some(102_400)));
    assert!(talk.calls.is_empty(), "no node of its own");
    assert_eq!(talk.state(second).token, 102_400);
    // The first goes, the node stays for the second, and goes with it.
    let request = talk.release(1, true, false);
    assert!(talk.calls.is_empty());
    assert_eq!(talk.released(request), Released::Done);
    let request = talk.release(2, true, false);
    assert!(matches!(talk.ops()[..], [ZkOp::Multi(_)]));
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
    // Elsewhere.
    let mut talk = Talk::new();
    let request = talk.ask(owned(hold(3), Some(102_400)));
    assert!(
        matches!(talk.reply(request), Err(Failure::Refused(r)) if r.kind == RefusalKind::Unsupported)
    );
    let request = talk.ask(owned(hold(4), None));
    talk.answer([done(), children(&[&node(1, 0)])]);
    assert_eq!(talk.state(request).standing, Standing::Contended);
}

/// Counter-example 89: the release may have been carried out, and somebody else may hold the lock.
#[test]
fn p01_a_node_whose_deletion_is_unclear_is_not_joined() {
    let mut talk = held_by_owner();
    let request = talk.release(1, true, false);
    talk.answer([lost()]);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.reattach();
    talk.calls.clear();
    talk.events();
    let second = talk.ask(owned(hold(2), None));
    assert!(matches!(talk.ops()[..], [ZkOp::Sync { .. }, ZkOp::Children { .. }]));
    talk.answer([done(), children(&[&node(3, 1)])]);
    assert_eq!(talk.state(second).standing, Standing::Contended);
    let request = talk.release(1, true, false);
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::NoNode)))]);
    assert_eq!(talk.released(request), Released::Unknown);
}

/// Counter-example 97: an answer from memory would be asked for again at once.
#[test]
fn p07_the_beat_of_a_hold_that_shares_is_a_round_trip() {
    let mut talk = held_by_owner();
    let second = talk.ask(owned(hold(2), Some(102_400)));
    assert_eq!(talk.state(second).token, 102_400);
    let beat = talk.beat(2);
    assert!(talk.events().is_empty(), "nothing is said before the server has");
    talk.answer([Ok(ZkReply::Exists(None)), exists(Stat::default())]);
    assert_eq!(talk.state(beat).standing, Standing::Gone);
}

#[test]
fn p10_whoever_shares_the_node_hears_that_it_is_wanted() {
    let mut talk = held_by_owner();
    let second = talk.ask(owned(hold(2), Some(102_400)));
    assert_eq!(talk.state(second).token, 102_400);
    talk.pass(Duration::from_millis(20));
    talk.answer([done(), data("__REVOKE__"), children(&[&node(1, 0)])]);
    let wanted = |number| Push::Wanted { lock: name(), hold: hold(number) };
    assert_eq!(talk.pushes(), [wanted(1), wanted(2)]);
}

/// The lock is the owner's: each of its waits in this client has it, by the first one's node.
#[test]
fn p06_an_owners_waits_are_served_together() {
    let mut talk = Talk::new();
    for (number, sequence) in [(2, 5), (3, 6)] {
        let wait = Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
        let Op::Acquire(ask) = owned(hold(number), None) else { panic!() };
        talk.ask(Op::Acquire(Acquire { wait, ..ask }));
        let names = [node(1, 4), node(2, 5), node(3, 6)];
        let there: Vec<&str> = names[..number as usize].iter().map(String::as_str).collect();
        talk.answer([
            created(number, sequence, 90 + i64::from(sequence)),
            children(&there),
            data(""),
        ]);
        talk.answer([data("fencelock 1 6000 00 other")]);
    }
    talk.events();
    talk.fired(path(&node(1, 4)), Change::Deleted);
    talk.answer([children(&[&node(2, 5), &node(3, 6)]), data("")]);
    let changed = |number| Push::Changed { lock: name(), hold: hold(number) };
    assert_eq!(talk.pushes(), [changed(2), changed(3)]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&node(3, 6)) }]);
    for number in [2, 3] {
        let beat = talk.beat(number);
        assert_eq!(talk.state(beat).token, 95 * 1024);
    }
}
