//! What nobody waits for any more is said, or the watches of all who ever waited would be kept.

use super::*;

#[test]
fn a_waiter_that_leaves_takes_its_watch_along() {
    let mut talk = Talk::waiting(2, 5);
    let before = path(&node(1, 4));
    assert!(talk.machine.is_watched(&before) && talk.unwatched.is_empty());
    let request = talk.release(2, false, false);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Left);
    assert_eq!(talk.unwatched, [before.as_str()]);
    assert!(!talk.machine.is_watched(&before));
}

#[test]
fn a_holder_that_lasts_takes_its_watches_along() {
    let mut talk = Talk::held(1, 4);
    talk.pass(Duration::from_millis(20));
    talk.answer([done(), data("x"), children(&[&node(1, 4)])]);
    talk.release(1, true, false);
    talk.answer([done()]);
    assert_eq!(talk.unwatched, [path(&node(1, 4)), LOCK.to_owned()]);
}

#[test]
fn a_watch_that_fired_is_not_spoken_of() {
    let mut talk = Talk::waiting(2, 5);
    talk.fired(path(&node(1, 4)), Change::Deleted);
    talk.answer([children(&[&node(2, 5)]), data("fencelock 1 released 4 0")]);
    talk.release(2, true, false);
    talk.answer([done()]);
    assert!(talk.unwatched.is_empty(), "{:?}", talk.unwatched);
}

#[test]
fn a_waiter_that_looks_again_says_so_before_it_watches_anew() {
    let mut talk = Talk::waiting(2, 5);
    talk.reattach();
    assert_eq!(talk.unwatched, [path(&node(1, 4))]);
    talk.answer([children(&[&node(1, 4), &node(2, 5)]), data("")]);
    assert!(talk.machine.is_watched(&path(&node(1, 4))));
    assert_eq!(talk.ops(), [&ZkOp::GetData { path: path(&node(1, 4)), watch: true }]);
    assert_eq!(talk.unwatched.len(), 1);
}

#[test]
fn while_another_hold_waits_for_the_node_it_stays_watched() {
    let mut talk = Talk::with(Recipe::Simple);
    for number in [1, 2] {
        talk.acquire(number, true);
        talk.answer([Err(ZkError::NodeExists)]);
        talk.answer([data("another's")]);
    }
    for (number, left) in [(1, 0), (2, 1)] {
        talk.release(number, false, false);
        talk.answer([data("another's")]);
        assert_eq!(talk.unwatched.len(), left, "after {number}");
    }
}
