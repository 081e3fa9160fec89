//! Two masters of Sentinels: the old one lives, and another was promoted.

use fencelock_nemesis::check;
use fencelock_testkit::{RedisSentinels, eventually};

use crate::world::{LOCK, World, acquires, trusts};

/// A server and a Sentinel on each of three hosts, and two hosts for clients.
const OLD: usize = 3;
const NEW: usize = 4;

fn start(case: &str) -> Option<(World, RedisSentinels)> {
    let world = World::new(case, 5)?;
    let all = RedisSentinels::builder().places(world.places(3)).start().unwrap();
    Some((world, all))
}

/// Waits until the Sentinels of the two other hosts have promoted one of theirs.
fn promoted(all: &RedisSentinels) -> usize {
    eventually("the others have a master of their own", || {
        let said = [all.says(1)?, all.says(2)?];
        (said[0] == said[1] && said[0] != 0).then_some(said[0])
    })
}

/// The documents say: who reaches only the old side stays there, both sides grant the same lock, and tokens tell
/// them apart.
#[test]
fn a_client_that_reaches_only_the_old_side_stays_there_until_the_network_heals() {
    let case = "a client that reaches only the old side stays there until the network heals";
    let Some((world, all)) = start(case) else { return };
    let mut old = world.actor("old", OLD, &all.url());
    let mut new = world.actor("new", NEW, &all.url());
    let held = acquires(&mut old, "held");
    new.tell(&format!("acquire waits c {LOCK}"));
    old.wait_for("wanted", "held");

    world.part(&[0, OLD], &[1, 2, NEW]);
    promoted(&all);
    // Nobody renews it there; the waiter kept its place.
    let granted = new.wait_for("granted", "waits");
    assert!(granted.number("token") > held.number("token"));
    assert!(trusts(&mut old, "held"), "the old side goes on");
    // What the lock protects takes the later one, and refuses the one before.
    assert!(world.writes(&mut new, "waits"));
    assert!(!world.writes(&mut old, "held"));
    // A grant of the old side that comes later is above it: a token is no proof that its side has the majority.
    old.ask("release held", "released", "held");
    assert!(acquires(&mut old, "again").number("token") > granted.number("token"));

    world.heal();
    old.wait_for("lost", "again");
    assert!(trusts(&mut new, "waits"), "the side that has the majority keeps its hold");
    world.healed();
    old.tell(&format!("acquire last c {LOCK}"));
    new.wait_for("wanted", "waits");
    new.ask("release waits", "released", "waits");
    let last = old.wait_for("granted", "last");
    assert!(last.number("token") > granted.number("token"));
    old.ask("release last", "released", "last");
    old.ask("release again", "unreleased", "again");
    check::all(&world.history.since(0)).unwrap();
}

/// The old master lives, answers and takes writes; but a Sentinel that is reached knows of another.
#[test]
fn a_client_that_reaches_one_sentinel_of_the_majority_leaves_the_old_master() {
    let case = "a client that reaches one Sentinel of the majority leaves the old master";
    let Some((world, all)) = start(case) else { return };
    let mut old = world.actor("old", OLD, &all.url());
    let mut new = world.actor("new", NEW, &all.url());
    acquires(&mut old, "held");
    // What it asked last is there before the ways are cut.
    all.servers[0].cli(&["WAIT", "2", "10000"]).unwrap();

    world.network.part(&[0], &[1, 2]).unwrap();
    let heir = promoted(&all);
    // Both say that they are masters, and a hold is renewed at the right one for longer than its lease.
    let role = |at: usize| {
        let reply = all.servers[at].cli(&["ROLE"]).unwrap();
        redis::from_redis_value::<Vec<redis::Value>>(reply).map(|it| it[0].clone()).unwrap()
    };
    let master = redis::Value::BulkString(b"master".to_vec());
    assert_eq!([role(0), role(heir)], [master.clone(), master]);
    new.tell(&format!("acquire early c {LOCK} wait=4s"));
    let failed = new.wait_for("failed", "early");
    assert_eq!(failed.get("kind"), Some("timed_out"), "{failed}");
    assert!(trusts(&mut old, "held"));

    world.heal();
    new.tell(&format!("acquire waits c {LOCK}"));
    old.wait_for("wanted", "held");
    old.ask("release held", "released", "held");
    new.wait_for("granted", "waits");
    new.ask("release waits", "released", "waits");
    // Nothing was forgotten, so nothing is excused.
    assert_eq!(check::all(&world.history.since(0)).unwrap().excused, 0);
}
