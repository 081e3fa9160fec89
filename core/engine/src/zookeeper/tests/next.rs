use super::*;
use crate::reply::{Abandoned, Standing};

/// Released, as the first in the queue, with the node 4 of transaction 100.
fn released() -> Talk {
    let mut talk = Talk::held(1, 4);
    let request = talk.release(1, true, false);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
    talk
}

#[test]
fn p01_the_next_number_after_a_clean_release_needs_no_list() {
    let mut talk = released();
    let request = talk.acquire(2, true);
    assert!(matches!(talk.ops()[..], [ZkOp::Create { .. }]), "{:?}", talk.ops());
    talk.answer([created(2, 5, 102)]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.token), (Standing::Granted, 102 * 1024));
    assert_eq!(state.abandoned, Abandoned::No);
    // And so on, with what is said of that one.
    let request = talk.release(2, true, true);
    talk.answer([done()]);
    talk.released(request);
    let request = talk.acquire(3, true);
    talk.answer([created(3, 6, 104)]);
    assert_eq!(talk.state(request).abandoned, Abandoned::Yes);
}

#[test]
fn p01_another_number_is_looked_for_in_the_list() {
    let mut talk = released();
    let request = talk.acquire(2, true);
    talk.answer([created(2, 6, 103)]);
    assert!(matches!(talk.ops()[..], [ZkOp::Children { .. }, ZkOp::GetData { .. }]));
    talk.answer([children(&[&node(9, 5), &node(2, 6)]), data("fencelock 1 released 4 0")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
}

#[test]
fn p09_who_had_to_wait_lists_as_it_queues_again() {
    let mut talk = Talk::new();
    talk.acquire(1, true);
    talk.answer([created(1, 5, 100), children(&[&node(9, 4), &node(1, 5)]), data("")]);
    talk.answer([data("")]);
    talk.events();
    talk.fired(path(&node(9, 4)), Change::Deleted);
    talk.answer([children(&[&node(1, 5)]), data("")]);
    talk.release(1, true, false);
    talk.answer([done()]);
    talk.events();
    talk.acquire(2, true);
    let [ZkOp::Create { .. }, ZkOp::Children { .. }, ZkOp::GetData { .. }] = talk.ops()[..] else {
        panic!("{:?}", talk.ops())
    };
}

/// Where the container was made anew, and each number given once more, so many transactions passed.
#[test]
fn p01_the_next_number_is_believed_while_no_container_can_have_counted_to_it() {
    // Of number 4: the deletion, the container's, its making, and five nodes.
    for (czxid, believed) in [(108, true), (109, false)] {
        let mut talk = released();
        talk.acquire(2, true);
        talk.answer([created(2, 5, czxid)]);
        assert_eq!(talk.calls.is_empty(), believed, "{czxid}");
    }
}

/// Counter-example 107: the container was removed, and somebody is in the new one.
#[test]
fn p01_the_next_number_of_a_container_made_anew_is_looked_for_in_the_list() {
    let mut talk = Talk::new();
    talk.acquire(1, true);
    talk.answer([created(1, 0, 100), children(&[&node(1, 0)]), data("")]);
    talk.release(1, true, false);
    talk.answer([done()]);
    talk.events();
    // Deleted at 101, the container at 102, made at 103, another's node at 104.
    let request = talk.acquire(2, true);
    talk.answer([created(2, 1, 105)]);
    assert!(matches!(talk.ops()[..], [ZkOp::Children { .. }, ZkOp::GetData { .. }]));
    talk.answer([children(&[&node(9, 0), &node(2, 1)]), data("")]);
    assert_eq!(talk.state(request).standing, Standing::Queued);
}

#[test]
fn p01_a_release_of_unknown_outcome_proves_nothing() {
    let mut talk = Talk::held(1, 4);
    talk.release(1, true, false);
    talk.answer([lost()]);
    talk.reattach();
    talk.calls.clear();
    let request = talk.release(1, true, false);
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::NoNode)))]);
    talk.released(request);
    talk.acquire(2, true);
    assert_eq!(talk.calls.len(), 3, "{:?}", talk.ops());
    talk.calls.clear();
}

#[test]
fn p01_a_new_session_knows_nothing_of_the_releases_before() {
    let mut talk = released();
    talk.hear(Input::Expired);
    talk.connect(SESSION + 1);
    talk.answer_sync(done());
    talk.acquire(2, true);
    assert_eq!(talk.calls.len(), 3, "{:?}", talk.ops());
    talk.calls.clear();
}
