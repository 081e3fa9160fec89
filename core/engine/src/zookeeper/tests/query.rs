use std::collections::BTreeMap;

use super::*;
use crate::reply::Broken;
use crate::request::{Break, RequestId};
use crate::zookeeper::ZkWrite;

#[test]
fn inspect_shows_ours_and_curators() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Inspect(name()));
    assert!(matches!(
        talk.ops()[..],
        [ZkOp::Sync { .. }, ZkOp::Children { .. }, ZkOp::GetData { .. }]
    ));
    let curator = "_c_6ef91d2f-1b1a-4a0c-9f10-0a7a5d1f7c11-lock-0000000004";
    talk.answer([done(), children(&[&node(2, 5), curator]), data("fencelock 1 released 3 0")]);
    let stat = |czxid| Stat { czxid, ..Stat::default() };
    let first = ZkReply::Data { data: b"10.0.0.7".to_vec(), stat: stat(20) };
    let second = ZkReply::Data { data: b"fencelock 1 6000 00aa shop 2".to_vec(), stat: stat(21) };
    talk.answer([Ok(first), Ok(second)]);
    let Ok(Body::Inspect(Some(info))) = talk.reply(request) else { panic!() };
    assert_eq!((info.holds.len(), info.waiters.len()), (1, 1));
    assert_eq!(info.holds[0].client, "curator");
    assert_eq!(info.holds[0].label, "10.0.0.7");
    assert_eq!((info.token, info.last_token), (20 * 1024, 22 * 1024 - 1));
    assert_eq!(
        (info.waiters[0].client.as_str(), info.waiters[0].label.as_str()),
        ("00aa", "shop 2")
    );
    assert_eq!(info.waiters[0].hold, hold(2));
}

#[test]
fn a_lock_that_is_not_there_is_not_shown() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Inspect(name()));
    talk.answer([done(), Err(ZkError::NoNode), Err(ZkError::NoNode)]);
    assert_eq!(talk.reply(request), Ok(Body::Inspect(None)));
}

fn ask_break(talk: &mut Talk, token: u64, hold: Option<HoldId>) -> RequestId {
    talk.ask(Op::Break(Break { lock: name(), token, hold }))
}

fn made(czxid: i64) -> Result {
    Ok(ZkReply::Exists(Some(Stat { czxid, ..Stat::default() })))
}

#[test]
fn break_ends_the_holder_that_was_seen_and_says_so_to_the_next() {
    let mut talk = Talk::new();
    let request = ask_break(&mut talk, 20 * 1024 + 3, None);
    talk.answer([done(), children(&[&node(2, 5), &node(1, 4)])]);
    assert_eq!(talk.ops(), [&ZkOp::Exists { path: path(&node(1, 4)), watch: false }]);
    talk.answer([made(20)]);
    assert_eq!(
        talk.ops(),
        [&ZkOp::Multi(vec![
            ZkWrite::Set { path: LOCK.to_owned(), data: b"fencelock 1 released 4 1".to_vec() },
            ZkWrite::Delete { path: path(&node(1, 4)) },
        ])]
    );
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::Ended(1))));

    let request = ask_break(&mut talk, 20 * 1024, None);
    talk.answer([done(), children(&[])]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::NotHeld)));
}

#[test]
fn break_leaves_who_came_later() {
    let mut talk = Talk::new();
    let request = ask_break(&mut talk, 20 * 1024 + 1023, None);
    talk.answer([done(), children(&[&node(2, 5)])]);
    talk.answer([made(21)]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::ChangedHands(21 * 1024))));

    // The holder goes by itself, while it is looked at and while it is deleted.
    let request = ask_break(&mut talk, 20 * 1024, None);
    talk.answer([done(), children(&[&node(1, 4), &node(2, 5)])]);
    talk.answer([Ok(ZkReply::Exists(None))]);
    talk.answer([children(&[&node(2, 5)])]);
    talk.answer([made(21)]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::ChangedHands(21 * 1024))));

    let request = ask_break(&mut talk, 20 * 1024, None);
    talk.answer([done(), children(&[&node(1, 4)])]);
    talk.answer([made(20)]);
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::NoNode)))]);
    talk.answer([children(&[])]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::NotHeld)));
}

