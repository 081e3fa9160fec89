//! Leases: how long a hold lasts, for its holder and at the store.

mod world;

use std::time::Duration;

use fencelock_engine::reply::Push;
use fencelock_engine::request::Beat;
use fencelock_engine::store::{Announce, Caller, Delivery, Record};
use fencelock_engine::{Acquired, Ask, ErrorKind, How, Name, Options, Outcome, Owner, OwnerId};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn promise_07_an_explicit_lease_is_not_renewed_and_max_hold_bounds_the_watchdog() {
    let mut world = World::new(1);
    let grant = world.take_with(0, Ask { lease: Some(SECOND * 5), ..Ask::local(1) });
    let sent = world.clients[0].sent;
    world.pass(SECOND * 4);
    assert_eq!(world.clients[0].sent, sent, "an explicit lease was renewed");
    assert!(world.remaining(0, grant.hold).is_some());
    world.pass(SECOND);
    assert!(world.remaining(0, grant.hold).is_none());
    assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));

    let grant = world.take_with(0, Ask { max_hold: Some(SECOND * 90), ..Ask::local(1) });
    world.pass(SECOND * 89);
    assert!(world.remaining(0, grant.hold).is_some());
    world.pass(SECOND * 2);
    assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));
}

#[test]
fn promise_07_extend_sets_the_lease_from_now_and_never_shortens_it() {
    let mut world = World::new(1);
    let grant = world.take_with(0, Ask { lease: Some(SECOND * 5), ..Ask::local(1) });
    let call = world.extend(0, grant.hold, SECOND * 20);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.pass(SECOND * 10);
    let call = world.extend(0, grant.hold, SECOND);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.pass(SECOND * 8);
    assert!(world.remaining(0, grant.hold).is_some());
    world.pass(SECOND * 3);
    assert!(world.remaining(0, grant.hold).is_none());
    let call = world.extend(0, grant.hold, SECOND * 20);
    assert_eq!(world.failed(0, call), ErrorKind::Lost);
}

#[test]
fn promise_05_a_longer_inner_lease_is_renewed_before_it_returns() {
    let mut world = World::new(1);
    let outer = world.take_with(0, Ask { lease: Some(SECOND), ..Ask::local(1) });
    let inner = world.take_with(0, Ask { lease: Some(SECOND * 10), ..Ask::local(1) });
    assert!(inner.reentry);
    assert!(world.remaining(0, inner.hold).unwrap() > SECOND * 9);
    // The end of nested levels is the latest of their ends.
    assert!(world.remaining(0, outer.hold).unwrap() > SECOND * 9);
    world.pass(SECOND * 5);
    assert!(world.remaining(0, outer.hold).is_some());
}

/// How long the store would keep the lock from now on if its client died.
fn kept(world: &World) -> Duration {
    Duration::from_micros(world.record().holds[0].deadline - world.store_time())
}

#[test]
fn promise_07_a_local_hand_over_keeps_the_lock_no_longer_than_its_new_holder_asks() {
    let mut world = World::new(1);
    // A lease that is worked out back from its end is rounded up.
    let asked = SECOND * 30 + Duration::from_micros(1);
    let long = Ask { lease: Some(SECOND * 6 * 3600), ..Ask::local(1) };
    let first = world.take_with(0, long.clone());
    let (call, _) = world.queue(0, 2);
    let (again, _) = world.acquire(0, Ask { owner: Owner::Local(3), ..long });
    world.pass(SECOND / 2);
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, call);
    assert_eq!(second.how, How::Local);
    assert!(kept(&world) <= asked, "{:?}", kept(&world));
    assert!(world.remaining(0, second.hold).unwrap() <= kept(&world));
    world.pass(SECOND * 100);
    assert!(world.remaining(0, second.hold).is_some(), "the watchdog keeps it");
    assert!(kept(&world) <= asked);
    // And the other way round.
    world.release(0, second.hold).unwrap();
    let third = world.granted(0, again);
    world.pass(SECOND * 3600);
    assert!(world.remaining(0, third.hold).unwrap() > SECOND * 4 * 3600);
}

#[test]
fn promise_07_a_holder_whose_branches_end_by_themselves_is_told_to_the_store_too() {
    let mut world = World::new(1);
    let long = Ask { lease: Some(SECOND * 6 * 3600), ..Ask::local(1) };
    let first = world.take_with(0, long);
    let ends = |seconds| Ask { max_hold: Some(SECOND * seconds), ..Ask::local(2) };
    let (call, _) = world.acquire(0, ends(10));
    let (branch, _) = world.acquire(0, ends(20));
    world.pass(SECOND / 2);
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, call);
    assert_eq!(second.how, How::Local);
    assert_eq!(world.granted(0, branch).token, second.token);
    assert!(kept(&world) <= SECOND * 31, "{:?}", kept(&world));
}

