//! What every store promises of one lock.

use super::*;
use crate::reply::{Abandoned, Broken, RefusalKind};
use crate::request::Break;
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
fn promise_07_the_first_word_of_another_local_holder_sets_the_lease_and_late_copies_do_not() {
    let mut bench = Bench::new();
    let token = bench.try_it(10).token;
    let micros = |state: State| state.lease.as_micros() as u64;
    assert_eq!(micros(bench.beat_for(10, 600 * LEASE, token)), 600 * LEASE);
    // The same holder again: never less.
    assert_eq!(micros(bench.beat_for(10, LEASE, token)), 600 * LEASE);
    // Another one: what it asks.
    assert_eq!(micros(bench.beat_for(10, LEASE, token + 1)), LEASE);
    assert_eq!(micros(bench.beat_for(10, LEASE / 2, token + 1)), LEASE);
    // Late copies of what the first one asked, and of its acquire.
    assert_eq!(micros(bench.beat_for(10, 600 * LEASE, token)), LEASE);
    let again = Acquire { lease: Duration::from_micros(600 * LEASE), wait: None, ..bench.ask(10) };
    assert_eq!(micros(bench.acquire(&again)), LEASE);
    assert_eq!(micros(bench.beat_for(10, 2 * LEASE, token + 1)), 2 * LEASE);
    // The next tenure begins anew.
    assert_eq!(bench.end(10, token + 1, true, false), Released::Done);
    let token = bench.try_it(20).token;
    assert_eq!(micros(bench.beat_for(20, 2 * LEASE, 0)), 2 * LEASE);
    assert_eq!(micros(bench.beat_for(20, LEASE, token)), LEASE);
}

#[test]
fn promise_07_what_one_of_an_owners_holds_showed_bears_on_no_later_tenure() {
    let mut bench = Bench::new();
    let micros = |state: State| state.lease.as_micros() as u64;
    let token = bench.owned(10, "order 7").token;
    bench.owned(20, "order 7");
    // One asks for less than it did before, and speaks as another for it; the other knows nothing of that.
    assert_eq!(micros(bench.beat_for(10, 600 * LEASE, token)), 600 * LEASE);
    assert_eq!(micros(bench.beat_for(10, LEASE, token + 9)), LEASE);
    assert_eq!(micros(bench.beat_for(20, 2 * LEASE, token)), 2 * LEASE, "renewed all the same");
    assert_eq!(bench.end(10, token + 9, true, false), Released::Done);
    assert_eq!(bench.end(20, token, true, false), Released::Done);
    // Though the clock does not show it, nothing of the next tenure is taken for a late copy.
    bench.now -= SECOND;
    let next = bench.try_it(30).token;
    assert!(next > token + 9, "{next} after {}", token + 9);
    bench.beat_for(30, LEASE, next);
    assert_eq!(micros(bench.beat_for(30, 2 * LEASE, next)), 2 * LEASE);
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
    assert!(state.ahead == 0 && state.expires_in.is_some());
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
    let after = Release::new(name(), HoldId(10), 0);
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
fn breaking_ends_the_tenure_that_was_seen_and_hands_on() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.owned(20, "order 7");
    bench.wait(30);
    let seen = bench.record.token;
    let break_lock = |bench: &mut Bench, token, hold| {
        let what = Break { lock: name(), token, hold };
        let mut out = (&mut bench.pushes, &bench.deaf, false);
        bench.record.break_lock(bench.now, &what, &mut out)
    };
    assert_eq!(break_lock(&mut bench, seen - 1, None), Broken::ChangedHands(seen));
    // A token that was given out locally in the tenure names it as well.
    assert_eq!(break_lock(&mut bench, seen + 5, None), Broken::Ended(2));
    assert_eq!(bench.holders(), [30]);
    assert_eq!(bench.record.abandoned, Abandoned::Yes);
    assert!(bench.pushes.contains(&Push::Broken { lock: name(), hold: HoldId(20) }));

    // The answer was lost: asked again, it ends nobody who came later.
    let next = bench.record.token;
    assert_eq!(break_lock(&mut bench, seen, None), Broken::ChangedHands(next));
    assert_eq!(bench.holders(), [30]);
    assert_eq!(break_lock(&mut bench, next, None), Broken::Ended(1));
    assert_eq!(break_lock(&mut bench, next, None), Broken::NotHeld);
}

#[test]
fn one_hold_of_an_owner_can_be_broken() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.owned(20, "order 7");
    let token = bench.record.token;
    let mut break_hold = |hold| {
        let what = Break { lock: name(), token, hold: Some(HoldId(hold)) };
        let mut out = (&mut bench.pushes, &bench.deaf, false);
        bench.record.break_lock(bench.now, &what, &mut out)
    };
    assert_eq!(break_hold(20), Broken::Ended(1));
    assert_eq!(break_hold(20), Broken::NotHeld);
    assert_eq!(bench.holders(), [10]);
    assert_eq!((bench.record.token, bench.record.losses), (token, 1));
    assert!(bench.pushes.contains(&Push::Broken { lock: name(), hold: HoldId(20) }));
    assert!(!bench.pushes.contains(&Push::Broken { lock: name(), hold: HoldId(10) }));
}

#[test]
fn who_waits_within_a_client_is_kept_with_its_entry() {
    let mut bench = Bench::new();
    bench.acquire(&Acquire { local_waiters: 2, ..bench.ask(10) });
    bench.acquire(&Acquire { local_waiters: 5, ..bench.ask(20) });
    let seen = |bench: &Bench| {
        let info = bench.record.inspect(bench.now, &name());
        let waiters = info.waiters.iter().map(|waiter| waiter.local_waiters.unwrap());
        (info.holds[0].local_waiters.unwrap(), waiters.collect::<Vec<_>>(), info.waiting)
    };
    assert_eq!(seen(&bench), (2, vec![5], 8));
    // Each renewal and heartbeat says it anew, none of them that nobody does.
    bench.beat(10);
    assert_eq!(seen(&bench), (0, vec![5], 6));
    bench.acquire(&Acquire { local_waiters: 1, ..bench.ask(20) });
    assert_eq!(seen(&bench), (0, vec![1], 2));
    bench.release(10);
    assert_eq!(seen(&bench), (1, vec![], 1), "it goes along with the grant");
}

/// Where the store may not publish, whoever came last is called in vain.
#[test]
fn a_call_for_another_contact_that_nobody_can_hear_is_told() {
    for denied in [false, true] {
        let mut bench = Bench::new();
        bench.try_it(1);
        for waiter in 10..10 + 513 {
            bench.wait(waiter);
        }
        bench.now += LEASE;
        bench.denied = denied;
        assert_eq!(bench.try_it(2).publish_failed, denied);
    }
}
