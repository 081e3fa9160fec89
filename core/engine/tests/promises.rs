//! The promises of the exclusive lock, one client's state machine at a time.

mod world;

use std::time::Duration;

use fencelock_engine::reply::{Abandoned, Broken, Push};
use fencelock_engine::request::Break;
use fencelock_engine::{Ask, ErrorKind, Event, How, LossReason, Outcome, Owner, OwnerId, Patience};
use world::World;

const SECOND: Duration = Duration::from_secs(1);

fn explicit(owner: &str) -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new(owner).unwrap()), ..Ask::local(0) }
}

#[test]
fn promise_01_two_clients_exclude_each_other() {
    let mut world = World::new(2);
    let first = world.take(0, 1);
    assert_eq!(world.try_take(1, 1), Err(ErrorKind::Contended));
    world.release(0, first.hold).unwrap();
    let second = world.try_take(1, 1).unwrap();
    assert!(second.token > first.token);
}

#[test]
fn promise_02_tokens_rise_over_local_and_remote_grants() {
    let mut world = World::new(2);
    let mut last = 0;
    for round in 0..50 {
        let client = round % 2;
        let grant = world.take(client, 1);
        assert!(grant.token.get() > last);
        last = grant.token.get();
        let (call, _) = world.queue(client, 2);
        world.release(client, grant.hold).unwrap();
        let local = world.granted(client, call);
        assert_eq!(local.how, How::Local);
        assert_eq!(local.token.get(), last + 1);
        last = local.token.get();
        world.release(client, local.hold).unwrap();
    }
}

#[test]
fn promise_02_reentry_keeps_the_token() {
    let mut world = World::new(1);
    let outer = world.take(0, 1);
    let inner = world.take(0, 1);
    assert!(inner.reentry);
    assert_eq!(outer.token, inner.token);
    let lock = world.clients[0].lock;
    assert_eq!(world.clients[0].engine.count(world.time(), lock, 1), 2);
    let before = world.clients[0].sent;
    world.release(0, outer.hold).unwrap();
    assert_eq!(world.clients[0].sent, before, "the store was asked although a hold remains");
    world.release(0, inner.hold).unwrap();
    assert!(world.record().holds.is_empty());
}

#[test]
fn promise_03_a_hold_is_released_once() {
    let mut world = World::new(1);
    let grant = world.take(0, 1);
    world.release(0, grant.hold).unwrap();
    assert_eq!(world.release(0, grant.hold), Err(ErrorKind::NotHeld));
}

#[test]
fn promise_04_an_acquire_whose_reply_was_lost_is_repeated_and_counts_once() {
    let mut world = World::new(1);
    world.clients[0].swallow_replies = true;
    let (call, _) = world.acquire(0, Ask::local(1));
    assert_eq!(world.record().holds.len(), 1);
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    let grant = world.granted(0, call);
    assert_eq!(world.record().holds.len(), 1);
    // A copy of the first request may still be under way: released until it cannot lock any more.
    world.release(0, grant.hold).unwrap();
    world.pass(SECOND * 4);
    assert!(world.record().holds.is_empty());
    assert!(world.clients[0].engine.next_wake().is_none(), "still busy with an old request");
}

#[test]
fn promise_04_a_release_whose_reply_was_lost_is_repeated_and_succeeds() {
    let mut world = World::new(2);
    let grant = world.take(0, 1);
    world.clients[0].swallow_replies = true;
    let now = world.time();
    world.clients[0].engine.release(now, grant.hold, Some(99)).unwrap();
    world.run();
    // Somebody else comes and goes: the store has forgotten the first release.
    let other = world.take(1, 1);
    world.release(1, other.hold).unwrap();
    world.clients[0].swallow_replies = false;
    world.pass(SECOND);
    assert_eq!(world.clients[0].outcomes.get(&99), Some(&Outcome::Released));
}

#[test]
fn promise_05_another_owner_of_the_same_client_waits() {
    let mut world = World::new(1);
    let first = world.take(0, 1);
    assert_eq!(world.try_take(0, 2), Err(ErrorKind::Contended));
    let (call, _) = world.queue(0, 2);
    world.release(0, first.hold).unwrap();
    assert_eq!(world.granted(0, call).how, How::Local);
}