#[test]
fn promise_07_a_cancelled_waiters_lease_is_not_inherited() {
    let mut world = World::new(2);
    let held = world.take(1, 1);
    let long = Ask { lease: Some(SECOND * 6 * 3600), ..Ask::local(1) };
    let (_, acquired) = world.acquire(0, long);
    let Ok(Acquired::Pending(cancelled)) = acquired else { panic!("{acquired:?}") };
    let (call, _) = world.queue(0, 2);
    world.cancel(0, cancelled);
    // The release goes unheard, so that the store grants by the next heartbeat, in full.
    world.clients[0].deaf = true;
    world.release(1, held.hold).unwrap();
    world.pass(SECOND * 4);
    assert!(!world.is_pending(0, call));
    assert!(kept(&world) <= SECOND * 30, "{:?}", kept(&world));
}

#[test]
fn promise_07_a_lease_is_shortened_before_the_store_can_keep_less() {
    let mut world = World::new(1);
    let first = world.take_with(0, Ask { lease: Some(SECOND * 600), ..Ask::local(1) });
    let short = Ask { lease: Some(SECOND * 5), ..Ask::local(2) };
    let (call, _) = world.acquire(0, short);
    world.pass(SECOND / 2);
    // The new holder's lease arrives, and nobody hears so.
    world.clients[0].swallow_replies = true;
    world.release(0, first.hold).unwrap();
    let second = world.granted(0, call);
    assert!(kept(&world) <= SECOND * 5 + Duration::from_millis(1));
    assert!(world.remaining(0, second.hold).unwrap() <= kept(&world));
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    // Its own longer lease lasts, whatever it asked before.
    let extended = world.extend(0, second.hold, SECOND * 60);
    assert_eq!(world.clients[0].outcomes.get(&extended), Some(&Outcome::Extended));
    let inner = world.take_with(0, Ask { lease: Some(SECOND * 2), ..Ask::local(2) });
    assert_eq!(inner.token, second.token);
    world.pass(SECOND * 50);
    assert!(world.remaining(0, second.hold).is_some());
    assert!(world.remaining(0, second.hold).unwrap() <= kept(&world));
}

#[test]
fn promise_07_a_short_lease_is_granted_although_the_claim_is_longer() {
    let mut world = World::new(2);
    let ask = Ask { lease: Some(Duration::from_millis(200)), ..Ask::local(1) };
    let held = world.take_with(0, ask.clone());
    let (call, acquired) = world.acquire(1, ask);
    assert!(matches!(acquired, Ok(Acquired::Pending(_))));
    world.release(0, held.hold).unwrap();
    world.granted(1, call);
}

/// Repeats a renewal of the first client's hold that was sent before, as a late copy of it.
fn repeat(world: &mut World, used: u64, lease: Duration) {
    let Record { holds, .. } = world.record();
    let name = Name::new("stock").unwrap();
    let beat = Beat { used, ..Beat::new(name.clone(), holds[0].hold, lease) };
    let caller = Caller { client: world.clients[0].id.clone(), polling: false };
    let (now, record) = (world.store_time(), world.records.get_mut(&name).unwrap());
    record.beat(now, &caller, &beat, &mut Nobody).unwrap();
}

struct Nobody;

impl Announce for Nobody {
    fn announce(&mut self, _: &str, _: Push) -> Delivery {
        Delivery::Nobody
    }
}

#[test]
fn promise_07_the_lease_of_a_nested_hold_goes_with_it() {
    let mut world = World::new(1);
    let asked = SECOND * 30 + Duration::from_micros(1);
    let outer = world.take(0, 1);
    let nested = |world: &mut World, lease| {
        let inner = world.take(0, 1);
        let call = world.extend(0, inner.hold, lease);
        assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
        assert!(kept(world) > lease - SECOND);
        inner
    };
    let inner = nested(&mut world, SECOND * 6 * 3600);
    world.release(0, inner.hold).unwrap();
    assert!(kept(&world) <= asked, "{:?}", kept(&world));
    assert!(world.remaining(0, outer.hold).unwrap() > SECOND * 29);
    // Late copies of what was asked for the inner one, and before.
    repeat(&mut world, outer.token.get(), SECOND * 6 * 3600);
    repeat(&mut world, outer.token.get(), SECOND);
    assert!(kept(&world) <= asked, "{:?}", kept(&world));
    assert!(world.remaining(0, outer.hold).unwrap() <= kept(&world));
    world.pass(SECOND * 100);
    assert!(world.remaining(0, outer.hold).unwrap() <= kept(&world), "the watchdog keeps it");
    assert!(kept(&world) <= asked);
    // Again, and once more, with the next caller waiting: its token lies above the outer one's.
    for _ in 0..3 {
        let inner = nested(&mut world, SECOND * 600);
        world.release(0, inner.hold).unwrap();
        assert!(kept(&world) <= asked);
    }
    let (call, _) = world.queue(0, 2);
    world.release(0, outer.hold).unwrap();
    let next = world.granted(0, call);
    assert_eq!(next.how, How::Local);
    assert!(next.token > outer.token);
}

