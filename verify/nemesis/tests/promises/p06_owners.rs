//! Promise 6: an explicit owner travels, and a process that dies takes only its own holds.

use fencelock_nemesis::check;

use crate::world::{LOCK, QUICK, World, nothing_left, on_each_store, pass, shows};

on_each_store! {
    one_owner_in_two_processes_of_which_one_is_killed,
    a_ticket_is_followed_by_another_process,
}

fn one_owner_in_two_processes_of_which_one_is_killed(world: &mut World) {
    let url = world.url(QUICK);
    let (mut stays, mut dies, mut stranger) =
        (world.actor(&url), world.actor(&url), world.actor(&url));
    stays.tell(&format!("acquire here c {LOCK} owner=trace"));
    let here = stays.wait_for("granted", "here");
    dies.tell(&format!("acquire there c {LOCK} owner=trace wait=try"));
    let there = dies.wait_for("granted", "there");
    assert_eq!(here.number("token"), there.number("token"));
    let watcher = world.client(QUICK);
    shows(&watcher, "two holds", |info| (info.holds.len() == 2).then_some(()));
    stranger.tell(&format!("acquire other c {LOCK}"));
    dies.kill();
    shows(&watcher, "one hold less", |info| (info.holds.len() == 1).then_some(()));
    // Over another lease, the one that is left is renewed and keeps the stranger out.
    pass(1_600);
    assert_eq!(stays.ask("look here", "seen", "here").get("valid"), Some("true"));
    assert!(stranger.said("granted", "other").is_none());
    stays.ask("release here", "released", "here");
    let other = stranger.wait_for("granted", "other");
    // One of its holds ended with its process.
    assert_eq!(other.get("abandoned"), Some("Yes"));
    assert!(other.number("token") > here.number("token"));
    stranger.ask("release other", "released", "other");
    nothing_left(&watcher, LOCK);
    check::all(&world.history.since(0)).unwrap();
}

fn a_ticket_is_followed_by_another_process(world: &mut World) {
    let url = world.url(QUICK);
    let (mut first, mut second) = (world.actor(&url), world.actor(&url));
    first.tell(&format!("acquire here c {LOCK} owner=request"));
    let here = first.wait_for("granted", "here");
    let ticket = first.ask("ticket here", "ticket", "here").get("text").unwrap().to_owned();
    second.tell(&format!("attach there c {ticket}"));
    let there = second.wait_for("granted", "there");
    assert_eq!(here.number("token"), there.number("token"));
    first.ask("release here", "released", "here");
    // The lock stays with the owner until the last hold is released.
    assert_eq!(second.ask("look there", "seen", "there").get("valid"), Some("true"));
    let watcher = world.client(QUICK);
    assert!(watcher.lock(LOCK).unwrap().try_acquire().is_err());
    second.ask("release there", "released", "there");
    nothing_left(&watcher, LOCK);
    // A ticket of a hold that is over leads nowhere.
    first.tell(&format!("attach late c {ticket}"));
    assert_eq!(first.wait_for("failed", "late").get("kind"), Some("not_held"));
    nothing_left(&watcher, LOCK);
}
