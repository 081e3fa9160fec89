//! What every store promises of one lock.

use super::*;
use crate::reply::{Abandoned, RefusalKind};
use crate::token::MAX_STORE_TIME;

#[test]
fn promise_01_only_one_holder_until_the_lease_ends() {
    let mut bench = Bench::new();
    assert_standing(bench.try_it(10), Standing::Granted);
    bench.now += LEASE - 1;
    let state = bench.try_it(20);
    assert_standing(state, Standing::Contended);
    assert_eq!(state.expires_in, Some(Duration::from_micros(1)));
    bench.now += 1;
    assert_standing(bench.try_it(20), Standing::Granted);
    assert_eq!(bench.holders(), [20]);
}

#[test]
fn promise_02_tokens_rise_over_release_expiry_and_a_lost_record() {
    let mut bench = Bench::new();
    let first = bench.try_it(10);
    assert_eq!(bench.end(10, first.token + 5, true, false), Released::Done);
    let second = bench.try_it(20);
    assert_eq!(second.token, first.token + 6);
    bench.now += 2 * LEASE;
    let third = bench.try_it(30);
    assert!(third.token > second.end);
    bench.record = Record::default();
    bench.now += 1;
    let fourth = bench.try_it(40);
    assert!(fourth.token > third.end, "{} > {}", fourth.token, third.end);
}

#[test]
fn promise_02_tokens_rise_above_what_the_client_saw() {
    let mut bench = Bench::new();
    let floor = bench.now + 77 * SECOND;
    let state = bench.acquire(&Acquire { floor, ..bench.ask(10) });
    assert!(state.token > floor);
}

#[test]
fn promise_03_only_the_hold_itself_is_released() {
    let mut bench = Bench::new();
    bench.try_it(10);
    assert_eq!(bench.release(11), Released::Unknown);
    assert_standing(bench.beat(11), Standing::Gone);
    assert_eq!(bench.holders(), [10]);
}

#[test]
fn promise_04_repeated_acquire_counts_once() {
    let mut bench = Bench::new();
    let first = bench.owned(10, "order 7");
    bench.now += SECOND;
    let again = bench.owned(10, "order 7");
    assert_eq!((again.token, again.lease), (first.token, Duration::from_micros(LEASE)));
    assert_eq!(bench.holders(), [10]);
    assert_eq!(bench.release(10), Released::Done);
    assert_eq!(bench.release(10), Released::Done);
    assert_standing(bench.owned(10, "order 7"), Standing::Released);
    assert!(bench.holders().is_empty());
}

#[test]
fn promise_05_an_expired_hold_is_not_re_entered() {
    let mut bench = Bench::new();
    let first = bench.owned(10, "order 7");
    bench.now += LEASE;
    let second = bench.owned(20, "order 7");
    assert!(second.token > first.end);
    assert_eq!(bench.holders(), [20]);
}

#[test]
fn promise_06_an_owner_re_enters_from_another_client_and_keeps_the_token() {
    let mut bench = Bench::new();
    let first = bench.owned(10, "order 7");
    let second = bench.owned(20, "order 7");
    assert_eq!(second.token, first.token);
    assert_standing(bench.owned(30, "order 70"), Standing::Queued);
    bench.now += LEASE / 2;
    bench.beat(20);
    bench.now += LEASE / 2;
    bench.beat(20);
    assert_eq!(bench.holders(), [20], "the process that died takes only its own hold");
}

#[test]
fn promise_06_attach_joins_only_its_token() {
    let mut bench = Bench::new();
    let owner = Some(OwnerId::new("order 7").unwrap());
    let ask = Acquire { owner, attach: Some(1), ..bench.ask(20) };
    assert_standing(bench.acquire(&ask), Standing::NotHeld);
    assert!(bench.holders().is_empty(), "attach takes no free lock");
    let token = bench.owned(10, "order 7").token;
    assert_standing(bench.acquire(&ask), Standing::NotHeld);
    let ask = Acquire { attach: Some(token), ..ask };
    assert_standing(bench.acquire(&ask), Standing::Granted);
    assert_eq!(bench.holders(), [10, 20]);
}