#[test]
fn promise_07_what_the_outer_hold_was_promised_outlives_the_inner_one() {
    let mut world = World::new(1);
    // By an extend, under a watchdog.
    let outer = world.take(0, 1);
    let call = world.extend(0, outer.hold, SECOND * 600);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    let inner = world.take(0, 1);
    let call = world.extend(0, inner.hold, SECOND * 3600);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.release(0, inner.hold).unwrap();
    assert!(world.remaining(0, outer.hold).unwrap() > SECOND * 590);
    assert!(world.remaining(0, outer.hold).unwrap() <= kept(&world));
    assert!(kept(&world) < SECOND * 601, "{:?}", kept(&world));
    world.release(0, outer.hold).unwrap();
    // By a lease of its own, also the last moments of it.
    for rest in [SECOND * 4, Duration::from_millis(30)] {
        let outer = world.take_with(0, Ask { lease: Some(SECOND * 5), ..Ask::local(1) });
        let left = world.remaining(0, outer.hold).unwrap();
        let inner = world.take(0, 1);
        world.pass(left - rest);
        world.release(0, inner.hold).unwrap();
        assert!(world.remaining(0, outer.hold).unwrap() >= rest - Duration::from_millis(1));
        assert!(world.remaining(0, outer.hold).unwrap() <= kept(&world));
        assert!(kept(&world) < SECOND * 5, "{:?}", kept(&world));
        world.pass(rest);
        assert_eq!(world.release(0, outer.hold), Err(ErrorKind::Lost));
    }
}

#[test]
fn promise_07_a_nested_lease_that_nobody_waits_for_any_more_goes_as_well() {
    let mut world = World::new(1);
    let outer = world.take_with(0, Ask { lease: Some(SECOND * 30), ..Ask::local(1) });
    let sent = world.clients[0].sent;
    // The store has it, and the answer is lost: the caller gives up.
    world.clients[0].swallow_replies = true;
    let long = Ask { lease: Some(SECOND * 3600), ..Ask::local(1) };
    let (_, acquired) = world.acquire(0, long);
    let Ok(Acquired::Pending(inner)) = acquired else { panic!("{acquired:?}") };
    assert!(kept(&world) > SECOND * 3000);
    world.clients[0].swallow_replies = false;
    world.cancel(0, inner);
    world.pass(SECOND);
    assert!(kept(&world) <= SECOND * 31, "{:?}", kept(&world));
    assert!(world.remaining(0, outer.hold).unwrap() <= kept(&world));
    assert!(world.clients[0].sent < sent + 6, "{:#?}", world.log);
    // A shorter one costs nothing.
    let sent = world.clients[0].sent;
    let inner = world.take_with(0, Ask { lease: Some(SECOND * 5), ..Ask::local(1) });
    world.release(0, inner.hold).unwrap();
    assert_eq!(world.clients[0].sent, sent);
}

#[test]
fn promise_07_an_extend_in_vain_takes_back_nothing_that_was_promised() {
    let mut world = World::new(1);
    let outer = world.take(0, 1);
    let inner = world.take(0, 1);
    world.extend(0, inner.hold, SECOND * 120);
    assert!(world.remaining(0, outer.hold).unwrap() > SECOND * 110, "shared by the levels");
    world.clients[0].swallow_replies = true;
    let vain = world.extend(0, outer.hold, SECOND * 240);
    world.release(0, inner.hold).unwrap();
    let mut end = world.time() + world.remaining(0, outer.hold).unwrap();
    assert!(end < world.time() + SECOND * 31, "of a lease that is over: {end:?}");
    // The extend ends unanswered, and renewals go on once answers come again.
    for second in 0..40 {
        if second == 10 {
            world.clients[0].swallow_replies = false;
            world.disconnect(0);
            world.connect(0);
        }
        world.pass(SECOND);
        let Some(left) = world.remaining(0, outer.hold) else { panic!("lost at {second}") };
        let after = world.time() + left;
        assert!(after >= end, "promised until {end:?}, now until {after:?}");
        end = after;
    }
    assert_eq!(world.failed(0, vain), ErrorKind::Unavailable);
}

