use std::time::Duration;

use super::{SECOND, World, acquire, beat, release, terms};
use crate::redis::sync::{Naming, Replicas, Terms};
use crate::reply::Standing::{Granted, Queued, Unconfirmed};
use crate::request::{Convert, Mode, Op};
use crate::{HoldId, Name};

const ONE: Replicas = Replicas::AtLeast(1);
const LEASE: Duration = Duration::from_secs(30);

fn world(replicas: Replicas) -> World {
    World::new(terms(replicas, Naming::Role), 0)
}

#[test]
fn a_grant_is_told_when_enough_replicas_have_it_and_not_before() {
    let mut world = world(Replicas::AtLeast(2));
    world.mute = true;
    world.ask(acquire("x", LEASE));
    world.run();
    assert_eq!(world.left, ["script", "WAIT 2 1000"]);
    assert!(world.said().is_empty());
    world.hear(":2\r\n");
    assert_eq!(world.said(), [(1, Ok(Granted))]);
}

#[test]
fn bug_140_a_grant_that_too_few_replicas_have_is_unconfirmed() {
    let mut world = world(Replicas::AtLeast(2));
    world.replicas = 1;
    world.ask(acquire("x", LEASE));
    world.ask(beat(&[30]));
    world.run();
    let short = Unconfirmed { by: 1, of: 2 };
    assert_eq!(world.said(), [(1, Ok(short)), (2, Ok(short))]);
}

#[test]
fn what_grants_nothing_waits_for_nobody() {
    let mut world = world(ONE);
    (world.queues, world.mute) = (true, true);
    world.ask(acquire("x", LEASE));
    world.run();
    assert_eq!(world.said(), [(1, Ok(Queued))]);
    world.hear(":0\r\n");
    assert!(world.said().is_empty());
}

#[test]
fn requests_gather_while_a_wait_is_out_and_share_the_next() {
    let mut world = world(ONE);
    (world.mute, world.replicas) = (true, 1);
    world.ask(acquire("a", LEASE));
    world.run();
    for name in ["b", "c", "d"] {
        world.ask(acquire(name, LEASE));
    }
    world.run();
    assert_eq!(world.left, ["script", "WAIT 1 1000"]);
    world.mute = false;
    world.hear(":1\r\n");
    world.run();
    assert_eq!(world.left[2..], ["script", "script", "script", "WAIT 1 1000"]);
    assert_eq!(world.said().len(), 4);
    world.run();
    assert_eq!(world.left.len(), 6, "nothing has gathered");
}

#[test]
fn nothing_waits_longer_than_a_third_of_the_shortest_lease_nor_for_ever() {
    let ms = Duration::from_millis;
    for (timeout, ops, bound) in [
        (SECOND, vec![acquire("x", LEASE)], "1000"),
        (SECOND * 9, vec![acquire("x", ms(600)), beat(&[30, 3])], "200"),
        (SECOND * 9, vec![acquire("x", LEASE), beat(&[30, 3])], "1000"),
        (ms(50), vec![beat(&[30])], "50"),
        (Duration::from_micros(10), vec![beat(&[30])], "1"),
    ] {
        let mut world = World::new(Terms { timeout, ..terms(ONE, Naming::Role) }, 0);
        for op in ops {
            world.ask(op);
        }
        world.run();
        assert_eq!(world.left.last().unwrap(), &format!("WAIT 1 {bound}"));
    }
}

#[test]
fn their_disks_confirm_where_that_is_asked() {
    let mut world = World::new(Terms { disk: true, ..terms(ONE, Naming::Role) }, 0);
    for (replicas, standing) in [(1, Granted), (0, Unconfirmed { by: 0, of: 1 })] {
        world.replicas = replicas;
        let id = world.ask(acquire("x", LEASE));
        world.run();
        assert_eq!(world.left.last().unwrap(), "WAITAOF 0 1 1000");
        assert_eq!(world.said(), [(id.0, Ok(standing))]);
    }
}

#[test]
fn who_reads_and_is_let_write_waits_for_replicas_too() {
    let mut world = world(ONE);
    let convert = Convert::new(Name::new("x").unwrap(), HoldId(1), Mode::Exclusive, SECOND, 0);
    world.ask(Op::Convert(convert));
    world.run();
    assert_eq!(world.left, ["script", "WAIT 1 333"]);
}

#[test]
fn an_acquire_does_not_overtake_the_release_of_its_lock() {
    let mut world = world(ONE);
    world.replicas = 1;
    world.ask(release("x"));
    world.ask(acquire("x", LEASE));
    world.ask(acquire("y", LEASE));
    world.run();
    assert_eq!(world.said(), [(3, Ok(Granted))], "another lock waits for nothing");
    world.run();
    assert!(world.said().is_empty());
    assert!(world.main.answered().is_some(), "the release is answered");
    world.run();
    // A release that comes later is not waited for.
    world.ask(acquire("x", LEASE));
    world.ask(release("x"));
    world.run();
    assert_eq!(world.said().len(), 2);
}