#[test]
fn promise_09_release_hands_the_lock_to_the_first_waiter_and_wakes_it_only() {
    let mut bench = Bench::new();
    bench.wait(10);
    assert_standing(bench.wait(20), Standing::Queued);
    assert_standing(bench.wait(30), Standing::Queued);
    bench.release(10);
    assert_eq!(bench.holders(), [20]);
    assert_eq!(bench.granted_by_push(), [20]);
    assert_eq!(bench.record.holds[0].lease, CLAIM);
    let state = bench.beat(20);
    assert_eq!((state.lease, state.others_waiting), (Duration::from_micros(LEASE), 1));
}

#[test]
fn promise_09_a_dead_waiter_is_passed_over_and_its_place_kept() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.now += 1;
    bench.wait(30);
    bench.deaf.insert(client(2).id().to_owned());
    bench.release(10);
    assert_eq!(bench.holders(), [30]);
    bench.deaf.clear();
    let state = bench.beat(20);
    assert_standing(state, Standing::Queued);
    assert!(state.head);
}

#[test]
fn promise_09_a_try_does_not_pass_a_live_waiter() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.now += 1;
    bench.end(10, 0, true, false);
    assert_standing(bench.try_it(30), Standing::Contended);
}

#[test]
fn promise_10_release_and_enqueue_in_one_step_goes_behind_the_others() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    let after =
        Release { lock: name(), hold: HoldId(10), used: 0, told: true, lost: false, losses: 0 };
    let ask = Acquire { after: Some(after.clone()), ..bench.ask(11) };
    assert_standing(bench.acquire(&ask), Standing::Queued);
    assert_eq!(bench.holders(), [20]);
    assert_standing(bench.acquire(&ask), Standing::Queued);
    bench.release(20);
    assert_eq!(bench.holders(), [11]);
}

#[test]
fn promise_11_a_cancelled_waiter_leaves_the_queue() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    assert_eq!(bench.end(20, 0, false, false), Released::Left);
    assert_eq!(bench.end(20, 0, false, false), Released::Unknown);
    bench.release(10);
    assert!(bench.holders().is_empty());
}

#[test]
fn promise_12_abandoned_is_told_until_a_told_holder_releases() {
    let mut bench = Bench::new();
    assert_eq!(bench.try_it(10).abandoned, Abandoned::Unknown);
    bench.release(10);
    assert_eq!(bench.try_it(20).abandoned, Abandoned::No);
    bench.now += LEASE;
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Yes);
    bench.release(30);
    assert_eq!(bench.try_it(40).abandoned, Abandoned::No);
    bench.end(40, 0, true, true);
    assert_eq!(bench.try_it(50).abandoned, Abandoned::Yes);
}

#[test]
fn promise_12_the_loss_of_one_hold_is_not_cleared_by_another_that_was_told_before() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.release(10);
    bench.owned(11, "order 7");
    bench.owned(20, "order 7");
    bench.now += LEASE / 2;
    bench.beat(20);
    bench.now += LEASE / 2;
    bench.release(20);
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Yes);
}

#[test]
fn promise_13_holds_of_a_clock_that_stepped_back_end_within_a_lease() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.now -= 3_600 * SECOND;
    let state = bench.wait(20);
    assert_eq!(state.expires_in, Some(Duration::from_micros(LEASE)));
    bench.now += LEASE;
    assert_standing(bench.beat(20), Standing::Granted);
}

#[test]
fn promise_14_a_clock_without_room_for_tokens_is_refused() {
    let mut bench = Bench::new();
    bench.now = MAX_STORE_TIME;
    let mut out = (&mut Vec::new(), &bench.deaf, false);
    let ask = bench.ask(10);
    let refusal = bench.record.acquire(bench.now, &caller(10), &ask, &mut out).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Misconfigured);
    assert!(refusal.message.contains("clock"));
}

#[test]
fn breaking_ends_every_hold_and_hands_on() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.owned(20, "order 7");
    bench.wait(30);
    let mut out = (&mut bench.pushes, &bench.deaf, false);
    assert_eq!(bench.record.break_all(bench.now, &name(), &mut out), 2);
    assert_eq!(bench.holders(), [30]);
    assert_eq!(bench.record.abandoned, Abandoned::Yes);
    assert!(bench.pushes.contains(&Push::Broken { lock: name(), hold: HoldId(20) }));
}

#[test]
fn a_record_is_collected_only_when_idle_for_a_day() {
    let mut bench = Bench::new();
    let state = bench.try_it(10);
    bench.release(10);
    let day = 24 * 3_600 * SECOND;
    assert!(!bench.record.is_collectable(state.token + day));
    assert!(bench.record.is_collectable(state.token + day + 1));
}
