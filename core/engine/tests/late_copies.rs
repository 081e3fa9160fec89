//! A late copy of an acquire that asked for hours, executed after the
//! repeat that asked for less and was granted: nothing is told to the store, and it keeps the hours.

mod world;

use std::time::Duration;

use fencelock_engine::reply::Push;
use fencelock_engine::request::Acquire;
use fencelock_engine::store::{Announce, Caller, Delivery};
use fencelock_engine::{Acquired, Ask, Name};
use world::World;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

struct Nobody;

impl Announce for Nobody {
    fn announce(&mut self, _: &str, _: Push) -> Delivery {
        Delivery::Nobody
    }
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
    let now = world.store_time();
    let late = Acquire::new(name.clone(), hold, HOUR * 6, now + 1_000_000);
    let caller = Caller { client: world.clients[0].id.clone(), polling: false };
    world.records.get_mut(&name).unwrap().acquire(now, &caller, &late, &mut Nobody).unwrap();
    world.pass(SECOND * 12);
    assert!(kept(&world, 0) < SECOND * 31, "kept for {:?}", kept(&world, 0));
}
