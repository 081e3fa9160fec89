//! A waiter of an explicit owner that already holds the lock, and whose
//! grant it has to find by a poll, is never renewed: the store takes its `used` of 0 for a late copy.

mod world;

use std::time::Duration;

use fencelock_engine::{Ask, Outcome, Owner, OwnerId};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn explicit(owner: &str) -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new(owner).unwrap()), ..Ask::local(0) }
}

#[test]
fn a_co_hold_found_by_a_poll_is_renewed_and_granted() {
    let mut world = World::new(3);
    let stranger = world.take(0, 1);
    let (one, _) = world.acquire(1, explicit("x"));
    let (two, _) = world.acquire(2, explicit("x"));
    world.clients[2].deaf = true;
    world.pass(SECOND / 2);
    world.release(0, stranger.hold).unwrap();
    world.granted(1, one);
    let sent = world.clients[2].sent;
    world.pass(SECOND);
    assert!(
        matches!(world.clients[2].outcomes.get(&two), Some(Outcome::Granted(_))),
        "after {} requests in a second: {:?}",
        world.clients[2].sent - sent,
        world.record().holds,
    );
    assert!(world.clients[2].sent - sent < 10);
}

#[test]
fn a_co_hold_whose_reply_was_lost_is_renewed() {
    let mut world = World::new(2);
    let _first = world.take_with(0, explicit("x"));
    world.clients[1].swallow_replies = true;
    let (two, _) = world.acquire(1, explicit("x"));
    world.disconnect(1);
    world.clients[1].swallow_replies = false;
    world.pass(SECOND * 21);
    let sent = world.clients[1].sent;
    world.connect(1);
    world.pass(SECOND);
    assert!(
        matches!(world.clients[1].outcomes.get(&two), Some(Outcome::Granted(_))),
        "after {} requests in a second: {:?}",
        world.clients[1].sent - sent,
        world.record().holds,
    );
    assert!(world.clients[1].sent - sent < 10);
}
