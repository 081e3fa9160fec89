//! Promise 1: while a hold is valid by its holder's own clock, nobody else is granted the lock.

use fencelock_nemesis::{Actor, Role, Shim, WrongClock, check};

use crate::world::{LOCK, QUICK, World, on_each_store, on_redis, pass, shows};

on_each_store! {
    a_holder_that_sleeps_past_its_lease_finds_itself_lost_and_fenced,
    processes_that_take_turns_never_overlap,
}

fn a_holder_that_sleeps_past_its_lease_finds_itself_lost_and_fenced(world: &mut World) {
    let ledger = world.file("ledger.db");
    let write = |tag| format!("write {tag} {}", ledger.display());
    let (mut sleeper, mut next) = (world.actor(&world.url(QUICK)), world.actor(&world.url(QUICK)));
    sleeper.tell(&format!("acquire old c {LOCK}"));
    let old = sleeper.wait_for("granted", "old");
    assert_eq!(sleeper.ask(&write("old"), "wrote", "old").get("accepted"), Some("Ok(true)"));
    sleeper.stop();
    next.tell(&format!("acquire new c {LOCK}"));
    let new = next.wait_for("granted", "new");
    assert!(new.number("token") > old.number("token"));
    assert_eq!(next.ask(&write("new"), "wrote", "new").get("accepted"), Some("Ok(true)"));
    sleeper.cont();
    sleeper.wait_for("lost", "old");
    assert_eq!(sleeper.ask("look old", "seen", "old").get("valid"), Some("false"));
    // It writes all the same.
    assert_eq!(sleeper.ask(&write("old"), "wrote", "old").get("accepted"), Some("Ok(false)"));
    assert_eq!(sleeper.ask("release old", "unreleased", "old").get("kind"), Some("lost"));
    assert_eq!(next.ask("look new", "seen", "new").get("valid"), Some("true"));
    next.ask("release new", "released", "new");
    check::all(&world.history.since(0)).unwrap();
}

fn processes_that_take_turns_never_overlap(world: &mut World) {
    let mut actors: Vec<Actor> = (0..4).map(|_| world.actor(&world.url(QUICK))).collect();
    let rounds = 15;
    for round in 0..rounds {
        for actor in &mut actors {
            actor.tell(&format!("acquire t{round} c {LOCK}"));
        }
        let mut left: Vec<&mut Actor> = actors.iter_mut().collect();
        let tag = format!("t{round}");
        while !left.is_empty() {
            left.retain_mut(|actor| {
                let granted = actor.said("granted", &tag).is_some();
                if granted {
                    actor.ask(&format!("release {tag}"), "released", &tag);
                }
                !granted
            });
            pass(1);
        }
    }
    let found = check::all(&world.history.since(0)).unwrap();
    assert_eq!(found.grants, 4 * rounds);
}

on_redis! {
    a_wall_clock_that_is_hours_off_does_not_matter,
    a_clock_that_runs_slow_by_one_percent_does_not_overlap,
    a_clock_that_runs_fast_by_one_percent_keeps_its_hold,
}

/// An actor whose clocks are wrong.
fn wrong(world: &World, url: &str, millis: i64, parts: i64) -> (Actor, WrongClock) {
    let shim = Shim::build(world.file("").as_path()).unwrap();
    let mut clock = WrongClock::new(&shim, &world.file("clock")).unwrap();
    clock.shift(millis).unwrap();
    clock.bend(parts).unwrap();
    let mut actor = Actor::start_as(&world.history, "wrong", &Role::own(), clock.environment());
    actor.ask(&format!("open c {url}"), "opened", "c");
    (actor, clock)
}

fn a_wall_clock_that_is_hours_off_does_not_matter(world: &mut World) {
    const HOURS: i64 = 5 * 3600 * 1000;
    let (mut early, clock) = wrong(world, &world.url(QUICK), -HOURS, 0);
    let mut other = world.actor(&world.url(QUICK));
    let before = fencelock_nemesis::wall();
    early.tell(&format!("acquire one c {LOCK}"));
    let one = early.wait_for("granted", "one");
    // The actor's clock really is off.
    assert!(before - one.wall > 4 * 3600 * 1_000_000_000, "{before} {}", one.wall);
    // It steps while the lock is held, over several leases, and while others wait.
    other.tell(&format!("acquire two c {LOCK}"));
    for step in [HOURS, -2 * HOURS, 0] {
        clock.shift(step).unwrap();
        pass(800);
    }
    assert_eq!(early.ask("look one", "seen", "one").get("valid"), Some("true"));
    assert!(other.said("granted", "two").is_none());
    early.ask("release one", "released", "one");
    let two = other.wait_for("granted", "two");
    assert_eq!(two.get("abandoned"), Some("No"));
    clock.shift(HOURS).unwrap();
    early.tell(&format!("acquire three c {LOCK}"));
    other.ask("release two", "released", "two");
    let three = early.wait_for("granted", "three");
    early.ask("release three", "released", "three");
    assert!(one.number("token") < two.number("token"));
    assert!(two.number("token") < three.number("token"));
    check::all(&world.history.since(0)).unwrap();
}

fn a_clock_that_runs_slow_by_one_percent_does_not_overlap(world: &mut World) {
    // Long enough that one percent is much more than what comes on top of it.
    let (proxy, url) = world.proxy("lease=4s&request_timeout=500ms");
    let (mut slow, clock) = wrong(world, &url, 0, -10_000);
    let mut other = world.actor(&world.url(QUICK));
    slow.tell(&format!("acquire one c {LOCK}"));
    slow.wait_for("granted", "one");
    other.tell(&format!("acquire two c {LOCK}"));
    let asked = slow.ask("look one", "seen", "one");
    let off = clock.truth(asked.at) as i64 - asked.at as i64;
    assert!(off > 0, "its clock is behind: {off}");
    proxy.set(fencelock_testkit::Fault::SwallowRequests);
    let lost = slow.wait_for("lost", "one");
    let two = other.wait_for("granted", "two");
    // By the true clock, the end of its trust lies before the next grant.
    let trusted = world.history.since(0);
    let until = trusted.iter().filter(|it| it.tag == "one").map(|it| it.number("until")).max();
    let until = clock.truth(until.unwrap());
    assert!(until < two.at, "trusted until {until}, granted at {}", two.at);
    assert_eq!(lost.get("reason"), Some("NotRenewed"));
    assert_eq!(two.get("abandoned"), Some("Yes"));
}

fn a_clock_that_runs_fast_by_one_percent_keeps_its_hold(world: &mut World) {
    let (mut fast, _clock) = wrong(world, &world.url(QUICK), 0, 10_000);
    let watcher = world.client(QUICK);
    fast.tell(&format!("acquire one c {LOCK}"));
    let token = fast.wait_for("granted", "one").number("token");
    pass(4_000);
    assert_eq!(fast.ask("look one", "seen", "one").get("valid"), Some("true"));
    assert!(fast.said("lost", "one").is_none());
    shows(&watcher, "the hold", |info| (info.token == token).then_some(()));
    fast.ask("release one", "released", "one");
}
