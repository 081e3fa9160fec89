//! A late copy of an acquire that asked for hours, executed after the
//! repeat that asked for less and was granted: nothing is told to the store, and it keeps the hours.

mod world;

use std::time::Duration;

use fencelock_engine::reply::Push;
use fencelock_engine::request::Acquire;
use fencelock_engine::store::{Announce, Caller, Delivery};
use fencelock_engine::{Acquired, Ask, HoldId, LossReason, Name};
use world::World;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

struct Nobody;

impl Announce for Nobody {
    fn announce(&mut self, _: &str, _: Push) -> Delivery {
        Delivery::Nobody
    }
}

/// An acquire of the lock as it comes out of an old connection, late.
fn arrives_late(world: &mut World, hold: HoldId, lease: Duration) {
    let (name, now) = (Name::new("stock").unwrap(), world.store_time());
    let late = Acquire::new(name.clone(), hold, lease, now + 1_000_000);
    let caller = Caller { client: world.clients[0].id.clone(), polling: false };
    let record = world.records.entry(name).or_default();
    record.acquire(now, &caller, &late, &mut Nobody).unwrap();
}

fn kept(world: &World, at: usize) -> Duration {
    Duration::from_micros(world.record().holds[at].deadline - world.store_time())
}

#[test]
fn a_late_copy_of_a_longer_acquire_does_not_keep_the_lock_for_hours() {
    let mut world = World::new(1);
    let name = Name::new("stock").unwrap();
    let before = world.record();
    world.clients[0].swallow_replies = true;
    let (_, acquired) = world.acquire(0, Ask { lease: Some(HOUR * 6), ..Ask::local(1) });
    let Ok(Acquired::Pending(first)) = acquired else { panic!("{acquired:?}") };
    let hold = world.record().holds[0].hold;
    // Undone: it stays in the pipe of a connection that is cut, and the store has not seen it yet.
    world.records.insert(name.clone(), before);
    let mut short = Ask::local(2);
    short.lease = Some(SECOND * 30);
    let (second, _) = world.acquire(0, short);
    world.disconnect(0);
    world.cancel(0, first);
    world.clients[0].swallow_replies = false;
    world.connect(0);
    world.pass(SECOND / 10);
    world.granted(0, second);
    assert_eq!(world.record().holds[0].hold, hold, "the same hold, asked again");
    assert!(kept(&world, 0) < SECOND * 31, "kept for {:?} already", kept(&world, 0));
    // Now the first copy comes out of the old connection.
    arrives_late(&mut world, hold, HOUR * 6);
    world.pass(SECOND * 12);
    assert!(kept(&world, 0) < SECOND * 31, "kept for {:?}", kept(&world, 0));
}

/// A store that lost its memory no longer knows the hold, although a late copy of its acquire has taken
/// the lock for the same id.
#[test]
fn a_hold_that_only_a_late_copy_took_again_is_gone_and_given_back() {
    let mut world = World::new(1);
    let grant = world.take(0, 1);
    let hold = world.record().holds[0].hold;
    world.pass(SECOND);
    world.records.clear();
    arrives_late(&mut world, hold, SECOND * 30);
    assert!(world.record().token > grant.token.get());
    world.pass(SECOND * 12);
    assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::Gone));
    assert!(world.record().holds.is_empty(), "nobody has it: {:?}", world.record().holds);
}
