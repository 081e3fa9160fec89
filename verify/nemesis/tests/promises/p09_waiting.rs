//! Promise 9: first come, first served, over the dead.

use fencelock_nemesis::{Actor, History, Record, check};

use crate::world::{LOCK, World, nothing_left, on_redis, queued, shows};

mod sqlite {
    #[test]
    fn sixty_waiters_of_which_a_third_are_killed() {
        super::sixty_waiters_of_which_a_third_are_killed(&mut crate::world::World::sqlite());
    }
}

/// A dead waiter that was handed the lock costs a claim; the holder's lease is long.
const OPTIONS: &str = "lease=60s&claim=4s&request_timeout=10s";
const PROCESSES: usize = 20;

fn two_hundred_waiters_of_which_a_third_are_killed(world: &mut World) {
    a_third_are_killed(world, 10);
}

/// Each client looks at the file by itself: two hundred of them keep two cores busy.
fn sixty_waiters_of_which_a_third_are_killed(world: &mut World) {
    a_third_are_killed(world, 3);
}

/// Twenty processes with `each` clients; every third process is killed while it waits.
fn a_third_are_killed(world: &mut World, each: usize) {
    let url = world.url(OPTIONS);
    let mut holder = world.actor(&url);
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    let watcher = world.client(OPTIONS);
    let mut actors: Vec<Actor> =
        (0..PROCESSES).map(|index| Actor::start(&world.history, &format!("p{index}"))).collect();
    for client in 0..each {
        for actor in &mut actors {
            actor.tell(&format!("open c{client} {url}"));
        }
    }
    let mut place = 0;
    for client in 0..each {
        for actor in &mut actors {
            actor.wait_for("opened", &format!("c{client}"));
            actor.tell(&format!("acquire w{client} c{client} {LOCK}"));
            // In line one after the other, so that the order is known.
            place += 1;
            queued(&watcher, place);
        }
    }
    let mut expected = Vec::new();
    for client in 0..each {
        let alive = (0..PROCESSES).filter(|index| index % 3 != 1);
        expected.extend(alive.map(|index| (format!("p{index}"), format!("w{client}"))));
    }
    for actor in actors.iter_mut().skip(1).step_by(3) {
        actor.kill();
    }
    let mut from = world.history.len();
    holder.ask("release held", "released", "held");
    for (index, (name, tag)) in expected.iter().enumerate() {
        let granted = next_grant(&world.history, &mut from);
        assert_eq!((&*granted.who, &*granted.tag), (&**name, &**tag), "the {index}th grant");
        let actor = actors.iter_mut().find(|it| it.name() == name).unwrap();
        actor.tell(&format!("release {tag}"));
    }
    // The dead keep their places for a while, in case that they come back; they get nothing.
    shows(&watcher, "a free lock", |info| {
        (info.holds.is_empty() && info.waiters.iter().all(|it| it.silent)).then_some(())
    });
    let (name, tag) = expected.last().unwrap();
    actors.iter().find(|it| it.name() == name).unwrap().wait_for("released", tag);
    let found = check::all(&world.history.since(0)).unwrap();
    assert_eq!(found.grants, 1 + expected.len());
}

/// The next grant in the history, whoever has it.
fn next_grant(history: &History, from: &mut usize) -> Record {
    let start = *from;
    let mut seen = 0;
    let found = history.find(start, fencelock_nemesis::LIMIT, |it| {
        seen += 1;
        it.is("granted")
    });
    *from = start + seen;
    found.expect("a grant within 30 s")
}

on_redis! {
    two_hundred_waiters_of_which_a_third_are_killed,
    the_order_of_waiters_survives_a_server_that_comes_back_empty,
}

fn the_order_of_waiters_survives_a_server_that_comes_back_empty(world: &mut World) {
    let url = world.url("lease=3s&claim=900ms&request_timeout=500ms");
    let watcher = world.client(OPTIONS);
    let mut holder = world.actor(&url);
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    let mut waiters: Vec<Actor> = (0..6).map(|_| world.actor(&url)).collect();
    for (index, actor) in waiters.iter_mut().enumerate() {
        actor.tell(&format!("acquire waits c {LOCK}"));
        queued(&watcher, index + 1);
    }
    let mut from = world.history.len();
    world.history.note("forgetting", "store", &[]);
    world.server().restart().unwrap();
    world.history.note("forgot", "store", &[]);
    // Nobody has the lock now: it goes to whoever is back first. The others line up as they were.
    let first = next_grant(&world.history, &mut from);
    queued(&watcher, 5);
    let mut granted = vec![first.who.to_string()];
    for _ in 0..5 {
        let name = granted.last().unwrap();
        let actor = waiters.iter_mut().find(|it| it.name() == name).unwrap();
        actor.tell("release waits");
        granted.push(next_grant(&world.history, &mut from).who.to_string());
    }
    waiters.iter_mut().find(|it| it.name() == granted[5]).unwrap().tell("release waits");
    assert!(granted[1..].is_sorted(), "{granted:?}");
    holder.wait_for("lost", "held");
    assert_eq!(holder.ask("release held", "unreleased", "held").get("kind"), Some("lost"));
    nothing_left(&watcher, LOCK);
    for actor in &waiters {
        actor.wait_for("released", "waits");
    }
    check::all(&world.history.since(0)).unwrap();
}
