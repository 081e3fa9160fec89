//! Each request against a real server, and the nodes that it leaves.

mod common;

use std::time::Duration;

use common::{World, granted};
use fencelock_engine::reply::{Abandoned, Broken, Failure, Push, RefusalKind, Released, Standing};
use fencelock_engine::request::{Op, Release};
use fencelock_testkit::recorder::{BOUND, hold, name};
use fencelock_testkit::{eventually, skip_servers};

#[test]
fn a_lock_is_curators() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (one, two, bare) = (world.client("/apps"), world.client("/apps"), world.bare());
    let lock = name("distributed/myLock");
    let (first, second) = (hold(), hold());
    let state = one.take(&lock, first);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::Unknown));
    let names = bare.children("/apps/distributed/myLock");
    let id = first.to_string();
    let uuid = format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]);
    assert_eq!(names, [format!("_c_{uuid}-lock-0000000000")]);
    let (data, stat) = bare.get(&format!("/apps/distributed/myLock/{}", names[0]));
    assert!(data.starts_with("fencelock 1 6000 ") && data.ends_with(" test's own"), "{data}");
    assert_eq!(state.token, stat.czxid as u64 * 1024);
    assert!(stat.ephemeral_owner != 0);

    assert_eq!(two.queue(&lock, second).standing, Standing::Queued);
    let info = two.inspect(&lock).unwrap();
    assert_eq!((info.holds[0].hold, info.waiters[0].hold), (first, second));
    assert_eq!(one.release(&lock, first), Released::Done);
    assert!(granted(&two, &lock, second) > state.token);
    assert_eq!(two.beat(&lock, second).abandoned, Abandoned::No);
    // While anybody is there, the server does not reap the container.
    bare.take_part("/apps/distributed/myLock");
    assert_eq!(two.release(&lock, second), Released::Done);
    let (note, _) = bare.get("/apps/distributed/myLock");
    assert_eq!(note, "fencelock 1 released 1 0");
    assert_eq!(two.release(&lock, second), Released::Unknown);
}

#[test]
fn ours_and_curators_wait_for_each_other() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("mixed");
    let first = hold();
    client.take(&lock, first);
    let theirs = bare.take_part("/mixed");
    let second = hold();
    assert_eq!(client.queue(&lock, second).standing, Standing::Queued);
    let info = client.inspect(&lock).unwrap();
    assert_eq!(info.waiters.len(), 2);
    assert_eq!((&*info.waiters[0].client, &*info.waiters[0].label), ("curator", "10.0.0.7"));
    client.release(&lock, first);
    assert_eq!(client.beat(&lock, second).standing, Standing::Queued, "theirs comes first");
    assert_eq!(client.take(&lock, hold()).standing, Standing::Contended);
    bare.delete(&theirs);
    granted(&client, &lock, second);
    // A holder of Curator says nothing as it goes.
    assert_eq!(client.beat(&lock, second).abandoned, Abandoned::Unknown);
}

#[test]
fn a_holder_hears_of_its_nodes_end_of_waiters_and_of_revocation() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("watched");
    let id = hold();
    client.take(&lock, id);
    let node = format!("/watched/{}", bare.children("/watched")[0]);
    bare.take_part("/watched");
    let wanted = |push: &Push| matches!(push, Push::Wanted { hold, .. } if *hold == id);
    assert!(client.push(BOUND, wanted).is_some(), "of a waiter");
    // The note tells that the hold has lasted, and its watches are set.
    eventually("the note", || (bare.get("/watched").0 == "fencelock 1 held 0 1").then_some(()));
    bare.set(&node, "__REVOKE__");
    assert!(client.push(BOUND, wanted).is_some(), "of Curator's revocation");
    bare.delete(&node);
    let broken = |push: &Push| matches!(push, Push::Broken { hold, .. } if *hold == id);
    assert!(client.push(BOUND, broken).is_some());
    assert_eq!(client.beat(&lock, id).standing, Standing::Gone);
}

#[test]
fn whoever_holds_can_be_asked_to_give_up() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client(""), world.bare());
    let lock = name("asked");
    let asked = |client: &common::ZkClient| client.ask(Op::Revoke(lock.clone())).unwrap().body;
    assert_eq!(asked(&client), fencelock_engine::reply::Body::Revoke(false));
    let id = hold();
    client.take(&lock, id);
    client.release(&lock, id);
    let theirs = bare.take_part("/asked");
    assert_eq!(asked(&client), fencelock_engine::reply::Body::Revoke(true));
    assert_eq!(bare.get(&theirs).0, "__REVOKE__");
}

#[test]
fn a_container_that_was_reaped_is_made_again() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (client, bare) = (world.client("/x/y"), world.bare());
    let lock = name("deep/er");
    let mut last = 0;
    for _ in 0..3 {
        let id = hold();
        let state = client.take(&lock, id);
        assert_eq!(state.standing, Standing::Granted);
        assert!(state.token > last, "tokens rise although the numbers begin again");
        last = state.token;
        client.release(&lock, id);
        // The server may have been quicker.
        for path in ["/x/y/deep/er", "/x/y/deep", "/x/y", "/x"] {
            let _ = world.runtime.block_on(bare.client.delete(path, None));
        }
        assert!(bare.children("/").iter().all(|name| name != "x"));
    }
}