#[test]
fn promise_05_reentry_on_an_ended_hold_is_a_new_grant() {
    let mut world = World::new(1);
    let ask = Ask { lease: Some(SECOND), ..Ask::local(1) };
    let first = world.take_with(0, ask);
    world.pass(SECOND * 2);
    let second = world.take(0, 1);
    assert!(!second.reentry);
    assert!(second.token > first.token);
    assert_eq!(world.release(0, first.hold), Err(ErrorKind::Lost));
    world.release(0, second.hold).unwrap();
}

#[test]
fn promise_06_an_explicit_owner_reenters_from_another_client() {
    let mut world = World::new(3);
    let first = world.take_with(0, explicit("request-7"));
    let second = world.take_with(1, explicit("request-7"));
    assert_eq!(first.token, second.token);
    assert_eq!(world.try_take(2, 1), Err(ErrorKind::Contended));
    world.release(0, first.hold).unwrap();
    assert_eq!(world.try_take(2, 1), Err(ErrorKind::Contended));
    world.release(1, second.hold).unwrap();
    world.try_take(2, 1).unwrap();
}

#[test]
fn promise_06_attach_needs_a_live_hold_with_the_same_token() {
    let mut world = World::new(2);
    let first = world.take_with(0, explicit("r"));
    let attach = |token| Ask { attach: Some(token), patience: Patience::Try, ..explicit("r") };
    let joined = world.take_with(1, attach(first.token));
    assert_eq!(joined.token, first.token);
    world.release(1, joined.hold).unwrap();
    world.release(0, first.hold).unwrap();
    let (call, _) = world.acquire(1, attach(first.token));
    assert_eq!(world.failed(1, call), ErrorKind::NotHeld);
}

#[test]
fn promise_07_the_watchdog_keeps_a_hold_and_ends_with_it() {
    let mut world = World::new(1);
    let grant = world.take(0, 1);
    world.pass(SECOND * 300);
    assert!(world.remaining(0, grant.hold).is_some());
    assert!(world.clients[0].lost.is_empty());
    world.release(0, grant.hold).unwrap();
    let sent = world.clients[0].sent;
    world.pass(SECOND * 300);
    assert_eq!(world.clients[0].sent, sent, "renewed after its release");
}

#[test]
fn promise_07_a_failed_renewal_is_repeated_until_the_deadline() {
    let mut world = World::new(1);
    let grant = world.take(0, 1);
    world.pass(SECOND * 9);
    world.clients[0].swallow_replies = true;
    world.pass(SECOND * 15);
    assert!(world.remaining(0, grant.hold).is_some());
    world.clients[0].swallow_replies = false;
    world.pass(SECOND * 60);
    assert!(world.remaining(0, grant.hold).is_some());
}

#[test]
fn promise_08_a_holder_that_cannot_renew_is_told_before_the_store_gives_the_lock_away() {
    let mut world = World::new(2);
    let grant = world.take(0, 1);
    world.disconnect(0);
    let (call, _) = world.queue(1, 1);
    for _ in 0..300 {
        world.pass(Duration::from_millis(100));
        if !world.is_pending(1, call) {
            break;
        }
        if !world.clients[0].lost.is_empty() {
            assert!(world.remaining(0, grant.hold).is_none());
        }
    }
    assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::NotRenewed));
    world.pass(SECOND * 2);
    assert_eq!(world.granted(1, call).abandoned, Abandoned::Yes);
}

#[test]
fn promise_08_validity_counts_from_the_send() {
    let mut world = World::new(1);
    let grant = world.take_with(0, Ask { lease: Some(SECOND * 10), ..Ask::local(1) });
    // The world's only delay lies between the send and the execution.
    let left = world.remaining(0, grant.hold).unwrap();
    assert_eq!(left, SECOND * 10 - Duration::from_millis(110) - Duration::from_micros(10));
}

#[test]
fn promise_08_a_stopped_holder_finds_its_hold_lost_when_it_looks() {
    let mut world = World::new(2);
    let grant = world.take_with(0, Ask { lease: Some(SECOND), ..Ask::local(1) });
    let (call, _) = world.queue(1, 1);
    world.pass_without(SECOND * 3, &[0]);
    let next = world.granted(1, call);
    assert!(next.token > grant.token);
    assert!(world.remaining(0, grant.hold).is_none());
    assert_eq!(world.release(0, grant.hold), Err(ErrorKind::Lost));
    assert!(world.remaining(1, next.hold).is_some());
}

