//! Permits whose number is the word of those who hold or wait.

mod world;

use std::time::Duration;

use fencelock_engine::request::Mode;
use fencelock_engine::{Ask, ErrorKind, Name, Patience};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn permits(count: u32, of: u32) -> Ask {
    Ask { mode: Mode::Permits { count, of }, ..Ask::local(1) }
}

fn adopting(count: u32, of: u32) -> Ask {
    Ask { adopt: true, ..permits(count, of) }
}

fn tries(ask: Ask) -> Ask {
    Ask { patience: Patience::Try, ..ask }
}

fn is_clean(world: &World) {
    let record = world.record();
    assert!(record.holds.is_empty() && record.waiters.is_empty(), "{record:?}");
}

fn refused(world: &mut World, client: usize, ask: Ask) -> ErrorKind {
    let (call, _) = world.acquire(client, ask);
    world.failed(client, call)
}

#[test]
fn who_adopts_takes_the_number_of_those_who_hold() {
    let mut world = World::new(3);
    let first = world.take_with(0, permits(2, 4));
    assert_eq!(refused(&mut world, 1, permits(1, 2)), ErrorKind::Misconfigured);
    let second = world.take_with(1, adopting(2, 2));
    // It is a try of four permits, and counts against them.
    assert_eq!(refused(&mut world, 2, tries(adopting(1, 9))), ErrorKind::Contended);
    let (third, _) = world.acquire(2, adopting(1, 9));
    assert!(world.is_pending(2, third));
    world.release(0, first.hold).unwrap();
    let third = world.granted(2, third);
    world.pass(SECOND * 300);
    assert!(world.clients.iter().all(|client| client.lost.is_empty()));
    world.release(1, second.hold).unwrap();
    world.release(2, third.hold).unwrap();
    is_clean(&world);
    // Nobody has any: its own counts, and others are held to it.
    let alone = world.take_with(1, adopting(2, 2));
    assert_eq!(refused(&mut world, 0, permits(1, 4)), ErrorKind::Misconfigured);
    world.release(1, alone.hold).unwrap();
    is_clean(&world);
}

#[test]
fn more_than_there_are_is_refused_to_who_adopts() {
    let mut world = World::new(3);
    let one = world.take_with(0, permits(1, 1));
    assert_eq!(refused(&mut world, 1, adopting(2, 3)), ErrorKind::InvalidArgument);
    // It waits as one of them, and the number it was made with is another again.
    let (other, _) = world.acquire(1, adopting(1, 3));
    assert!(world.is_pending(1, other));
    let now = world.time();
    world.clients[2].engine.resize(now, &Name::new("stock").unwrap(), 2, 1_000);
    world.run();
    let other = world.granted(1, other);
    assert_eq!(refused(&mut world, 2, permits(1, 1)), ErrorKind::Misconfigured);
    assert_eq!(refused(&mut world, 2, tries(adopting(1, 1))), ErrorKind::Contended);
    world.release(0, one.hold).unwrap();
    world.release(1, other.hold).unwrap();
    is_clean(&world);
}

#[test]
fn a_lock_has_no_number_to_adopt() {
    let mut world = World::new(2);
    let lock = world.take(0, 1);
    assert_eq!(refused(&mut world, 1, adopting(1, 3)), ErrorKind::Misconfigured);
    world.release(0, lock.hold).unwrap();
    is_clean(&world);
}
