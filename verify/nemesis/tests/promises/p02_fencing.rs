//! Promise 2: tokens rise, whatever the store forgets.

use fencelock_nemesis::{Actor, check};
use fencelock_testkit::{RedisServer, eventually};

use crate::world::{LOCK, QUICK, World, nothing_left, on_redis, queued};

on_redis! {
    p02_p08_flushall_between_and_during_holds,
    p02_p08_p09_the_lock_s_keys_are_evicted,
    p02_p08_p09_the_server_dies_and_comes_back_empty,
}

/// What the store forgets of one lock, or of all.
type Forget = fn(&mut RedisServer);

fn flush(server: &mut RedisServer) {
    server.cli(&["FLUSHALL"]).unwrap();
}

/// The key of the lock itself and that of its queue.
fn evict(server: &mut RedisServer) {
    let keys = server.cli(&["KEYS", "*"]).unwrap();
    let ::redis::Value::Array(keys) = keys else { panic!("{keys:?}") };
    for key in keys {
        let ::redis::Value::BulkString(key) = key else { panic!("{key:?}") };
        server.cli(&["DEL", std::str::from_utf8(&key).unwrap()]).unwrap();
    }
}

fn restart(server: &mut RedisServer) {
    server.restart().unwrap();
}

fn p02_p08_flushall_between_and_during_holds(world: &mut World) {
    forgotten(world, flush);
}

fn p02_p08_p09_the_lock_s_keys_are_evicted(world: &mut World) {
    forgotten(world, evict);
}

fn p02_p08_p09_the_server_dies_and_comes_back_empty(world: &mut World) {
    forgotten(world, restart);
}

fn forgotten(world: &mut World, forget: Forget) {
    let forget = |world: &mut World| {
        world.history.note("forgetting", "store", &[]);
        forget(world.server());
        world.history.note("forgot", "store", &[]);
    };
    let url = world.url(QUICK);
    let mut actors: Vec<Actor> = (0..5).map(|_| world.actor(&url)).collect();
    let mut last = 0;
    let mut rises = |token: u64| {
        assert!(token > last, "{token} after {last}");
        last = token;
    };
    // Between holds.
    for (round, actor) in actors.iter_mut().enumerate().take(3) {
        let tag = format!("between{round}");
        actor.tell(&format!("acquire {tag} c {LOCK}"));
        rises(actor.wait_for("granted", &tag).number("token"));
        actor.ask(&format!("release {tag}"), "released", &tag);
        forget(world);
    }
    // During a hold, with others in line.
    let watcher = world.client(QUICK);
    actors[0].tell(&format!("acquire held c {LOCK}"));
    rises(actors[0].wait_for("granted", "held").number("token"));
    for (index, actor) in actors.iter_mut().enumerate().skip(1) {
        actor.tell(&format!("acquire waits c {LOCK}"));
        queued(&watcher, index);
    }
    forget(world);
    actors[0].wait_for("lost", "held");
    assert_eq!(actors[0].ask("release held", "unreleased", "held").get("kind"), Some("lost"));
    // Each releases, so that the next is served; in which order is looked at elsewhere.
    let mut waiting: Vec<usize> = (1..5).collect();
    let mut tokens = Vec::new();
    while !waiting.is_empty() {
        let granted = eventually("a grant", || {
            waiting.iter().copied().find(|index| actors[*index].said("granted", "waits").is_some())
        });
        waiting.retain(|index| *index != granted);
        let actor = &mut actors[granted];
        tokens.push(actor.wait_for("granted", "waits").number("token"));
        if actor.said("lost", "waits").is_none() {
            actor.tell("release waits");
        }
    }
    tokens.into_iter().for_each(&mut rises);
    nothing_left(&watcher, LOCK);
    for actor in &actors[1..] {
        eventually("the end of a hold", || {
            ["released", "unreleased", "lost"].iter().find_map(|end| actor.said(end, "waits"))
        });
    }
    let found = check::all(&world.history.since(0)).unwrap();
    assert_eq!(found.grants, 8);
}