#[test]
fn promise_08_a_late_answer_to_a_waiter_revives_no_hold() {
    let mut world = World::new(2);
    let first = world.take(0, 1);
    let (call, _) = world.queue(1, 1);
    // The answer to its heartbeat is overtaken by the grant, and comes when that is over.
    world.clients[1].slow = true;
    world.pass(SECOND * 3 / 2);
    world.release(0, first.hold).unwrap();
    let grant = world.granted(1, call);
    world.pass_without(SECOND * 2, &[1]);
    assert!(world.remaining(1, grant.hold).is_none());
    world.arrive();
    assert!(world.remaining(1, grant.hold).is_none(), "it has ended");
    assert_eq!(world.clients[1].lost.values().next(), Some(&LossReason::NotRenewed));
}

#[test]
fn promise_09_clients_are_served_first_come_first_served_by_direct_hand_over() {
    let mut world = World::new(6);
    let mut held = world.take(0, 1);
    let calls: Vec<u32> = (1..6).map(|client| world.queue(client, 1).0).collect();
    for client in 1..6 {
        world.release(client - 1, held.hold).unwrap();
        held = world.granted(client, calls[client - 1]);
        assert_eq!(held.how, How::Push);
        for later in client + 1..6 {
            assert!(world.is_pending(later, calls[later - 1]));
        }
    }
}

#[test]
fn promise_09_a_missed_push_costs_one_heartbeat() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (call, _) = world.queue(1, 1);
    world.clients[1].deaf = true;
    world.release(0, held.hold).unwrap();
    assert!(world.is_pending(1, call));
    world.pass(Duration::from_millis(1001));
    assert_eq!(world.granted(1, call).how, How::Poll);
}

#[test]
fn promise_09_a_dead_waiter_is_passed_over() {
    let mut world = World::new(3);
    let held = world.take(0, 1);
    world.queue(1, 1);
    let (call, _) = world.queue(2, 1);
    world.disconnect(1);
    world.release(0, held.hold).unwrap();
    assert_eq!(world.granted(2, call).how, How::Push);
}

#[test]
fn promise_09_bounded_waits_end_in_time() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let bound = world.time() + SECOND * 2;
    let (call, _) = world.acquire(1, Ask { patience: Patience::Until(bound), ..Ask::local(1) });
    world.pass(SECOND * 3);
    assert_eq!(world.failed(1, call), ErrorKind::TimedOut);
    assert!(world.record().waiters.is_empty());
    world.release(0, held.hold).unwrap();
}

#[test]
fn promise_09_a_place_in_the_queue_survives_the_loss_of_the_stores_memory() {
    let mut world = World::new(3);
    world.take(0, 1);
    let (second, _) = world.queue(1, 1);
    let (third, _) = world.queue(2, 1);
    world.records.clear();
    world.pass(SECOND * 60);
    assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::Gone));
    let grant = world.granted(1, second);
    assert_eq!(grant.abandoned, Abandoned::Unknown);
    assert!(world.is_pending(2, third));
}

#[test]
fn promise_11_a_cancelled_wait_is_neither_held_nor_queued() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (call, key) = world.queue(1, 1);
    assert!(world.cancel(1, key));
    assert!(!world.cancel(1, key));
    assert!(world.is_pending(1, call), "a cancelled wait was completed");
    assert!(world.record().waiters.is_empty());
    world.release(0, held.hold).unwrap();
    world.pass(SECOND * 5);
    assert!(world.record().holds.is_empty());
    assert!(world.is_pending(1, call));
}

#[test]
fn promise_12_the_next_holder_is_told_of_a_lost_predecessor_until_one_released() {
    let mut world = World::new(2);
    let first = world.take(0, 1);
    world.release(0, first.hold).unwrap();
    let second = world.take_with(0, Ask { lease: Some(SECOND), ..Ask::local(1) });
    assert_eq!(second.abandoned, Abandoned::No);
    world.pass(SECOND * 2);
    let third = world.take(1, 1);
    assert_eq!(third.abandoned, Abandoned::Yes);
    world.release(1, third.hold).unwrap();
    assert_eq!(world.take(1, 1).abandoned, Abandoned::No);
}

#[test]
fn promise_13_a_killed_holder_is_followed_within_its_lease() {
    let mut world = World::new(2);
    world.take(0, 1);
    let (call, _) = world.queue(1, 1);
    world.pass_without(SECOND * 32, &[0]);
    assert_eq!(world.granted(1, call).abandoned, Abandoned::Yes);
}

