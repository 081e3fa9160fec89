//! Networks that fall apart, made of network namespaces: they need root. Where the machine cannot,
//! the cases are left out and counted so.

use fencelock_nemesis::check;
use fencelock_testkit::{Network, Role, ZooKeeper, eventually, leave_out, skip_servers};

use crate::world::{LOCK, QUICK, World};

/// Servers on hosts of a network of their own, with some hosts more for clients.
fn on_a_network(case: &str, servers: u8, more: u8, lines: &[&str]) -> Option<(Network, World)> {
    if skip_servers() {
        return None;
    }
    let network = match Network::new(servers + more) {
        Ok(network) => network,
        Err(error) => {
            leave_out(case, &error);
            return None;
        }
    };
    let places = (0..usize::from(servers)).map(|at| network.host(at).place()).collect();
    let builder =
        lines.iter().fold(ZooKeeper::builder().places(places), |it, line| it.config(line));
    Some((network, World::of(builder)))
}

#[test]
fn the_leader_and_the_holder_are_cut_into_the_minority() {
    let case = "the leader and the holder are cut into the minority";
    let Some((network, world)) = on_a_network(case, 3, 2, &["syncLimit=10"]) else { return };
    let (holder_host, waiter_host) = (3, 4);
    let url = world.url(QUICK);
    let mut holder = world.actor_behind(&network.host(holder_host).prefix(), &url);
    let mut waiter = world.actor_behind(&network.host(waiter_host).prefix(), &url);
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    waiter.tell(&format!("acquire waits c {LOCK}"));
    holder.wait_for("wanted", "held");

    let leader = world.servers.await_quorum();
    let others: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    world.history.note("parting", "network", &[]);
    network.part(&[leader, holder_host], &[others[0], others[1], waiter_host]).unwrap();
    let lost = holder.wait_for("lost", "held");
    assert!(waiter.said("granted", "waits").is_none_or(|it| it.at > lost.at));
    // The majority elects another leader, which ends the session that it hears nothing of.
    let granted = waiter.wait_for("granted", "waits");
    assert!(lost.at < granted.at, "told at {}, given away at {}", lost.at, granted.at);
    waiter.ask("release waits", "released", "waits");
    assert_eq!(holder.ask("release held", "unreleased", "held").get("kind"), Some("lost"));

    // Nothing is granted in the minority, and there they know it.
    holder.tell(&format!("acquire alone c {LOCK} wait=3s"));
    let failed = holder.wait_for("failed", "alone");
    assert!(["timed_out", "unavailable"].contains(&failed.get("kind").unwrap()), "{failed}");

    network.mend_all().unwrap();
    holder.tell(&format!("acquire again c {LOCK}"));
    assert!(holder.wait_for("granted", "again").number("token") > granted.number("token"));
    holder.ask("release again", "released", "again");
    check::all(&world.history.since(0)).unwrap();
}

/// A follower notices after a while that its leader is silent; until then it answers pings and
/// reads. The session ends before that, at the leader.
#[test]
fn a_follower_is_cut_from_its_leader_under_a_holder() {
    let case = "a follower is cut from its leader under a holder";
    let Some((network, world)) = on_a_network(case, 3, 0, &["syncLimit=150"]) else { return };
    let leader = world.servers.await_quorum();
    let follower = world.servers.follower().unwrap();
    let third = (0..3).find(|at| *at != leader && *at != follower).unwrap();
    let mut holder = world.actor(&world.url_of(&[follower], QUICK));
    let mut waiter = world.actor(&world.url_of(&[leader], QUICK));
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    waiter.tell(&format!("acquire waits c {LOCK}"));
    holder.wait_for("wanted", "held");

    world.history.note("parting", "network", &[]);
    network.part(&[follower], &[leader, third]).unwrap();
    let lost = holder.wait_for("lost", "held");
    // It never heard from the follower that anything is wrong: that one still serves.
    assert_eq!(world.servers.role(follower), Some(Role::Follower));
    let granted = waiter.wait_for("granted", "waits");
    assert!(lost.at < granted.at, "told at {}, given away at {}", lost.at, granted.at);
    assert_eq!(granted.get("abandoned"), Some("Yes"));
    assert_eq!(holder.ask("release held", "unreleased", "held").get("kind"), Some("lost"));
    network.mend_all().unwrap();
    waiter.ask("release waits", "released", "waits");
    check::all(&world.history.since(0)).unwrap();
}

#[test]
fn four_servers_split_two_and_two_grant_nobody() {
    let case = "four servers split two and two grant nobody";
    let Some((network, world)) = on_a_network(case, 4, 0, &["syncLimit=10"]) else { return };
    let mut sides =
        [world.actor(&world.url_of(&[0, 1], QUICK)), world.actor(&world.url_of(&[2, 3], QUICK))];
    sides[0].tell(&format!("acquire held c {LOCK}"));
    let held = sides[0].wait_for("granted", "held");
    world.history.note("parting", "network", &[]);
    network.part(&[0, 1], &[2, 3]).unwrap();
    sides[0].wait_for("lost", "held");
    for at in 0..4 {
        eventually("nobody serves", || world.servers.role(at).is_none().then_some(()));
    }
    for side in &mut sides {
        side.tell(&format!("acquire split c {LOCK} wait=4s"));
    }
    for side in &sides {
        let failed = side.wait_for("failed", "split");
        assert_eq!(failed.get("kind"), Some("unavailable"), "{failed}");
        assert!(failed.get("why").is_some_and(|why| why.contains("quorum")), "{failed}");
    }
    network.mend_all().unwrap();
    world.servers.await_quorum();
    for side in &mut sides {
        side.tell(&format!("acquire mended c {LOCK}"));
        let granted = side.wait_for("granted", "mended");
        assert!(granted.number("token") > held.number("token"));
        side.ask("release mended", "released", "mended");
    }
    check::all(&world.history.since(0)).unwrap();
}