#[test]
fn promise_07_a_renewal_brings_no_holds_end_nearer() {
    let five = SECOND * 5;
    let mut world = World::with(1, Options { lease: five, ..Options::default() });
    let leased = |lease| Ask { lease: Some(lease), ..Ask::local(1) };
    // Longer by less than a clock may be wrong, which is not worth a request when it is over.
    let first = world.take_with(0, leased(five + Duration::from_millis(5)));
    let second = world.take_with(0, leased(five));
    world.release(0, first.hold).unwrap();
    // A branch that ends soon wants more, and the watchdog keeps another one meanwhile.
    world.clients[0].slow = true;
    let brief = Some(Duration::from_millis(200));
    let (branch, _) = world.acquire(0, Ask { max_hold: brief, ..leased(SECOND * 20) });
    world.take(0, 1);
    let end = |world: &World| world.time() + world.remaining(0, second.hold).unwrap();
    let before = end(&world);
    world.arrive();
    world.granted(0, branch);
    let rounding = Duration::from_micros(5);
    assert!(end(&world) + rounding >= before, "{:?}, before {before:?}", end(&world));
}

fn explicit() -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new("x").unwrap()), ..Ask::local(0) }
}

/// Extends a hold by an hour, and the answers are lost until the call has failed.
fn extend_in_vain(world: &mut World, client: usize, hold: fencelock_engine::HoldKey) {
    world.clients[client].swallow_replies = true;
    let vain = world.extend(client, hold, SECOND * 3600);
    assert!(longest(world) > SECOND * 3500, "the store has it");
    while world.is_pending(client, vain) {
        world.pass(SECOND);
    }
    assert_eq!(world.failed(client, vain), ErrorKind::Unavailable);
    world.clients[client].swallow_replies = false;
    world.disconnect(client);
    world.connect(client);
}

/// How long the store would keep the lock from now on if all its clients died.
fn longest(world: &World) -> Duration {
    let end = world.record().holds.iter().map(|hold| hold.deadline).max().unwrap();
    Duration::from_micros(end - world.store_time())
}

#[test]
fn promise_07_what_an_explicit_owners_extend_asked_in_vain_is_taken_back() {
    let mut world = World::new(1);
    let asked = SECOND * 30 + Duration::from_micros(1);
    let held = world.take_with(0, explicit());
    extend_in_vain(&mut world, 0, held.hold);
    let sent = world.clients[0].sent;
    world.pass(SECOND);
    assert!(kept(&world) <= asked, "{:?}", kept(&world));
    assert!(world.remaining(0, held.hold).unwrap() <= kept(&world));
    // A late copy of the extend is taken for the same holder's; the next renewal takes it back.
    repeat(&mut world, held.token.get(), SECOND * 3600);
    assert!(kept(&world) > SECOND * 3500);
    world.pass(SECOND * 12);
    assert!(kept(&world) <= asked, "{:?}", kept(&world));
    assert!(world.clients[0].sent - sent < 8, "{:#?}", world.log);
    // What is extended in time stays.
    let call = world.extend(0, held.hold, SECOND * 600);
    assert_eq!(world.clients[0].outcomes.get(&call), Some(&Outcome::Extended));
    world.pass(SECOND * 590);
    assert!(world.remaining(0, held.hold).is_some());
    world.release(0, held.hold).unwrap();
    // The same under an explicit lease, which nothing renews.
    let held = world.take_with(0, Ask { lease: Some(SECOND * 20), ..explicit() });
    extend_in_vain(&mut world, 0, held.hold);
    world.pass(SECOND);
    let left = world.remaining(0, held.hold).unwrap();
    assert!(left <= kept(&world) && kept(&world) < SECOND * 20, "{left:?} of {:?}", kept(&world));
}

#[test]
fn promise_07_each_of_an_explicit_owners_holds_takes_back_its_own() {
    let mut world = World::new(3);
    let asked = SECOND * 30 + Duration::from_micros(1);
    let (one, two) = (world.take_with(0, explicit()), world.take_with(1, explicit()));
    assert_eq!(one.token, two.token);
    for round in 0..4 {
        let (client, hold) = [(0, one.hold), (1, two.hold)][round % 2];
        extend_in_vain(&mut world, client, hold);
        let sent = world.clients[client].sent;
        world.pass(SECOND);
        assert!(longest(&world) <= asked, "round {round}: {:?}", longest(&world));
        assert!(world.clients[client].sent - sent < 10, "{:#?}", world.log);
    }
    // Both are renewed as ever.
    world.pass(SECOND * 100);
    for (client, hold) in [(0, one.hold), (1, two.hold)] {
        assert!(world.remaining(client, hold).unwrap() <= longest(&world));
    }
    let used = world.record().used;
    assert!(used > one.token.get());
    // Whoever releases last has shown less than the other: the next tenure is above all the same.
    world.release(1, two.hold).unwrap();
    world.release(0, one.hold).unwrap();
    assert!(world.record().last >= used, "{:?}", world.record());
}
