//! What happens to clients: stopped, cut off, killed.

use fencelock_nemesis::check;
use fencelock_testkit::{Fault, Proxy};

use crate::world::{LOCK, QUICK, World, nothing_left, queued};

/// One ensemble for all of them: starting three servers takes longer than each case.
#[test]
fn clients_are_stopped_cut_off_and_killed() {
    let Some(world) = World::new(3) else { return };
    stopped_past_its_session(&world);
    cut_off(&world);
    killed_in_the_queue(&world);
    nothing_left(&world.client(), LOCK);
    let found = check::all(&world.history.since(0)).unwrap();
    assert!(found.lost >= 4, "{found:?}");
}

fn stopped_past_its_session(world: &World) {
    let url = world.url(QUICK);
    let (mut holder, mut waiter) = (world.actor(&url), world.actor(&url));
    let ledger = world.file("stopped.db");
    holder.tell(&format!("acquire stops c {LOCK}"));
    let held = holder.wait_for("granted", "stops");
    holder.ask(&format!("write stops {}", ledger.display()), "wrote", "stops");
    waiter.tell(&format!("acquire follows c {LOCK}"));
    holder.wait_for("wanted", "stops");
    holder.stop();
    let granted = waiter.wait_for("granted", "follows");
    assert!(granted.number("token") > held.number("token"));
    assert_eq!(granted.get("abandoned"), Some("Yes"));
    let wrote = waiter.ask(&format!("write follows {}", ledger.display()), "wrote", "follows");
    assert_eq!(wrote.get("accepted"), Some("Ok(true)"));
    holder.cont();
    holder.wait_for("lost", "stops");
    // What it still writes is refused, and its release says what happened.
    let wrote = holder.ask(&format!("write stops {}", ledger.display()), "wrote", "stops");
    assert_eq!(wrote.get("accepted"), Some("Ok(false)"));
    assert_eq!(holder.ask("release stops", "unreleased", "stops").get("kind"), Some("lost"));
    waiter.ask("release follows", "released", "follows");
    // It is a client as before, with a new session.
    holder.tell(&format!("acquire again c {LOCK}"));
    let again = holder.wait_for("granted", "again");
    assert!(again.number("token") > granted.number("token"));
    holder.ask("release again", "released", "again");
}

fn cut_off(world: &World) {
    let proxy = Proxy::start(&world.servers.address(0)).unwrap();
    let mut holder = world.actor(&format!("zk://{}?{QUICK}", proxy.address()));
    let mut waiter = world.actor(&world.url(QUICK));
    for (round, fault) in
        [Fault::SwallowRequests, Fault::SwallowReplies, Fault::Refuse].into_iter().enumerate()
    {
        let tag = format!("cut{round}");
        holder.tell(&format!("acquire {tag} c {LOCK}"));
        holder.wait_for("granted", &tag);
        waiter.tell(&format!("acquire {tag} c {LOCK}"));
        holder.wait_for("wanted", &tag);
        world.history.note("cut", &tag, &[]);
        proxy.set(fault);
        if fault == Fault::Refuse {
            proxy.cut();
        }
        let lost = holder.wait_for("lost", &tag);
        let granted = waiter.wait_for("granted", &tag);
        assert!(lost.at < granted.at, "told at {}, given away at {}", lost.at, granted.at);
        proxy.set(Fault::Pass);
        proxy.cut();
        let released = holder.ask(&format!("release {tag}"), "unreleased", &tag);
        assert_eq!(released.get("kind"), Some("lost"));
        waiter.ask(&format!("release {tag}"), "released", &tag);
    }
}

fn killed_in_the_queue(world: &World) {
    let (url, watcher) = (world.url(QUICK), world.client());
    let mut holder = world.actor(&url);
    holder.tell(&format!("acquire first c {LOCK}"));
    holder.wait_for("granted", "first");
    let mut actors: Vec<_> = (0..6).map(|_| world.actor(&url)).collect();
    for (place, actor) in actors.iter_mut().enumerate() {
        actor.tell(&format!("acquire place{place} c {LOCK}"));
        queued(&watcher, place + 1);
    }
    for victim in [1, 2, 4] {
        actors[victim].kill();
    }
    holder.kill();
    let mut last = 0;
    for place in [0, 3, 5] {
        let tag = format!("place{place}");
        let granted = actors[place].wait_for("granted", &tag);
        assert!(granted.number("token") > last);
        last = granted.number("token");
        actors[place].ask(&format!("release {tag}"), "released", &tag);
    }
}
