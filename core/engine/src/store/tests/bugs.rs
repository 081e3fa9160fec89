//! What has gone wrong in other locks, by the number that the simulator plants it under.

use super::*;
use crate::reply::Abandoned;

#[test]
fn bug_05_a_delayed_release_does_not_end_a_later_hold_of_the_same_client() {
    let mut bench = Bench::new();
    bench.try_it(10);
    bench.release(10);
    bench.try_it(11);
    assert_eq!(bench.release(10), Released::Done);
    assert_eq!(bench.holders(), [11]);
}

#[test]
fn bug_42_an_owners_second_waiter_is_not_left_behind_a_stranger() {
    let mut bench = Bench::new();
    bench.wait(5);
    bench.owned(10, "order 7");
    bench.wait(20);
    bench.owned(30, "order 7");
    bench.release(5);
    assert_eq!(bench.holders(), [10, 30]);
    assert_eq!(bench.record.holds.len(), 2);
}

#[test]
fn bug_43_a_delayed_acquire_does_nothing() {
    let mut bench = Bench::new();
    let ask = bench.ask(10);
    bench.now = ask.not_after + 1;
    assert_standing(bench.acquire(&ask), Standing::Late);
    let ahead = Acquire { not_after: bench.now + 2 * CLAIM + 1, ..bench.ask(10) };
    assert_standing(bench.acquire(&ahead), Standing::Late);
    assert_eq!(bench.record, Record::default());
}

#[test]
fn bug_47_a_late_renewal_does_not_revive() {
    let mut bench = Bench::new();
    bench.try_it(10);
    bench.now += LEASE;
    assert_standing(bench.beat(10), Standing::Gone);
    assert!(bench.holders().is_empty());
}

#[test]
fn bug_48_a_grant_that_was_never_told_does_not_clear_abandoned() {
    let mut bench = Bench::new();
    bench.try_it(10);
    bench.now += LEASE;
    bench.try_it(20);
    assert_eq!(bench.end(20, 0, false, false), Released::Left);
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Yes);
}

#[test]
fn bug_49_a_holder_is_told_that_others_wait() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    assert_eq!(bench.pushes, [Push::Wanted { lock: name(), hold: HoldId(10) }]);
    assert_eq!(bench.beat(10).others_waiting, 1);
}

#[test]
fn bug_75_shorter_lease_beside_later_deadline() {
    let mut bench = Bench::new();
    bench.try_it(10);
    let state = bench.beat_for(10, SECOND, 0);
    assert_eq!(state.lease, Duration::from_micros(LEASE));
    bench.try_it(20);
    assert_eq!(bench.record.holds[0].deadline, bench.now + LEASE);
}

#[test]
fn bug_76_a_repeated_acquire_renews_its_claim() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.release(10);
    let state = bench.wait(20);
    assert_standing(state, Standing::Granted);
    assert_eq!(state.lease, Duration::from_micros(LEASE));
}

#[test]
fn bug_78_a_renewal_never_lowers_the_end_of_the_block() {
    let mut bench = Bench::new();
    let state = bench.try_it(10);
    bench.now += SECOND;
    let renewed = bench.beat(10);
    assert!(renewed.end > state.end);
    bench.now -= 3_600 * SECOND;
    assert_eq!(bench.beat(10).end, renewed.end);
}

#[test]
fn bug_80_a_returning_waiter_keeps_its_place() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.now += 1;
    bench.wait(30);
    bench.now += 2 * CLAIM;
    bench.beat(30);
    bench.record.holds[0].deadline = bench.now;
    assert_standing(bench.beat(20), Standing::Granted);
}

#[test]
fn bug_81_a_polling_waiter_is_handed_the_lock_without_a_push() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.record.waiters.hear(bench.now, true, HoldId(20), None, 0);
    bench.deaf.insert(client(2).id().to_owned());
    bench.release(10);
    assert_eq!(bench.holders(), [20]);
    assert!(bench.granted_by_push().is_empty());
}

