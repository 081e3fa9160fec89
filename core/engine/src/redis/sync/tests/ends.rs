use std::time::Duration;

use super::{World, acquire, terms};
use crate::redis::Inbox;
use crate::redis::sync::{Naming, Replicas};
use crate::reply::Failure::{NotSent, Unknown};
use crate::reply::Standing::{Granted, Unconfirmed};

const LEASE: Duration = Duration::from_secs(30);

fn world() -> World {
    World::new(terms(Replicas::AtLeast(1), Naming::Role), 0)
}

/// As a server that becomes a replica does: it closes, and answers no WAIT.
#[test]
fn a_connection_that_ends_before_replicas_confirmed_leaves_it_unknown() {
    let mut world = world();
    world.mute = true;
    let granted = world.ask(acquire("a", LEASE));
    world.run();
    let gathered = world.ask(acquire("b", LEASE));
    for id in [granted, gathered] {
        assert!(world.confirming.borrow().owes(id));
    }
    world.end();
    assert_eq!(world.said(), [(1, Err(Unknown)), (2, Err(NotSent))]);
    assert!(!world.confirming.borrow().is_owed());
    // The next connection begins anew.
    world.confirming.borrow_mut().begin(Inbox::Subscribed, 0);
    (world.mute, world.replicas) = (false, 1);
    world.ask(acquire("c", LEASE));
    world.run();
    assert_eq!(world.said(), [(3, Ok(Granted))]);
}

#[test]
fn a_wait_that_is_refused_confirms_nothing() {
    let mut world = world();
    world.mute = true;
    world.ask(acquire("a", LEASE));
    world.run();
    world.hear("-UNBLOCKED force unblock from blocking operation, instance state changed\r\n");
    assert_eq!(world.said(), [(1, Ok(Unconfirmed { by: 0, of: 1 }))]);
}

#[test]
fn who_closes_hears_nothing_more() {
    let mut world = world();
    world.mute = true;
    world.ask(acquire("a", LEASE));
    world.run();
    world.ask(acquire("b", LEASE));
    world.confirming.borrow_mut().clear();
    world.end();
    assert!(world.said().is_empty());
}