#[test]
fn break_of_a_hold_that_is_not_first_ends_nothing() {
    let mut talk = Talk::new();
    let request = ask_break(&mut talk, u64::MAX, Some(hold(2)));
    talk.answer([done(), children(&[&node(1, 4), &node(2, 5)])]);
    talk.answer([made(20)]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::NotHeld)));
}

#[test]
fn in_the_simple_recipe_a_break_ends_the_hold_that_the_node_names() {
    for (owner, number, broken) in [
        (SESSION + 1, 1, Broken::Ended(1)),
        (SESSION + 1, 2, Broken::NotHeld),
        (0, 1, Broken::NotHeld),
    ] {
        let mut talk = Talk::with(Recipe::Simple);
        let request = ask_break(&mut talk, 20 * 1024, Some(hold(1)));
        let data = format!("{} fencelock 1 6000 5 tests", hold(number)).into_bytes();
        let stat = Stat { czxid: 20, ephemeral_owner: owner, ..Stat::default() };
        talk.answer([done(), Ok(ZkReply::Data { data, stat })]);
        if broken != Broken::NotHeld {
            talk.answer([done()]);
        }
        assert_eq!(talk.reply(request), Ok(Body::Break(broken)), "{owner} {number}");
    }
}

/// Somebody else may have the one name by now.
#[test]
fn in_the_simple_recipe_a_break_that_finds_no_node_looks_again() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = ask_break(&mut talk, 20 * 1024, None);
    talk.answer([done(), exists(Stat { czxid: 20, ephemeral_owner: 9, ..Stat::default() })]);
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoNode)))]);
    assert_eq!(talk.ops(), [&ZkOp::Exists { path: LOCK.to_owned(), watch: false }]);
    talk.answer([exists(Stat { czxid: 21, ephemeral_owner: 9, ..Stat::default() })]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::ChangedHands(21 * 1024))));
}

#[test]
fn break_goes_without_the_note_where_that_may_not_be_written() {
    let mut talk = Talk::new();
    let request = ask_break(&mut talk, 20 * 1024, Some(hold(1)));
    talk.answer([done(), children(&[&node(1, 4)])]);
    talk.answer([made(20)]);
    talk.answer([Err(ZkError::At(0, Box::new(ZkError::NoAuth)))]);
    assert_eq!(talk.ops(), [&ZkOp::Delete { path: path(&node(1, 4)) }]);
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Break(Broken::Ended(1))));
}

#[test]
fn the_token_of_a_holder_that_may_not_be_read_is_shown() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Inspect(name()));
    talk.answer([done(), children(&[&node(1, 4)]), data("fencelock 1 released 3 0")]);
    talk.answer([Err(ZkError::NoAuth)]);
    talk.answer([made(20)]);
    let Ok(Body::Inspect(Some(info))) = talk.reply(request) else { panic!() };
    assert_eq!((info.holds.len(), info.token), (1, 20 * 1024));
}

#[test]
fn a_holder_is_asked_in_curators_way() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Revoke(name()));
    talk.answer([done(), children(&[&node(1, 4)])]);
    let set = ZkOp::Set { path: path(&node(1, 4)), data: b"__REVOKE__".to_vec() };
    assert_eq!(talk.ops(), [&set]);
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Revoke(true)));
}

#[test]
fn list_walks_the_tree_and_looks_only_where_the_prefix_leads() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::List { prefix: "shop/".to_owned(), limit: 10 });
    talk.answer([done(), children(&["zookeeper", "shop", "other"])]);
    assert_eq!(talk.ops(), [&ZkOp::Children { path: "/shop".to_owned(), watch: false }]);
    talk.answer([children(&["cart", "a%0Ab", "empty"])]);
    assert_eq!(talk.calls.len(), 3);
    talk.answer([children(&["lock-0000000001"]), children(&[&node(1, 4)]), Err(ZkError::NoNode)]);
    let Ok(Body::List(names)) = talk.reply(request) else { panic!() };
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    assert_eq!(names, ["shop/a\nb", "shop/cart"]);
}

