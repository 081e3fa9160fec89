//! A writer that reads on.

use super::*;
use crate::reply::{Abandoned, Broken, RefusalKind, Standing};
use crate::request::{Break, Convert, Mode};
use crate::zookeeper::{NodeKind, ZkWrite};

fn read(number: u128, sequence: i32) -> String {
    node_of(number, sequence, Kind::Read)
}

fn write(number: u128, sequence: i32) -> String {
    node_of(number, sequence, Kind::Write)
}

fn at(part: usize, error: ZkError) -> Result {
    Err(ZkError::At(part, Box::new(error)))
}

/// What turns the node: a word for who comes next, the reader's node, the writer's end.
fn turning(number: u128, sequence: i32, word: &str) -> ZkOp {
    let data = format!("fencelock 1 6000 {:016x} tests", 5).into_bytes();
    let kind = NodeKind::Ephemeral;
    ZkOp::Multi(vec![
        ZkWrite::Set { path: LOCK.to_owned(), data: word.as_bytes().to_vec() },
        ZkWrite::Create { path: path(&read(number, sequence)), data, kind },
        ZkWrite::Delete { path: path(&write(number, sequence)) },
    ])
}

impl Talk {
    fn converts(&mut self, number: u128, to: Mode, used: u64) -> RequestId {
        let ask = Convert::new(name(), hold(number), to, TIMEOUT, u64::MAX);
        self.ask(Op::Convert(Convert { used, ..ask }))
    }

    fn acquires(&mut self, number: u128, mode: Mode, owner: Option<&str>) -> RequestId {
        let wait = Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
        let owner = owner.map(|owner| crate::id::OwnerId::new(owner).unwrap());
        let ask = Acquire::new(name(), hold(number), TIMEOUT, u64::MAX);
        self.ask(Op::Acquire(Acquire { wait, mode, owner, read_write: true, ..ask }))
    }

    /// Number 1 writes, its node has the number 5, and its predecessor went without a word.
    fn writes(owner: Option<&str>) -> Talk {
        let mut talk = Talk::new();
        talk.acquires(1, Mode::Exclusive, owner);
        let own = write(1, 5);
        talk.answer([made(&own, 100), children(&[&own]), data("fencelock 1 held 4 1")]);
        talk.events();
        talk
    }

    fn converted(&mut self, request: RequestId) -> State {
        match self.reply(request) {
            Ok(Body::Convert(state)) => state,
            other => panic!("{other:?}"),
        }
    }

    fn unsupported(&mut self, request: RequestId) -> String {
        match self.reply(request) {
            Err(Failure::Refused(refusal)) if refusal.kind == RefusalKind::Unsupported => {
                refusal.message
            }
            other => panic!("{other:?}"),
        }
    }
}

const FIRST: u64 = 100 * 1024;

