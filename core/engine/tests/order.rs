//! First come, first served; and the local run, its only exception.

mod world;

use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Push};
use fencelock_engine::store::Record;
use fencelock_engine::{Ended, How, Name, Options};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn promise_10_a_local_run_is_bounded_while_another_client_waits() {
    let options = Options { local_run_grants: 8, ..Options::default() };
    let mut world = World::with(2, options);
    let mut held = world.take(0, 0);
    let calls: Vec<u32> = (1..40).map(|owner| world.queue(0, owner).0).collect();
    let (other, _) = world.queue(1, 1);
    let mut local = 0;
    for call in &calls {
        world.release(0, held.hold).unwrap();
        if !world.is_pending(1, other) {
            break;
        }
        held = world.granted(0, *call);
        local += 1;
    }
    assert_eq!(local, 8);
    let remote = world.granted(1, other);
    world.release(1, remote.hold).unwrap();
    assert_eq!(world.granted(0, calls[8]).how, How::Push);
}

#[test]
fn promise_02_the_echo_of_a_grant_does_not_release_what_is_being_released() {
    let options = Options { local_run_grants: 1, ..Options::default() };
    let mut world = World::with(2, options);
    let held = world.take(0, 1);
    let (second, _) = world.queue(0, 2);
    let (third, _) = world.queue(0, 3);
    world.queue(1, 1);
    let Record { holds, token, .. } = world.record();
    world.release(0, held.hold).unwrap();
    let used = world.granted(0, second).token.get();
    assert_eq!(used, token + 1);
    // The release goes along with an acquire for the third, and both are still on their way.
    world.clients[0].up = false;
    assert_eq!(world.begin_release(0, world.granted(0, second).hold), Ok(Ended::Pending));
    let echo = Push::Granted {
        lock: Name::new("stock").unwrap(),
        hold: holds[0].hold,
        token,
        end: token + 1,
        abandoned: Abandoned::No,
        losses: 0,
        others_waiting: 1,
    };
    world.push(0, echo);
    world.clients[0].up = true;
    world.pass(10 * SECOND);
    let ended = |line: &&String| line.contains("0: Release") || line.contains("after: Some");
    let sent: Vec<_> = world.log.iter().filter(ended).collect();
    assert!(sent.iter().all(|line| line.contains(&format!("used: {used}"))), "{sent:#?}");
    assert!(world.is_pending(0, third), "who comes from another client is served before");
}

#[test]
fn promise_10_local_waiters_cost_the_store_one_entry() {
    let mut world = World::new(2);
    world.take(0, 1);
    for owner in 0..100 {
        world.queue(1, owner);
    }
    assert_eq!(world.record().waiters.len(), 1);
}

#[test]
fn promise_09_who_came_after_a_stranger_waits_behind_it_when_holds_are_long() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    world.pass(SECOND);
    let (early, _) = world.queue(0, 2);
    let (stranger, _) = world.queue(1, 1);
    world.pass(Duration::from_micros(1));
    let (late, _) = world.queue(0, 3);
    world.pass(Duration::from_millis(1));
    // Who came before the stranger is served before it; who came after it is not.
    world.release(0, held.hold).unwrap();
    let second = world.granted(0, early);
    world.release(0, second.hold).unwrap();
    let other = world.granted(1, stranger);
    assert!(world.is_pending(0, late));
    world.release(1, other.hold).unwrap();
    world.granted(0, late);
}

#[test]
fn promise_09_who_came_before_a_stranger_is_served_before_it_within_the_run_only() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (early, _) = world.queue(0, 2);
    world.pass(Duration::from_millis(1));
    let (stranger, _) = world.queue(1, 1);
    world.pass(Duration::from_millis(20));
    world.release(0, held.hold).unwrap();
    world.granted(1, stranger);
    assert!(world.is_pending(0, early));
}

#[test]
fn promise_10_short_holds_pass_the_lock_on_also_to_who_came_after_a_stranger() {
    let mut world = World::new(2);
    let mut held = world.take(0, 1);
    let (stranger, _) = world.queue(1, 1);
    let mut local = 0;
    for owner in 2..12 {
        let (call, _) = world.queue(0, owner);
        world.pass(Duration::from_millis(1));
        world.release(0, held.hold).unwrap();
        if !world.is_pending(1, stranger) {
            break;
        }
        held = world.granted(0, call);
        local += 1;
    }
    assert!((5..10).contains(&local), "{local} within 10 ms, each 1 ms long");
}

#[test]
fn promise_10_one_long_hold_is_remembered_and_forgotten() {
    let mut world = World::new(2);
    let long = world.take(0, 1);
    world.pass(SECOND);
    world.release(0, long.hold).unwrap();
    let served = |world: &mut World| {
        let held = world.take(0, 1);
        let (stranger, key) = world.queue(1, 1);
        world.pass(Duration::from_micros(1));
        let (late, _) = world.queue(0, 2);
        world.release(0, held.hold).unwrap();
        let local = !world.is_pending(0, late);
        if local {
            world.cancel(1, key);
        } else {
            let other = world.granted(1, stranger);
            world.release(1, other.hold).unwrap();
        }
        let late = world.granted(0, late);
        world.release(0, late.hold).unwrap();
        local
    };
    let runs: Vec<bool> = (0..10).map(|_| served(&mut world)).collect();
    assert!(!runs[0] && runs[9], "{runs:?}");
}

#[test]
fn promise_09_news_of_a_second_stranger_outlives_an_older_answer_that_the_first_has_gone() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (_, key) = world.queue(1, 1);
    world.cancel(1, key);
    // The renewal is answered that nobody waits, and the answer takes its time.
    world.clients[0].slow = true;
    world.pass(11 * SECOND);
    let (stranger, _) = world.queue(1, 2);
    world.pass(Duration::from_micros(1));
    let (late, _) = world.queue(0, 2);
    world.arrive();
    world.clients[0].slow = false;
    world.release(0, held.hold).unwrap();
    let other = world.granted(1, stranger);
    assert!(world.is_pending(0, late), "who came after the stranger was served before it");
    world.release(1, other.hold).unwrap();
    world.granted(0, late);
}

#[test]
fn promise_09_news_of_a_stranger_outlives_a_grant_that_waits_for_its_own_answer() {
    // So short a lease that the claim is enough for a local hand-over.
    let mut world = World::with(3, Options { lease: 2 * SECOND, ..Options::default() });
    let held = world.take(0, 1);
    world.clients[1].slow = true;
    let (call, _) = world.queue(1, 1);
    // The grant overtakes the answer that says 'queued', and so does the news of who came next.
    world.release(0, held.hold).unwrap();
    let (stranger, _) = world.queue(2, 1);
    world.arrive();
    let held = world.granted(1, call);
    let (late, _) = world.queue(1, 2);
    world.pass(Duration::from_millis(20));
    world.begin_release(1, held.hold).unwrap();
    world.arrive();
    world.granted(2, stranger);
    assert!(world.is_pending(1, late), "who came after the stranger was served before it");
}