#[test]
fn promise_14_an_unreachable_store_is_unavailable_at_the_bound_and_not_before() {
    let mut world = World::new(1);
    world.disconnect(0);
    let bound = world.time() + SECOND;
    let bounded = Ask { patience: Patience::Until(bound), ..Ask::local(1) };
    let (call, _) = world.acquire(0, bounded);
    let (unbounded, _) = world.queue(0, 2);
    world.pass(SECOND / 2);
    assert!(world.is_pending(0, call));
    world.pass(SECOND);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable);
    assert!(world.is_pending(0, unbounded));
    world.connect(0);
    assert_eq!(world.granted(0, unbounded).how, How::Reply);
}

#[test]
fn promise_14_a_bound_shorter_than_a_round_trip_is_timed_out_and_leaves_nothing() {
    let mut world = World::new(2);
    world.clients[0].swallow_replies = true;
    let bound = world.time() + SECOND / 100;
    let hasty = Ask { patience: Patience::Until(bound), ..Ask::local(1) };
    let (call, _) = world.acquire(0, hasty);
    world.pass(SECOND / 50);
    assert_eq!(world.failed(0, call), ErrorKind::TimedOut);
    // It was granted all the same, and given back.
    let (next, _) = world.acquire(1, Ask::local(1));
    assert_eq!(world.granted(1, next).abandoned, Abandoned::Unknown);
}

#[test]
fn promise_14_a_store_that_is_silent_for_long_is_unavailable() {
    let mut world = World::new(1);
    world.clients[0].swallow_replies = true;
    let bound = world.time() + SECOND * 2;
    let (call, _) = world.acquire(0, Ask { patience: Patience::Until(bound), ..Ask::local(1) });
    world.pass(SECOND * 2);
    assert_eq!(world.failed(0, call), ErrorKind::Unavailable);
}

#[test]
fn promise_14_closing_tells_everybody_and_leaves_nothing() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (waiter, _) = world.queue(0, 2);
    let now = world.time();
    world.clients[0].engine.close(now, 500);
    world.run();
    assert_eq!(world.clients[0].outcomes.get(&500), Some(&Outcome::Closed));
    assert_eq!(world.failed(0, waiter), ErrorKind::Closed);
    assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::Closed));
    assert_eq!(world.release(0, held.hold), Err(ErrorKind::Lost));
    assert!(world.record().holds.is_empty());
    let (_, refused) = world.acquire(0, Ask::local(3));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn promise_12_a_broken_hold_is_lost_and_the_next_is_told() {
    let mut world = World::new(2);
    let held = world.take(0, 1);
    let (call, _) = world.queue(1, 1);
    let now = world.time();
    let name = fencelock_engine::Name::new("stock").unwrap();
    world.clients[1].engine.break_lock(
        now,
        Break { lock: name, token: held.token.get(), hold: None },
        700,
    );
    world.run();
    assert_eq!(world.clients[1].outcomes.get(&700), Some(&Outcome::Broken(Broken::Ended(1))));
    assert_eq!(world.clients[0].lost.values().next(), Some(&LossReason::Broken));
    assert_eq!(world.release(0, held.hold), Err(ErrorKind::Lost));
    assert_eq!(world.granted(1, call).abandoned, Abandoned::Yes);
}

/// Counter-example 111. The news arrives before the clock is looked at.
#[test]
fn promise_08_a_hold_whose_time_was_over_was_not_broken() {
    for pause in [1, 60] {
        let mut world = World::new(1);
        world.take(0, 1);
        let lock = fencelock_engine::Name::new("stock").unwrap();
        let hold = world.record().holds[0].hold;
        world.pass_without(SECOND * pause, &[0]);
        let now = world.time();
        world.clients[0].engine.handle(now, Event::Push(Push::Broken { lock, hold }));
        world.run();
        let told = if pause == 1 { LossReason::Broken } else { LossReason::NotRenewed };
        assert_eq!(world.clients[0].lost.values().collect::<Vec<_>>(), [&told]);
    }
}

#[test]
fn promise_10_a_holder_is_told_once_that_it_is_wanted() {
    let mut world = World::new(3);
    world.take(0, 1);
    assert!(world.clients[0].wanted.is_empty());
    world.queue(1, 1);
    world.queue(2, 1);
    assert_eq!(world.clients[0].wanted.len(), 1);
}
