//! Branches of one owner: several of its calls at once.

mod world;

use std::time::Duration;

use fencelock_engine::{Acquired, Ask, CallKey, ErrorKind, Grant, How, Outcome, Patience};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn leased(owner: u64, seconds: u32) -> Ask {
    Ask { lease: Some(SECOND * seconds), ..Ask::local(owner) }
}

/// Holds for 5 s, and has a re-entry for 30 s under way, whose renewal is lost.
fn pending_join(world: &mut World) -> (Grant, u32, CallKey) {
    let outer = world.take_with(0, leased(1, 5));
    world.pass(SECOND / 10);
    world.clients[0].swallow_replies = true;
    let (call, acquired) = world.acquire(0, leased(1, 30));
    let Ok(Acquired::Pending(key)) = acquired else { panic!("{acquired:?}") };
    assert!(world.is_pending(0, call));
    (outer, call, key)
}

#[test]
fn promise_05_a_re_entry_whose_outer_hold_is_released_meanwhile_gets_the_free_lock() {
    let mut world = World::new(1);
    let (outer, call, _) = pending_join(&mut world);
    world.clients[0].swallow_replies = false;
    world.release(0, outer.hold).unwrap();
    world.pass(SECOND * 4);
    let inner = world.granted(0, call);
    assert!(!inner.reentry && inner.token > outer.token, "{inner:?}");
    world.release(0, inner.hold).unwrap();
    assert!(world.record().holds.is_empty());
}

#[test]
fn promise_01_a_re_entry_whose_outer_hold_is_released_never_joins_a_strangers() {
    let mut world = World::new(1);
    let outer = world.take_with(0, leased(1, 5));
    world.pass(SECOND / 10);
    let (second, _) = world.queue(0, 2);
    world.clients[0].swallow_replies = true;
    let (call, _) = world.acquire(0, leased(1, 30));
    let (third, _) = world.queue(0, 3);
    world.clients[0].swallow_replies = false;
    world.release(0, outer.hold).unwrap();
    world.pass(SECOND);
    // Each at its place in time: the second came before, the third after.
    let stranger = world.granted(0, second);
    assert!(world.is_pending(0, call) && world.is_pending(0, third));
    world.pass(SECOND * 30);
    world.release(0, stranger.hold).unwrap();
    let inner = world.granted(0, call);
    assert!(!inner.reentry && inner.token > stranger.token, "{inner:?}");
    assert!(world.is_pending(0, third));
    world.release(0, inner.hold).unwrap();
    world.granted(0, third);
}

#[test]
fn promise_11_a_re_entry_without_its_outer_hold_can_be_cancelled_and_ends_in_time() {
    let mut world = World::new(1);
    let (outer, _, key) = pending_join(&mut world);
    world.begin_release(0, outer.hold).unwrap();
    assert!(world.cancel(0, key));
    world.clients[0].swallow_replies = false;
    world.pass(SECOND * 10);
    assert!(world.record().holds.is_empty() && world.record().waiters.is_empty());

    let outer = world.take_with(0, leased(1, 5));
    world.disconnect(0);
    let bound = world.time() + SECOND;
    let ask = Ask { patience: Patience::Until(bound), ..leased(1, 30) };
    let (call, _) = world.acquire(0, ask);
    world.begin_release(0, outer.hold).unwrap();
    world.pass(SECOND * 2);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable);
}

#[test]
fn promise_14_a_try_that_waited_to_join_does_not_wait_behind_others() {
    let mut world = World::new(1);
    let outer = world.take_with(0, leased(1, 5));
    world.pass(SECOND / 10);
    let (second, _) = world.queue(0, 2);
    world.clients[0].swallow_replies = true;
    let (call, _) = world.acquire(0, Ask { patience: Patience::Try, ..leased(1, 30) });
    world.clients[0].swallow_replies = false;
    world.release(0, outer.hold).unwrap();
    assert_eq!(world.failed(0, call), ErrorKind::Contended);
    world.pass(SECOND);
    world.granted(0, second);
}

#[test]
fn promise_05_a_grant_serves_all_branches_of_its_owner() {
    let mut world = World::new(1);
    world.disconnect(0);
    let (first, _) = world.queue(0, 1);
    let (stranger, _) = world.queue(0, 2);
    let (second, _) = world.queue(0, 1);
    let (long, _) = world.acquire(0, leased(1, 100));
    world.connect(0);
    world.pass(SECOND);
    let grants = [first, second, long].map(|call| world.granted(0, call));
    assert!(grants.iter().all(|grant| grant.token == grants[0].token), "{grants:?}");
    assert_eq!(grants.each_ref().map(|grant| grant.reentry), [false, true, true]);
    let lock = world.clients[0].lock;
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 1), 3);
    for grant in grants {
        assert!(world.is_pending(0, stranger));
        world.release(0, grant.hold).unwrap();
    }
    assert_eq!(world.granted(0, stranger).how, How::Local);
}

#[test]
fn promise_05_a_local_hand_over_and_a_push_serve_all_branches_too() {
    for client in [0, 1] {
        let mut world = World::new(2);
        let held = world.take(0, 1);
        let calls = [2, 3, 2, 2].map(|owner| world.queue(client, owner).0);
        world.pass(SECOND / 2);
        world.release(0, held.hold).unwrap();
        let first = world.granted(client, calls[0]);
        assert_eq!(first.how, if client == 0 { How::Local } else { How::Push });
        for call in &calls[2..] {
            assert_eq!(world.granted(client, *call).token, first.token);
        }
        assert!(world.is_pending(client, calls[1]), "another owner");
    }
}

#[test]
fn promise_05_a_branch_may_need_a_renewal_that_its_first_one_does_not() {
    let mut world = World::new(2);
    let held = world.take(1, 1);
    let (short, _) = world.acquire(0, leased(1, 2));
    let (long, _) = world.acquire(0, leased(1, 60));
    let (watched, _) = world.queue(0, 1);
    world.release(1, held.hold).unwrap();
    world.pass(SECOND / 10);
    let grants = [short, long, watched].map(|call| world.granted(0, call));
    assert!(grants.iter().all(|grant| grant.token == grants[0].token));
    world.pass(SECOND * 50);
    assert!(world.remaining(0, grants[1].hold).unwrap() > SECOND * 8);
    for grant in &grants {
        world.release(0, grant.hold).unwrap();
    }
    assert!(world.record().holds.is_empty());
}

#[test]
fn promise_14_an_extend_ends_with_the_release_of_its_hold() {
    let mut world = World::new(1);
    let first = world.take(0, 1);
    let other = world.take(0, 1);
    world.clients[0].swallow_replies = true;
    let pending = world.extend(0, first.hold, SECOND * 100);
    let others = world.extend(0, other.hold, SECOND * 200);
    world.release(0, first.hold).unwrap();
    assert_eq!(world.failed(0, pending), ErrorKind::NotHeld);
    assert!(world.is_pending(0, others), "its hold is there");
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    assert_eq!(world.clients[0].outcomes.get(&others), Some(&Outcome::Extended));
}
