//! What happens to servers: killed, restarted one by one and all at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fencelock_nemesis::{Ledger, check};
use fencelock_testkit::eventually;

use crate::world::{LOCK, PATIENT, World, nothing_left};

#[test]
fn the_leader_is_killed_and_all_servers_restart() {
    let Some(mut world) = World::new(3) else { return };
    let before = world.servers.counters(0).unwrap()["zk_znode_count"];
    let (url, ledger) = (world.url(PATIENT), world.file("ledger.db").display().to_string());
    let (mut holder, mut waiter) = (world.actor(&url), world.actor(&url));
    let mut last = 0;
    for round in ["leader", "all"] {
        holder.tell(&format!("acquire {round} c {LOCK}"));
        let held = holder.wait_for("granted", round);
        waiter.tell(&format!("acquire {round} c {LOCK}"));
        holder.wait_for("wanted", round);

        world.history.note("killing", round, &[]);
        if round == "leader" {
            let leader = world.servers.await_quorum();
            world.servers.kill(leader).unwrap();
            assert_ne!(world.servers.await_quorum(), leader);
        } else {
            world.servers.restart_all().unwrap();
            world.servers.await_quorum();
        }
        // Sessions live on with the ensemble, and so do holds and places.
        assert_eq!(holder.ask(&format!("look {round}"), "seen", round).get("valid"), Some("true"));
        assert!(waiter.said("granted", round).is_none());
        let wrote = holder.ask(&format!("write {round} {ledger}"), "wrote", round);
        assert_eq!(wrote.get("accepted"), Some("Ok(true)"));
        holder.ask(&format!("release {round}"), "released", round);
        let granted = waiter.wait_for("granted", round);
        assert_eq!(granted.get("abandoned"), Some("No"));
        assert!(held.number("token") > last && granted.number("token") > held.number("token"));
        last = granted.number("token");
        waiter.ask(&format!("release {round}"), "released", round);

        for at in 0..world.servers.count() {
            if !world.servers.is_running(at) {
                world.servers.restart(at).unwrap();
            }
        }
    }
    let found = check::all(&world.history.since(0)).unwrap();
    assert_eq!((found.grants, found.lost, found.refused_writes), (4, 0, 0));

    // The server takes an empty container away, and with it the sequence of its children. Tokens
    // rise all the same.
    eventually("the lock's nodes are taken away", || {
        (world.servers.counters(0).ok()?["zk_znode_count"] <= before).then_some(())
    });
    holder.tell(&format!("acquire later c {LOCK}"));
    assert!(holder.wait_for("granted", "later").number("token") > last);
    holder.ask("release later", "released", "later");
}

/// Four processes on two locks; every server is killed and restarted in turn.
#[test]
fn a_rolling_restart_under_load_loses_nothing() {
    let Some(mut world) = World::new(3) else { return };
    let (url, ledger) = (world.url(PATIENT), world.file("ledger.db"));
    let locks = ["distributed/first", "distributed/second"];
    let over = AtomicBool::new(false);
    let mut actors: Vec<_> = (0..4).map(|_| world.actor(&url)).collect();
    let turns: usize = thread::scope(|scope| {
        let (over, file) = (&over, ledger.display());
        let workers: Vec<_> = actors
            .iter_mut()
            .enumerate()
            .map(|(index, actor)| {
                let file = file.to_string();
                scope.spawn(move || {
                    let mut turn = 0;
                    while !over.load(Ordering::SeqCst) {
                        let (tag, lock) = (format!("t{turn}"), locks[(index + turn) % 2]);
                        actor.tell(&format!("acquire {tag} c {lock}"));
                        actor.wait_for("granted", &tag);
                        let wrote = actor.ask(&format!("write {tag} {file}"), "wrote", &tag);
                        assert_eq!(wrote.get("accepted"), Some("Ok(true)"));
                        actor.ask(&format!("release {tag}"), "released", &tag);
                        turn += 1;
                    }
                    turn
                })
            })
            .collect();
        for at in 0..3 {
            world.history.note("restarting", &at.to_string(), &[]);
            if let Err(error) = world.servers.restart(at) {
                over.store(true, Ordering::SeqCst);
                panic!("server {at}: {error}");
            }
            world.servers.await_quorum();
        }
        over.store(true, Ordering::SeqCst);
        workers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let found = check::all(&world.history.since(0)).unwrap();
    assert_eq!((found.grants, found.lost, found.refused_writes), (turns, 0, 0));
    let ledger = Ledger::open(&ledger).unwrap();
    let mut written = 0;
    for lock in locks {
        let tokens = ledger.tokens(lock).unwrap();
        assert!(tokens.is_sorted_by(|a, b| a < b), "{tokens:?}");
        written += tokens.len();
        nothing_left(&world.client(), lock);
    }
    assert_eq!(written, turns);
}
