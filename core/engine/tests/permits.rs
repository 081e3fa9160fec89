//! Those of one client who wait for permits: a few seats at the store, and permits that are handed on.

mod world;

use std::time::Duration;

use fencelock_engine::options::Options;
use fencelock_engine::request::Mode;
use fencelock_engine::{Acquired, Ask, CallKey, ErrorKind, Grant, How, Name, Patience};
use world::World;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn permits(count: u32, of: u32) -> Ask {
    Ask { mode: Mode::Permits { count, of }, ..Ask::local(1) }
}

fn wait(world: &mut World, client: usize, ask: Ask) -> (u32, CallKey) {
    let (call, acquired) = world.acquire(client, ask);
    assert!(world.is_pending(client, call), "ended at once");
    let Ok(Acquired::Pending(key)) = acquired else { panic!("{acquired:?}") };
    (call, key)
}

fn is_clean(world: &World) {
    let record = world.record();
    assert!(record.holds.is_empty() && record.waiters.is_empty(), "{record:?}");
    assert!(world.clients.iter().all(|client| client.engine.is_settled()));
}

/// A grant to one, and the waits of so many others of its client.
fn crowd(world: &mut World, others: usize, of: u32) -> (Grant, Vec<(u32, CallKey)>) {
    // The first of all has no block: the store cannot know what was given out before.
    let before = world.take_with(0, permits(1, of));
    world.release(0, before.hold).unwrap();
    world.pass(2 * MS);
    let first = world.take_with(0, permits(1, of));
    let calls = (0..others).map(|_| wait(world, 0, permits(1, of))).collect();
    (first, calls)
}