#[test]
fn bug_82_an_owners_entry_that_was_passed_over_joins_when_it_is_heard() {
    let mut bench = Bench::new();
    bench.wait(5);
    bench.owned(10, "order 7");
    bench.now += 1;
    bench.owned(20, "order 7");
    bench.wait(30);
    bench.deaf.insert(client(2).id().to_owned());
    bench.release(5);
    assert_eq!(bench.holders(), [10]);
    assert_standing(bench.beat(20), Standing::Granted);
    assert_eq!(bench.holders(), [10, 20]);
}

#[test]
fn bug_87_a_repeated_release_tells_nothing_of_a_stray_grant() {
    let mut bench = Bench::new();
    let first = bench.try_it(10).token;
    let copy = bench.ask(10);
    assert_eq!(bench.end(10, first, true, false), Released::Done);
    let lost = bench.try_it(20).token;
    assert_eq!(bench.end(20, lost, true, true), Released::Done);
    // A late copy of the first acquire is granted to nobody, and the first release comes again.
    assert_standing(bench.acquire(&copy), Standing::Granted);
    assert_eq!(bench.end(10, first, true, false), Released::Done);
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Yes);
}

#[test]
fn bug_99_a_late_copy_joins_for_nobody_after_the_owner_lost_a_hold() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.release(10);
    bench.owned(11, "order 7");
    bench.owned(20, "order 7");
    let copy = Acquire { owner: Some(OwnerId::new("order 7").unwrap()), ..bench.ask(20) };
    bench.owned(21, "order 7");
    bench.owned(22, "order 7");
    assert_eq!(bench.release(20), Released::Done);
    assert_eq!(bench.release(22), Released::Done);
    assert_eq!(bench.end(11, bench.record.token, true, true), Released::Done);
    // For nobody: its holder has released, and never sees this answer.
    let mut out = (&mut bench.pushes, &bench.deaf, false);
    let stray = bench.record.acquire(bench.now, &caller(20), &copy, &mut out).unwrap();
    assert_eq!((stray.abandoned, stray.losses), (Abandoned::Yes, 1));
    bench.end(20, stray.token, true, false);
    bench.release(21);
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Yes);
}

#[test]
fn an_owners_hold_that_was_told_of_the_loss_clears_it() {
    let mut bench = Bench::new();
    bench.owned(10, "order 7");
    bench.owned(20, "order 7");
    bench.end(10, bench.record.token, true, true);
    assert_eq!(bench.owned(30, "order 7").abandoned, Abandoned::Yes);
    bench.release(30);
    bench.release(20);
    assert_eq!(bench.record.losses, 0, "the tenure is over");
    bench.release(30);
    assert_eq!(bench.try_it(40).abandoned, Abandoned::No);
}

#[test]
fn a_publish_that_fails_grants_with_the_claim() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.denied = true;
    bench.release(10);
    assert_eq!(bench.holders(), [20]);
    assert!(bench.wait(30).publish_failed);
}

#[test]
fn a_claim_that_is_never_answered_makes_abandoned_unknown() {
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.release(10);
    bench.now += CLAIM;
    assert_eq!(bench.try_it(30).abandoned, Abandoned::Unknown);
}

#[test]
fn bug_147_a_parked_waiter_that_is_heard_again_is_news_to_the_holder() {
    let wanted = [Push::Wanted { lock: name(), hold: HoldId(10) }];
    let mut bench = Bench::new();
    bench.wait(10);
    bench.wait(20);
    bench.wait(30);
    bench.now += CLAIM;
    assert_eq!(bench.beat(10).others_waiting, 0, "both are silent, and parked");
    bench.pushes.clear();
    assert_standing(bench.beat(20), Standing::Queued);
    assert_eq!(bench.pushes, wanted);
    // Of the second the holder need not hear.
    assert_standing(bench.wait(30), Standing::Queued);
    assert_eq!(bench.pushes, wanted);

    // The same by a repeated acquire, and where the store may not publish.
    bench.now += CLAIM;
    assert_eq!(bench.beat(10).others_waiting, 0);
    assert_standing(bench.wait(30), Standing::Queued);
    assert_eq!(bench.pushes, [wanted[0].clone(), wanted[0].clone()]);
    bench.now += CLAIM;
    assert_eq!(bench.beat(10).others_waiting, 0);
    bench.denied = true;
    assert!(bench.beat(20).publish_failed);
}
