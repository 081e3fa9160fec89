//! Promise 4: what is repeated is harmless. Each request is cut off once on its way to the server,
//! and once on its way back.

use std::time::Instant;

use fencelock_nemesis::{Actor, check};
use fencelock_testkit::{Fault, Proxy, eventually};

use crate::world::{LOCK, World, nothing_left, on_redis, shows};

on_redis! {
    acquire_is_lost_on_the_way,
    acquire_s_reply_is_lost,
    release_is_lost_on_the_way,
    release_s_reply_is_lost,
    renewal_is_lost_on_the_way,
    renewal_s_reply_is_lost,
    waiting_is_lost_on_the_way,
    waiting_s_reply_is_lost,
}

/// No renewal comes by itself while a test looks at one request.
const CALM: &str = "lease=60s&claim=60s&request_timeout=20s";
/// Renewals come soon; the lease outlives what is done to them.
const BUSY: &str = "lease=3s&claim=60s&request_timeout=20s";

/// Does `what` under a fault, waits until something fell to it, and cuts the connection.
fn cut_off(proxy: &Proxy, fault: Fault, what: impl FnOnce()) {
    let fallen = || match fault {
        Fault::SwallowRequests => proxy.counts().swallowed_requests,
        _ => proxy.counts().swallowed_replies,
    };
    let before = fallen();
    proxy.set(fault);
    what();
    eventually("something falls to the fault", || (fallen() > before).then_some(()));
    proxy.set(Fault::Pass);
    proxy.cut();
}

fn release_and_look(world: &World, actor: &mut Actor, tag: &str) {
    actor.ask(&format!("release {tag}"), "released", tag);
    // At once, not by the end of a lease: the store has neither hold nor waiter.
    nothing_left(&world.client(CALM), LOCK);
    check::all(&world.history.since(0)).unwrap();
}

fn acquire(world: &mut World, fault: Fault) {
    let (proxy, url) = world.proxy(CALM);
    let mut actor = world.actor(&url);
    let watcher = world.client(CALM);
    cut_off(&proxy, fault, || actor.tell(&format!("acquire one c {LOCK}")));
    let token = actor.wait_for("granted", "one").number("token");
    shows(&watcher, "one hold", |info| {
        assert!(info.holds.len() <= 1, "{:?}", info.holds);
        (info.holds.len() == 1 && info.token == token).then_some(())
    });
    release_and_look(world, &mut actor, "one");
}

fn acquire_is_lost_on_the_way(world: &mut World) {
    acquire(world, Fault::SwallowRequests);
}

fn acquire_s_reply_is_lost(world: &mut World) {
    acquire(world, Fault::SwallowReplies);
}

fn release(world: &mut World, fault: Fault) {
    let (proxy, url) = world.proxy(CALM);
    let mut actor = world.actor(&url);
    let mut next = world.actor(&world.url(CALM));
    actor.tell(&format!("acquire one c {LOCK}"));
    let one = actor.wait_for("granted", "one");
    next.tell(&format!("acquire two c {LOCK}"));
    actor.wait_for("wanted", "one");
    cut_off(&proxy, fault, || actor.tell("release one"));
    actor.wait_for("released", "one");
    let two = next.wait_for("granted", "two");
    assert_eq!(two.get("abandoned"), Some("No"));
    assert!(two.number("token") > one.number("token"));
    // The repeated release has not touched the successor.
    assert_eq!(next.ask("look two", "seen", "two").get("valid"), Some("true"));
    assert!(world.client(CALM).lock(LOCK).unwrap().try_acquire().is_err());
    release_and_look(world, &mut next, "two");
}

fn release_is_lost_on_the_way(world: &mut World) {
    release(world, Fault::SwallowRequests);
}

fn release_s_reply_is_lost(world: &mut World) {
    release(world, Fault::SwallowReplies);
}

fn renewal(world: &mut World, fault: Fault) {
    let (proxy, url) = world.proxy(BUSY);
    let mut actor = world.actor(&url);
    actor.tell(&format!("acquire one c {LOCK}"));
    let one = actor.wait_for("granted", "one");
    // What falls to the fault can only be a renewal.
    cut_off(&proxy, fault, || ());
    let until = one.number("until") + 3_000_000_000;
    eventually("renewals go on", || {
        let history = world.history.since(0);
        history.iter().any(|it| it.is("trusted") && it.number("until") > until).then_some(())
    });
    assert!(actor.said("lost", "one").is_none());
    shows(&world.client(CALM), "one hold", |info| (info.holds.len() == 1).then_some(()));
    release_and_look(world, &mut actor, "one");
}

fn renewal_is_lost_on_the_way(world: &mut World) {
    renewal(world, Fault::SwallowRequests);
}

fn renewal_s_reply_is_lost(world: &mut World) {
    renewal(world, Fault::SwallowReplies);
}

fn waiting(world: &mut World, fault: Fault) {
    let (proxy, url) = world.proxy(CALM);
    let mut holder = world.actor(&world.url(CALM));
    let (mut first, mut second) = (world.actor(&url), world.actor(&world.url(CALM)));
    let watcher = world.client(CALM);
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    cut_off(&proxy, fault, || first.tell(&format!("acquire waits c {LOCK}")));
    // Heard of since the cut, and so listening: otherwise it is passed over, though it keeps its
    // place.
    let cut = Instant::now();
    eventually("one waiter", || {
        let passed = cut.elapsed();
        let info = watcher.inspect(LOCK).unwrap()?;
        assert!(info.waiters.len() <= 1, "{:?}", info.waiters);
        info.waiters.first().filter(|it| it.heard_ago < passed).map(drop)
    });
    second.tell(&format!("acquire waits c {LOCK}"));
    shows(&watcher, "two waiters", |info| (info.waiters.len() == 2).then_some(()));
    holder.ask("release held", "released", "held");
    first.wait_for("granted", "waits");
    assert!(second.said("granted", "waits").is_none());
    first.ask("release waits", "released", "waits");
    second.wait_for("granted", "waits");
    release_and_look(world, &mut second, "waits");
}

fn waiting_is_lost_on_the_way(world: &mut World) {
    waiting(world, Fault::SwallowRequests);
}

fn waiting_s_reply_is_lost(world: &mut World) {
    waiting(world, Fault::SwallowReplies);
}