#[test]
fn a_released_permit_goes_to_the_first_who_waits_here_without_a_request() {
    let mut world = World::new(1);
    let (first, calls) = crowd(&mut world, 3, 1);
    let sent = world.clients[0].sent;
    let mut before = first;
    for (call, _) in &calls[..2] {
        world.release(0, before.hold).unwrap();
        let next = world.granted(0, *call);
        assert_eq!(next.how, How::Local);
        assert_eq!(next.token.get(), before.token.get() + 1, "a fresh number of the block");
        before = next;
    }
    assert_eq!(world.clients[0].sent, sent, "the store was not asked");
    assert_eq!(world.record().holds.len(), 1);
    world.release(0, before.hold).unwrap();
    let last = world.granted(0, calls[2].0);
    world.release(0, last.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn no_more_than_eight_seats_of_a_client_wait() {
    let mut world = World::new(1);
    let (first, calls) = crowd(&mut world, 20, 1);
    assert_eq!(world.record().waiters.iter().count(), 8);
    for (_, key) in &calls[..15] {
        assert!(world.cancel(0, *key));
    }
    assert_eq!(world.record().waiters.iter().count(), 5);
    let mut before = first;
    for (call, _) in &calls[15..] {
        world.release(0, before.hold).unwrap();
        before = world.granted(0, *call);
    }
    world.release(0, before.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn nobody_passes_a_larger_request_that_is_first_here() {
    let mut world = World::new(1);
    let first = world.take_with(0, permits(1, 2));
    let second = world.take_with(0, permits(1, 2));
    world.pass(2 * MS);
    let (large, _) = wait(&mut world, 0, permits(2, 2));
    let (small, _) = wait(&mut world, 0, permits(1, 2));
    world.release(0, first.hold).unwrap();
    assert!(world.is_pending(0, large) && world.is_pending(0, small));
    world.release(0, second.hold).unwrap();
    let large = world.granted(0, large);
    assert!(world.is_pending(0, small) && large.how != How::Local);
    world.release(0, large.hold).unwrap();
    let small = world.granted(0, small);
    world.release(0, small.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn who_waits_elsewhere_waits_for_a_local_run_and_no_longer() {
    let mut world = World::new(2);
    let (mut held, mut calls) = crowd(&mut world, 3, 1);
    let (elsewhere, _) = wait(&mut world, 1, permits(1, 1));
    let began = world.time();
    let mut turns = 0;
    while world.is_pending(1, elsewhere) {
        world.pass(3 * MS);
        world.release(0, held.hold).unwrap();
        calls.push(wait_or_take(&mut world));
        let next = calls.iter().position(|(call, _)| !world.is_pending(0, *call));
        turns += 1;
        assert!(turns < 40, "the other client waits on");
        let Some(next) = next else { continue };
        held = world.granted(0, calls.remove(next).0);
    }
    // Each of those who came before it may have a run of its own.
    assert!(world.time().since(began) < 100 * MS);
}

fn wait_or_take(world: &mut World) -> (u32, CallKey) {
    let (call, acquired) = world.acquire(0, permits(1, 1));
    let Ok(Acquired::Pending(key)) = acquired else { panic!("{acquired:?}") };
    (call, key)
}

#[test]
fn a_cancelled_wait_leaves_its_permit_to_the_next() {
    let mut world = World::new(2);
    let held = world.take_with(1, permits(1, 1));
    let (_, first) = wait(&mut world, 0, permits(1, 1));
    let (second, _) = wait(&mut world, 0, permits(1, 1));
    assert!(world.cancel(0, first));
    assert_eq!(world.record().waiters.iter().count(), 1);
    world.release(1, held.hold).unwrap();
    let second = world.granted(0, second);
    world.release(0, second.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn a_try_passes_nobody_who_has_no_seat_yet() {
    let mut world = World::new(1);
    let (first, calls) = crowd(&mut world, 9, 1);
    let (call, _) = world.acquire(0, Ask { patience: Patience::Try, ..permits(1, 1) });
    assert_eq!(world.failed(0, call), ErrorKind::Contended);
    for (_, key) in calls {
        assert!(world.cancel(0, key));
    }
    world.release(0, first.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn without_hand_offs_each_permit_is_the_stores() {
    let options = Options { local_run_grants: 0, ..Options::default() };
    let mut world = World::with(1, options);
    let (first, calls) = crowd(&mut world, 1, 1);
    world.release(0, first.hold).unwrap();
    let next = world.granted(0, calls[0].0);
    assert!(next.how != How::Local && next.token.get() > first.token.get() + 1);
    world.release(0, next.hold).unwrap();
    is_clean(&world);
}

#[test]
fn the_last_who_releases_leaves_no_seat_in_the_queue() {
    let mut world = World::new(3);
    let elsewhere = world.take_with(1, permits(1, 2));
    world.pass(2 * MS);
    let first = world.take_with(0, permits(1, 2));
    let (large, _) = wait(&mut world, 2, permits(2, 2));
    let (second, _) = wait(&mut world, 0, permits(1, 2));
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, second);
    assert_eq!(second.how, How::Local, "and a seat is to spare, behind who wants both");
    let waiters = |world: &World| world.record().waiters.iter().count();
    assert_eq!(waiters(&world), 2, "who has released may be back");
    world.release(0, second.hold).unwrap();
    assert_eq!(waiters(&world), 1, "nobody here wants it, and no time has passed");
    world.release(1, elsewhere.hold).unwrap();
    let large = world.granted(2, large);
    world.release(2, large.hold).unwrap();
    is_clean(&world);
}

#[test]
fn a_seat_to_spare_that_is_granted_first_serves_who_is_next() {
    let mut world = World::new(2);
    let elsewhere = [0; 2].map(|_| world.take_with(1, permits(1, 3)));
    world.pass(2 * MS);
    let first = world.take_with(0, permits(1, 3));
    let calls = [0; 2].map(|_| wait(&mut world, 0, permits(1, 3)));
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, calls[0].0);
    assert_eq!(second.how, How::Local, "and a seat is to spare");
    // Of two grants only the second one, to that seat, is heard of in time.
    world.clients[0].deaf = true;
    world.release(1, elsewhere[0].hold).unwrap();
    world.clients[0].deaf = false;
    world.release(1, elsewhere[1].hold).unwrap();
    let third = world.granted(0, calls[1].0);
    world.pass(SECOND);
    world.release(0, second.hold).unwrap();
    world.release(0, third.hold).unwrap();
    world.pass(SECOND);
    is_clean(&world);
}

#[test]
fn who_gets_a_seat_after_a_resize_is_refused_alone() {
    let mut world = World::new(2);
    let (first, calls) = crowd(&mut world, 9, 1);
    let now = world.time();
    world.clients[1].engine.resize(now, &Name::new("stock").unwrap(), 2, 1_000);
    world.run();
    // One more fits; the last of all gets its seat now, and says the old number.
    let mut held = vec![first, world.granted(0, calls[0].0)];
    assert_eq!(world.failed(0, calls[8].0), ErrorKind::Misconfigured);
    for (call, _) in &calls[1..8] {
        assert!(world.is_pending(0, *call), "it came before");
        world.release(0, held.remove(0).hold).unwrap();
        held.push(world.granted(0, *call));
    }
    for hold in held {
        world.release(0, hold.hold).unwrap();
    }
    world.pass(SECOND);
    is_clean(&world);
}

/// M141: what was asked of the store for one who has released is not kept for who comes after.
#[test]
fn m141_a_longer_lease_is_not_handed_on_with_its_permit() {
    for extends in [false, true] {
        let mut world = World::new(2);
        let before = world.take_with(0, permits(1, 1));
        world.release(0, before.hold).unwrap();
        world.pass(2 * MS);
        let lease = Some(SECOND * 3_600).filter(|_| !extends);
        let first = world.take_with(0, Ask { lease, ..permits(1, 1) });
        if extends {
            world.extend(0, first.hold, SECOND * 3_600);
        }
        let (second, _) = wait(&mut world, 0, permits(1, 1));
        let (elsewhere, _) = wait(&mut world, 1, permits(1, 1));
        world.release(0, first.hold).unwrap();
        world.granted(0, second);
        // That process dies.
        world.disconnect(0);
        world.pass_without(SECOND * 40, &[0]);
        assert!(!world.is_pending(1, elsewhere), "it waits for a lease that nobody asked for");
    }
}