/// M92, M94, M126: one transaction, a token above the writer's and below those that wait, and no `held`.
#[test]
fn a_downgrade_is_one_transaction_under_the_next_token() {
    let mut talk = Talk::writes(None);
    let request = talk.converts(1, Mode::Shared, FIRST + 3);
    assert_eq!(talk.ops(), [&turning(1, 5, "fencelock 1 released 5 0")]);
    // The watch of the writer's node fires as that goes, and says nothing.
    talk.fired(path(&write(1, 5)), Change::Deleted);
    talk.answer([done()]);
    let state = talk.converted(request);
    assert_eq!((state.standing, state.token), (Standing::Granted, FIRST + 4));
    assert_eq!((state.end, state.abandoned), (FIRST + 4, Abandoned::No));
    // Again is the same, and asks nothing.
    let request = talk.converts(1, Mode::Shared, FIRST + 4);
    assert_eq!(talk.converted(request).token, FIRST + 4);
    assert!(talk.calls.is_empty());
    // It goes as a reader, with what the writer said.
    let request = talk.release(1, true, false);
    let delete = ZkWrite::Delete { path: path(&read(1, 5)) };
    let word = b"fencelock 1 released 5 0".to_vec();
    let word = ZkWrite::Set { path: LOCK.to_owned(), data: word };
    assert_eq!(talk.ops(), [&ZkOp::Multi(vec![word, delete])]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
    // Its node took a number of its own: who comes next lists.
    talk.acquires(2, Mode::Exclusive, None);
    assert!(matches!(talk.ops()[..], [ZkOp::Create { .. }, ZkOp::Children { .. }, _]));
}

#[test]
fn a_lost_answer_is_asked_for_again() {
    let again = [Ok(ZkReply::Done), at(1, ZkError::NodeExists)];
    for second in again {
        let mut talk = Talk::writes(None);
        let request = talk.converts(1, Mode::Shared, FIRST);
        talk.answer([lost()]);
        assert_eq!(talk.reply(request), Err(Failure::Unknown));
        talk.hear(Input::Disconnected { reason: String::new() });
        talk.hear(Input::Reattached);
        talk.answer_sync(done());
        assert_eq!(talk.ops(), [&turning(1, 5, "fencelock 1 released 5 0")]);
        // Nothing is known of the node meanwhile: no word of it is believed.
        talk.fired(path(&write(1, 5)), Change::Deleted);
        assert_eq!(talk.pushes(), []);
        let request = talk.converts(1, Mode::Shared, FIRST);
        talk.answer([second]);
        assert_eq!(talk.converted(request).token, FIRST + 1);
    }
}

/// The hold is released before it is known which node it has: both are tried.
#[test]
fn a_release_after_a_lost_answer_finds_the_node() {
    let mut talk = Talk::writes(None);
    talk.converts(1, Mode::Shared, FIRST);
    talk.answer([lost()]);
    let request = talk.release(1, true, false);
    let leave = |node: String| {
        let word = b"fencelock 1 released 5 0".to_vec();
        let word = ZkWrite::Set { path: LOCK.to_owned(), data: word };
        ZkOp::Multi(vec![word, ZkWrite::Delete { path: path(&node) }])
    };
    assert_eq!(talk.ops(), [&leave(write(1, 5))]);
    talk.answer([at(1, ZkError::NoNode)]);
    assert_eq!(talk.ops(), [&leave(read(1, 5))]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

/// Whoever asked to read on had written by then: what is lost after that is a reader's.
#[test]
fn a_loss_after_a_lost_answer_is_a_readers() {
    let mut talk = Talk::writes(None);
    talk.converts(1, Mode::Shared, FIRST);
    talk.answer([lost()]);
    let request = talk.release(1, true, true);
    let word = b"fencelock 1 released 5 0".to_vec();
    let word = ZkWrite::Set { path: LOCK.to_owned(), data: word };
    let delete = ZkWrite::Delete { path: path(&write(1, 5)) };
    assert_eq!(talk.ops(), [&ZkOp::Multi(vec![word, delete])]);
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

#[test]
fn a_session_that_ends_meanwhile_ends_the_hold() {
    let mut talk = Talk::writes(None);
    let request = talk.converts(1, Mode::Shared, FIRST);
    talk.calls.clear();
    talk.hear(Input::Expired);
    assert_eq!(talk.reply(request), Err(Failure::Unknown));
    talk.connect(SESSION + 1);
    talk.answer_sync(done());
    talk.calls.clear();
    let request = talk.converts(1, Mode::Shared, FIRST);
    assert_eq!(talk.converted(request).standing, Standing::Gone);
}

#[test]
fn a_break_meanwhile_ends_the_hold() {
    let mut talk = Talk::writes(None);
    let request = talk.converts(1, Mode::Shared, FIRST);
    talk.answer([at(2, ZkError::NoNode)]);
    assert_eq!(talk.converted(request).standing, Standing::Gone);
    // And who breaks what was turned since it looked ends nothing, but looks again.
    let mut talk = Talk::new();
    let request = talk.ask(Op::Break(Break { lock: name(), token: FIRST, hold: None }));
    let stat = |czxid| exists(Stat { czxid, ..Stat::default() });
    talk.answer([done(), children(&[&write(1, 5)])]);
    talk.answer([stat(100)]);
    talk.answer([at(1, ZkError::NoNode)]);
    talk.answer([children(&[&read(1, 5)])]);
    talk.answer([stat(103)]);
    let later = Broken::ChangedHands(103 * 1024);
    assert_eq!(talk.reply(request), Ok(Body::Break(later)));
}

/// Where the note may not be written it is turned without.
#[test]
fn the_word_is_left_out_where_it_may_not_be_said() {
    let mut talk = Talk::writes(None);
    let request = talk.converts(1, Mode::Shared, FIRST);
    talk.answer([at(0, ZkError::NoAuth)]);
    match talk.ops()[..] {
        [ZkOp::Multi(parts)] => assert_eq!(parts.len(), 2),
        ref other => panic!("{other:?}"),
    }
    talk.answer([done()]);
    assert_eq!(talk.converted(request).standing, Standing::Granted);
    // May no node be made, it stays a writer's, and can be released as such.
    let mut talk = Talk::writes(None);
    let request = talk.converts(1, Mode::Shared, FIRST);
    talk.answer([at(1, ZkError::NoAuth)]);
    assert!(matches!(talk.reply(request), Err(Failure::Refused(_))));
    talk.release(1, true, false);
    match talk.ops()[..] {
        [ZkOp::Multi(parts)] => {
            assert_eq!(parts[1], ZkWrite::Delete { path: path(&write(1, 5)) });
        }
        ref other => panic!("{other:?}"),
    }
}

/// M122: of an explicit owner, the last that writes leaves a reader.
#[test]
fn levels_keep_their_mode() {
    let mut talk = Talk::writes(Some("job"));
    let request = talk.acquires(2, Mode::Shared, Some("job"));
    assert_eq!(talk.state(request).token, FIRST);
    let request = talk.release(1, true, false);
    assert_eq!(talk.released(request), Released::Done);
    assert_eq!(talk.ops(), [&turning(1, 5, "fencelock 1 released 5 0")]);
    // While it is being turned its owner would wait for itself to write, and is let in to read.
    let request = talk.acquires(3, Mode::Exclusive, Some("job"));
    assert_eq!(talk.state(request).standing, Standing::Deadlock);
    let request = talk.beat(2);
    talk.answer([done(), exists(Stat { num_children: 1, ..Stat::default() })]);
    let state = talk.state(request);
    assert_eq!((state.standing, state.token), (Standing::Granted, FIRST), "it keeps its own");
    let request = talk.acquires(4, Mode::Shared, Some("job"));
    assert_eq!(talk.state(request).token, FIRST + 1);
    // A write that was lost is told, by the note and by the readers that it leaves.
    let mut talk = Talk::writes(Some("job"));
    talk.acquires(2, Mode::Shared, Some("job"));
    talk.release(1, true, true);
    assert_eq!(talk.ops(), [&turning(1, 5, "fencelock 1 released 5 1")]);
}

/// What leaves while it is being turned is joined by nobody, and goes once that is known.
#[test]
fn a_node_that_is_to_go_is_not_joined_while_it_is_turned() {
    let mut talk = Talk::writes(Some("job"));
    talk.acquires(2, Mode::Shared, Some("job"));
    talk.release(1, true, false);
    let turn = std::mem::take(&mut talk.calls);
    let request = talk.release(2, true, false);
    assert!(talk.calls.is_empty(), "its name is not known yet");
    talk.acquires(3, Mode::Shared, Some("job"));
    assert!(matches!(talk.ops()[..], [ZkOp::Create { .. }, ZkOp::Children { .. }, _]));
    talk.calls = turn;
    talk.answer([done()]);
    match talk.ops()[..] {
        [ZkOp::Multi(parts)] => {
            assert_eq!(parts[1], ZkWrite::Delete { path: path(&read(1, 5)) });
        }
        ref other => panic!("{other:?}"),
    }
    talk.answer([done()]);
    assert_eq!(talk.released(request), Released::Done);
}

/// M127: whoever waits by Curator's mutex looks at no reader.
#[test]
fn a_plain_locks_node_stays_a_writers() {
    let mut talk = Talk::held(1, 5);
    let request = talk.converts(1, Mode::Shared, FIRST);
    let message = talk.unsupported(request);
    assert!(message.contains("InterProcessMutex"), "{message}");
    assert!(talk.calls.is_empty());
}

/// No transaction can check that nobody else reads, and who queued meanwhile has an earlier token.
#[test]
fn nobody_is_upgraded() {
    let mut talk = Talk::new();
    talk.acquires(1, Mode::Shared, None);
    talk.answer([made(&read(1, 5), 100), children(&[&read(1, 5)]), data("")]);
    talk.events();
    let request = talk.converts(1, Mode::Exclusive, FIRST);
    let message = talk.unsupported(request);
    assert!(message.contains("earlier token"), "{message}");
}