#[test]
fn in_the_simple_recipe_a_lock_is_a_node_of_a_session() {
    let mut talk = Talk::with(Recipe::Simple);
    let request = talk.ask(Op::List { prefix: String::new(), limit: 10 });
    let node = |ephemeral_owner, names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(ZkReply::Children { names, stat: Stat { ephemeral_owner, ..Stat::default() } })
    };
    talk.answer([done(), node(0, &["shop", "till", "zookeeper"])]);
    talk.answer([node(0, &["cart", "empty"]), node(SESSION + 1, &[])]);
    talk.answer([node(SESSION, &[]), node(0, &[])]);
    let Ok(Body::List(names)) = talk.reply(request) else { panic!() };
    let names: Vec<&str> = names.iter().map(Name::as_str).collect();
    assert_eq!(names, ["shop/cart", "till"]);
}

/// Answers what a listing asks of a tree, given by its inner nodes and their children, and gives
/// the names and how many nodes were listed.
fn list(tree: &BTreeMap<&str, Vec<String>>, prefix: &str, limit: usize) -> (Vec<String>, usize) {
    let mut talk = Talk::new();
    let request = talk.ask(Op::List { prefix: prefix.to_owned(), limit });
    let mut listed = 0;
    while !talk.calls.is_empty() {
        let answers: Vec<Result> = talk
            .ops()
            .into_iter()
            .map(|op| match op {
                ZkOp::Children { path, .. } => {
                    listed += 1;
                    // What has no children of the tree's own is a lock that somebody has.
                    let lock = [node(1, 4)];
                    let names = tree.get(&**path).map_or(&lock[..], |names| names);
                    children(&names.iter().map(String::as_str).collect::<Vec<_>>())
                }
                _ => done(),
            })
            .collect();
        talk.answer(answers);
    }
    let Ok(Body::List(names)) = talk.reply(request) else { panic!() };
    (names.iter().map(|name| name.as_str().to_owned()).collect(), listed)
}

#[test]
fn a_listing_ends_with_its_limit_and_gives_the_first_by_their_bytes() {
    let texts = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    // A slash comes after a hyphen, and before a digit.
    let mut tree =
        BTreeMap::from([("/", texts(&["b", "a0", "a", "a-b"])), ("/a", texts(&["z", "c"]))]);
    assert_eq!(list(&tree, "", 9).0, ["a-b", "a/c", "a/z", "a0", "b"]);
    assert_eq!(list(&tree, "", 2).0, ["a-b", "a/c"]);
    assert_eq!(list(&tree, "a/", 9).0, ["a/c", "a/z"]);
    assert_eq!(list(&tree, "a/z", 9).0, ["a/z"]);
    assert_eq!(list(&tree, "", 0).0, [""; 0]);
    // Far more than the limit, in no order, and more than are remembered.
    let many: Vec<String> =
        (0..40_000_u64).map(|at| format!("{:05}", (at * 7_919) % 40_000)).collect();
    tree.insert("/b", many);
    let (names, listed) = list(&tree, "b/", 100);
    assert_eq!((&*names[0], &*names[99], names.len()), ("b/00000", "b/00099", 100));
    assert!(listed < 300, "{listed}");
    let (names, listed) = list(&tree, "b/", usize::MAX);
    assert!(names.is_sorted());
    // Each once; the root, and the big one once for each part that is remembered.
    assert_eq!((names.len(), listed), (40_000, 40_000 + 1 + 3));
}

#[test]
fn a_ping_goes_through_the_leader() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Time);
    assert_eq!(talk.ops(), [&ZkOp::Sync { path: "/".to_owned() }]);
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Time));
}
