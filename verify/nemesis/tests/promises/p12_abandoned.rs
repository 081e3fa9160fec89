//! Promises 12 and 13: the successor of a holder that died is told, within a bound.

use fencelock::Abandoned;
use fencelock::blocking::Client;
use fencelock_nemesis::check;

use crate::world::{LOCK, QUICK, World, nothing_left, on_each_store, queued};

on_each_store! {
    p12_p13_the_holder_is_killed_and_the_next_is_told,
    p12_a_holder_that_is_told_and_dies_leaves_the_word_to_the_next,
    p13_sigterm_releases_what_is_held_and_cancels_what_waits,
}

/// A lease of 1.5 s, and what a busy machine may add to it.
const BOUND: u64 = 1_500_000_000 + 5_000_000_000;

/// A store that has never heard of a lock cannot tell what came before. So something comes before.
fn begin(client: &Client) {
    let first = client.lock(LOCK).unwrap().acquire().unwrap();
    assert_eq!(first.previous_abandoned(), Abandoned::Unknown);
    first.release().unwrap();
}

fn p12_p13_the_holder_is_killed_and_the_next_is_told(world: &mut World) {
    let url = world.url(QUICK);
    let (mut holder, mut waiter, mut later) =
        (world.actor(&url), world.actor(&url), world.actor(&url));
    let watcher = world.client(QUICK);
    begin(&watcher);
    holder.tell(&format!("acquire held c {LOCK}"));
    let held = holder.wait_for("granted", "held");
    assert_eq!(held.get("abandoned"), Some("No"));
    waiter.tell(&format!("acquire waits c {LOCK}"));
    queued(&watcher, 1);
    holder.kill();
    let killed = fencelock_nemesis::boot();
    let granted = waiter.wait_for("granted", "waits");
    assert_eq!(granted.get("abandoned"), Some("Yes"));
    assert!(granted.number("token") > held.number("token"));
    assert!(granted.at < killed + BOUND, "{} after the kill", granted.at - killed);
    waiter.ask("release waits", "released", "waits");
    later.tell(&format!("acquire later c {LOCK}"));
    assert_eq!(later.wait_for("granted", "later").get("abandoned"), Some("No"));
    later.ask("release later", "released", "later");
    check::all(&world.history.since(0)).unwrap();
}

fn p12_a_holder_that_is_told_and_dies_leaves_the_word_to_the_next(world: &mut World) {
    let url = world.url(QUICK);
    begin(&world.client(QUICK));
    let mut last = 0;
    for round in 0..3 {
        let mut actor = world.actor(&url);
        actor.tell(&format!("acquire held c {LOCK}"));
        let granted = actor.wait_for("granted", "held");
        let told = if round == 0 { "No" } else { "Yes" };
        assert_eq!(granted.get("abandoned"), Some(told), "round {round}");
        assert!(granted.number("token") > last);
        last = granted.number("token");
        actor.kill();
    }
    check::all(&world.history.since(0)).unwrap();
}

fn p13_sigterm_releases_what_is_held_and_cancels_what_waits(world: &mut World) {
    let url = world.url("lease=60s&claim=600ms");
    let (mut first, mut second) = (world.actor(&url), world.actor(&url));
    first.tell("sigterm c");
    first.tell(&format!("acquire held c {LOCK}"));
    first.wait_for("granted", "held");
    first.tell(&format!("acquire waits c {LOCK}"));
    second.tell(&format!("acquire next c {LOCK}"));
    let watcher = world.client(QUICK);
    queued(&watcher, 1);
    first.terminate();
    first.wait_for("closed", "c");
    assert_eq!(first.wait_for("failed", "waits").get("kind"), Some("closed"));
    assert_eq!(first.wait_for("lost", "held").get("reason"), Some("Closed"));
    // Long before the lease of a minute.
    let next = second.wait_for("granted", "next");
    // It was taken from its holder, who may have been in the midst of something.
    assert_eq!(next.get("abandoned"), Some("Yes"));
    second.ask("release next", "released", "next");
    nothing_left(&watcher, LOCK);
}
