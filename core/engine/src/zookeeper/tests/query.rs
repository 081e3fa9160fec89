use super::*;
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

#[test]
fn break_ends_the_holder_and_says_so_to_the_next() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Break(name()));
    talk.answer([done(), children(&[&node(2, 5), &node(1, 4)])]);
    assert_eq!(
        talk.ops(),
        [&ZkOp::Multi(vec![
            ZkWrite::Set { path: LOCK.to_owned(), data: b"fencelock 1 released 4 1".to_vec() },
            ZkWrite::Delete { path: path(&node(1, 4)) },
        ])]
    );
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Break(1)));

    let request = talk.ask(Op::Break(name()));
    talk.answer([done(), children(&[])]);
    assert_eq!(talk.reply(request), Ok(Body::Break(0)));

    let request = talk.ask(Op::Break(name()));
    talk.answer([done(), children(&[&node(1, 4)])]);
    talk.answer([Err(ZkError::At(1, Box::new(ZkError::NoNode)))]);
    assert_eq!(talk.reply(request), Ok(Body::Break(0)), "it went by itself");
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
fn a_ping_goes_through_the_leader() {
    let mut talk = Talk::new();
    let request = talk.ask(Op::Time);
    assert_eq!(talk.ops(), [&ZkOp::Sync { path: "/".to_owned() }]);
    talk.answer([done()]);
    assert_eq!(talk.reply(request), Ok(Body::Time));
}
