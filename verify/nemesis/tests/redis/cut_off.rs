//! A master of a cluster that is cut off from the others, with a client on its side.

use fencelock_nemesis::check;
use fencelock_testkit::{RedisCluster, eventually};

use crate::world::{LOCK, World, acquires, trusts};

/// Two hosts for clients, behind those of the six servers.
const OLD: usize = 6;
const NEW: usize = 7;

/// The documents say: a master that is cut off goes on for as long as its node-timeout, which is 2 s here; then it
/// refuses. What it granted meanwhile is lost, and tokens tell it from what is granted by its replica.
#[test]
fn a_master_that_is_cut_off_stops_after_its_node_timeout() {
    let case = "a master that is cut off stops after its node-timeout";
    let Some(world) = World::new(case, 8) else { return };
    let cluster = RedisCluster::builder().places(world.places(6)).start().unwrap();
    let owner = cluster.master_of(cluster.slot(LOCK)).unwrap();
    let mut old = world.actor("old", OLD, &cluster.url());
    let mut new = world.actor("new", NEW, &cluster.url());
    let held = acquires(&mut old, "held");
    new.tell(&format!("acquire waits c {LOCK}"));
    old.wait_for("wanted", "held");

    let others: Vec<usize> = (0..6).filter(|it| *it != owner).chain([NEW]).collect();
    world.part(&[owner, OLD], &others);
    let granted = new.wait_for("granted", "waits");
    assert!(granted.number("token") > held.number("token"));
    // The old one serves nobody by now.
    let lost = old.wait_for("lost", "held");
    assert!(!trusts(&mut old, "held"), "{lost}");
    old.tell(&format!("acquire alone c {LOCK} wait=3s"));
    let failed = old.wait_for("failed", "alone");
    assert!(["timed_out", "unavailable"].contains(&failed.get("kind").unwrap()), "{failed}");
    assert!(world.writes(&mut new, "waits"));
    assert!(!world.writes(&mut old, "held"));

    world.heal();
    old.tell(&format!("acquire last c {LOCK}"));
    new.wait_for("wanted", "waits");
    assert!(trusts(&mut new, "waits"));
    world.healed();
    new.ask("release waits", "released", "waits");
    let last = old.wait_for("granted", "last");
    assert!(last.number("token") > granted.number("token"));
    old.ask("release last", "released", "last");
    old.ask("release held", "unreleased", "held");
    eventually("the old master follows", || {
        (cluster.master_of(cluster.slot(LOCK)) != Some(owner)).then_some(())
    });
    check::all(&world.history.since(0)).unwrap();
}