#[test]
fn locks_are_not_nested_and_the_reason_is_told() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let client = world.client("");
    let refused = |lock: &str| {
        let ask = client.request(&name(lock), hold(), true);
        match client.ask(Op::Acquire(ask)) {
            Err(Failure::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(client.take(&name("shop"), hold()).standing, Standing::Granted);
    let refusal = refused("shop/cart");
    assert_eq!(refusal.kind, RefusalKind::Misconfigured);
    assert!(refusal.message.contains("nested"), "{refusal:?}");
    assert_eq!(client.take(&name("mall/shop/cart"), hold()).standing, Standing::Granted);
    let refusal = refused("mall/shop");
    assert!(refusal.message.contains("no part in a lock"), "{refusal:?}");
    assert!(refused("a//b").message.contains("empty part"));
}

#[test]
fn only_whoever_has_the_login_touches_what_a_creator_made() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let at = |login: &str, rest: &str| {
        let servers = world.server.connect_string();
        world.client_at(&format!("zk://{login}{servers}/closed{rest}"))
    };
    let (owner, same) = (at("app:s%3Acret@", "?acl=creator"), at("app:s%3Acret@", ""));
    let (wrong, none) = (at("app:other@", ""), at("", ""));
    let lock = name("own");
    let id = hold();
    assert_eq!(owner.take(&lock, id).standing, Standing::Granted);
    assert_eq!(same.take(&lock, hold()).standing, Standing::Contended);
    for client in [&wrong, &none] {
        let ask = client.request(&lock, hold(), true);
        match client.ask(Op::Acquire(ask)) {
            Err(Failure::Refused(refusal)) => {
                assert_eq!(refusal.kind, RefusalKind::Misconfigured);
                assert!(refusal.message.contains("user:password"), "{refusal:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(owner.release(&lock, id), Released::Done);
}

#[test]
fn break_and_list_see_every_participant() {
    if skip_servers() {
        return;
    }
    let world = World::that_remembers();
    let (client, bare) = (world.client("/l"), world.bare());
    let (ours, theirs) = (name("a/ours"), name("a/theirs"));
    let id = hold();
    client.take(&ours, id);
    let other = hold();
    client.take(&theirs, other);
    client.release(&theirs, other);
    let node = bare.take_part("/l/a/theirs");
    assert_eq!(client.list("", 10), ["a/ours", "a/theirs"]);
    assert_eq!(client.list("a/t", 10), ["a/theirs"]);
    assert_eq!(client.list("b", 10), [""; 0]);
    let seen = client.inspect(&theirs).unwrap().token;
    assert_eq!(client.break_lock(&theirs, seen - 1), Broken::ChangedHands(seen));
    assert_eq!(client.break_lock(&theirs, seen), Broken::Ended(1));
    assert!(!bare.children("/l/a/theirs").iter().any(|name| node.ends_with(name)));
    assert_eq!(client.break_lock(&theirs, seen), Broken::NotHeld);
    let next = hold();
    let state = client.take(&theirs, next);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::Yes));
    assert_eq!(client.break_lock(&theirs, seen), Broken::ChangedHands(state.token));
}

#[test]
fn releasing_and_queueing_again_passes_the_lock_on() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (one, two) = (world.client(""), world.client(""));
    let lock = name("requeued");
    let (first, second, third) = (hold(), hold(), hold());
    one.take(&lock, first);
    two.queue(&lock, second);
    let mut ask = one.request(&lock, third, true);
    ask.after = Some(Release::new(lock.clone(), first, 0));
    assert_eq!(one.acquire(ask).standing, Standing::Queued);
    granted(&two, &lock, second);
    two.release(&lock, second);
    granted(&one, &lock, third);
}

#[test]
fn the_simple_recipe_keeps_one_node() {
    if skip_servers() {
        return;
    }
    let world = World::new();
    let (one, two, bare) =
        (world.client("?recipe=simple"), world.client("?recipe=simple"), world.bare());
    let lock = name("plain/one");
    let (first, second) = (hold(), hold());
    let state = one.take(&lock, first);
    assert_eq!(bare.children("/plain/one"), [""; 0]);
    assert_eq!(state.token, bare.get("/plain/one").1.czxid as u64 * 1024);
    assert_eq!(two.take(&lock, hold()).standing, Standing::Contended);
    assert_eq!(two.queue(&lock, second).standing, Standing::Queued);
    assert_eq!(one.list("", 10), ["plain/one"]);
    assert_eq!(two.inspect(&lock).unwrap().holds[0].hold, first);
    assert_eq!(one.release(&lock, first), Released::Done);
    let token = granted(&two, &lock, second);
    assert_eq!(one.break_lock(&lock, state.token), Broken::ChangedHands(token));
    assert_eq!(one.break_lock(&lock, token), Broken::Ended(1));
    let broken = |push: &Push| matches!(push, Push::Broken { hold, .. } if *hold == second);
    assert!(
        two.push(Duration::from_secs(5), broken).is_some() || {
            two.beat(&lock, second).standing == Standing::Gone
        }
    );
}
