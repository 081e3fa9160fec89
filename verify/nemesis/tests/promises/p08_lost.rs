//! Promise 8: a holder is told of its loss, by its own clock, before the store gives the lock away.

use fencelock::Broken;
use fencelock_nemesis::check;
use fencelock_testkit::Fault;

use crate::world::{LOCK, QUICK, World, nothing_left, on_each_store, on_redis};

on_each_store! {
    a_broken_lock_is_told_to_its_holder_in_another_process,
    a_wanted_lock_is_told_to_its_holder_in_another_process,
}

fn a_broken_lock_is_told_to_its_holder_in_another_process(world: &mut World) {
    let mut holder = world.actor(&world.url(QUICK));
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    let operator = world.client(QUICK);
    world.history.note("broke", LOCK, &[]);
    let seen = operator.inspect(LOCK).unwrap().unwrap().token;
    assert_eq!(operator.break_lock(LOCK, seen).unwrap(), Broken::Ended(1));
    holder.wait_for("lost", "held");
    assert_eq!(holder.ask("release held", "unreleased", "held").get("kind"), Some("lost"));
    nothing_left(&operator, LOCK);
}

fn a_wanted_lock_is_told_to_its_holder_in_another_process(world: &mut World) {
    let mut holder = world.actor(&world.url(QUICK));
    let mut waiter = world.actor(&world.url(QUICK));
    holder.tell(&format!("acquire held c {LOCK}"));
    holder.wait_for("granted", "held");
    waiter.tell(&format!("acquire waits c {LOCK}"));
    holder.wait_for("wanted", "held");
    holder.ask("release held", "released", "held");
    waiter.wait_for("granted", "waits");
    waiter.ask("release waits", "released", "waits");
    check::all(&world.history.since(0)).unwrap();
}

on_redis! {
    the_server_sleeps_longer_than_the_lease,
    a_holder_is_cut_off,
}

fn the_server_sleeps_longer_than_the_lease(world: &mut World) {
    let url = world.url(QUICK);
    let (mut holder, mut waiter) = (world.actor(&url), world.actor(&url));
    holder.tell(&format!("acquire held c {LOCK}"));
    let held = holder.wait_for("granted", "held");
    waiter.tell(&format!("acquire waits c {LOCK}"));
    holder.wait_for("wanted", "held");
    world.server().stop().unwrap();
    // By its own clock, while nobody answers.
    let lost = holder.wait_for("lost", "held");
    assert_eq!(lost.get("reason"), Some("NotRenewed"));
    assert!(waiter.said("granted", "waits").is_none());
    world.server().cont().unwrap();
    let granted = waiter.wait_for("granted", "waits");
    assert!(granted.number("token") > held.number("token"));
    assert_eq!(granted.get("abandoned"), Some("Yes"));
    assert_eq!(holder.ask("release held", "unreleased", "held").get("kind"), Some("lost"));
    waiter.ask("release waits", "released", "waits");
    check::all(&world.history.since(0)).unwrap();
}

fn a_holder_is_cut_off(world: &mut World) {
    let (proxy, url) = world.proxy(QUICK);
    let (mut holder, mut waiter) = (world.actor(&url), world.actor(&world.url(QUICK)));
    for (round, fault) in
        [Fault::SwallowRequests, Fault::SwallowReplies, Fault::Refuse].into_iter().enumerate()
    {
        let tag = format!("t{round}");
        holder.tell(&format!("acquire {tag} c {LOCK}"));
        holder.wait_for("granted", &tag);
        waiter.tell(&format!("acquire {tag} c {LOCK}"));
        holder.wait_for("wanted", &tag);
        proxy.set(fault);
        if fault == Fault::Refuse {
            proxy.cut();
        }
        holder.wait_for("lost", &tag);
        waiter.wait_for("granted", &tag);
        proxy.set(Fault::Pass);
        proxy.cut();
        let released = holder.ask(&format!("release {tag}"), "unreleased", &tag);
        assert_eq!(released.get("kind"), Some("lost"));
        waiter.ask(&format!("release {tag}"), "released", &tag);
    }
    nothing_left(&world.client(QUICK), LOCK);
    check::all(&world.history.since(0)).unwrap();
}
