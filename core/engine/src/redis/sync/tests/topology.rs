use std::time::Duration;

use super::{SECOND, World, acquire, terms};
use crate::redis::Value;
use crate::redis::sync::{Naming, Replicas, named_in_cluster, named_in_role};
use crate::reply::Standing::{Granted, Unconfirmed};

const LEASE: Duration = Duration::from_secs(30);

/// One master with two replicas, one of which has failed, and another's.
const NODES: &str = "aa 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-5460\n\
    bb 10.0.0.2:6379@16379,host slave aa 0 1700000000000 1 connected\n\
    cc 10.0.0.3:6379@16379 slave,fail aa 1700000000000 1700000000000 1 disconnected\n\
    dd 10.0.0.4:6379@16379 master - 0 1700000000000 2 connected 5461-16383\n\
    ee 10.0.0.5:6379@16379 slave dd 0 1700000000000 2 connected\n";

fn outcome(world: &mut World) -> crate::reply::Standing {
    world.ask(acquire("x", LEASE));
    world.run();
    world.said().pop().unwrap().1.unwrap()
}

#[test]
fn of_all_those_that_are_down_count() {
    let mut world = World::new(terms(Replicas::All, Naming::Told), 0);
    world.confirming.borrow_mut().name(2);
    (world.replicas, world.role) = (1, 1);
    assert_eq!(outcome(&mut world), Unconfirmed { by: 1, of: 2 });
    assert_eq!(world.left, ["script", "WAIT 2 1000", "ROLE"]);
    (world.replicas, world.role) = (2, 2);
    assert_eq!(outcome(&mut world), Granted);
}

#[test]
fn without_any_replica_one_is_waited_for() {
    for naming in [Naming::Told, Naming::Role, Naming::Nodes] {
        let mut world = World::new(terms(Replicas::All, naming), 0);
        assert_eq!(outcome(&mut world), Unconfirmed { by: 0, of: 1 });
    }
}

#[test]
fn bug_164_a_newcomer_is_not_counted_in_place_of_one_that_was_named() {
    let mut world = World::new(terms(Replicas::All, Naming::Told), 0);
    world.confirming.borrow_mut().name(1);
    // Of two that are connected one has it: it may be the one that nobody named.
    (world.replicas, world.role) = (1, 2);
    assert_eq!(outcome(&mut world), Unconfirmed { by: 1, of: 2 });
    world.replicas = 2;
    assert_eq!(outcome(&mut world), Granted);
    assert_eq!(world.left[4], "WAIT 2 1000", "and is waited for from then on");
}

#[test]
fn a_server_alone_counts_the_most_that_it_has_named_on_this_connection() {
    let mut world = World::new(terms(Replicas::All, Naming::Role), 1);
    (world.replicas, world.role) = (2, 2);
    assert_eq!(outcome(&mut world), Granted);
    (world.replicas, world.role) = (1, 1);
    assert_eq!(outcome(&mut world), Unconfirmed { by: 1, of: 2 });
}

#[test]
fn a_cluster_is_asked_again_after_a_while() {
    let mut world = World::new(terms(Replicas::All, Naming::Nodes), 1);
    (world.replicas, world.role, world.nodes) = (1, 1, NODES);
    assert_eq!(outcome(&mut world), Granted);
    assert_eq!(world.left, ["script", "WAIT 1 1000", "ROLE"]);
    world.now = world.now + SECOND * 5;
    assert_eq!(outcome(&mut world), Unconfirmed { by: 1, of: 2 }, "it counts at once");
    assert_eq!(world.left[5..], ["ROLE", "CLUSTER NODES"]);
}

#[test]
fn replicas_are_counted_out_of_what_servers_say() {
    let bytes = |text: &str| Value::Bytes(text.as_bytes().to_vec());
    assert_eq!(named_in_cluster(&bytes(NODES)), Some(2));
    assert_eq!(named_in_cluster(&bytes(&NODES.replace("myself,", ""))), None);
    let role = |role: &str, count: usize| {
        let replicas = Value::Array(vec![Value::Array(Vec::new()); count]);
        Value::Array(vec![bytes(role), Value::Int(5), replicas])
    };
    assert_eq!(named_in_role(&role("master", 3)), Some(3));
    assert_eq!(named_in_role(&role("slave", 3)), None);
    assert_eq!(named_in_role(&Value::Nil), None);
}
