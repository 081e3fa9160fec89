//! How long records are kept.

use super::*;
use crate::reply::Abandoned;
use crate::store::Keep;

#[test]
fn a_record_is_kept_for_the_retention_or_for_a_day_when_it_has_something_to_tell() {
    let mut bench = Bench::new();
    let (short, day) = (Duration::from_secs(7), 24 * 3_600 * SECOND);
    let state = bench.try_it(10);
    bench.now += SECOND;
    let kept = |bench: &Bench| bench.record.kept_until(bench.now, short);
    assert_eq!(kept(&bench), None, "somebody holds");
    bench.release(10);
    assert_eq!(kept(&bench), Some(bench.now + 7 * SECOND));
    // Tokens that the clock has not passed.
    bench.record.last = bench.now + 10 * SECOND;
    assert_eq!(kept(&bench), Some(bench.record.last + day));
    bench.record.last = state.token;
    // A holder that was lost.
    bench.try_it(11);
    bench.now += 40 * SECOND;
    assert_eq!(kept(&bench), None, "nobody has seen yet that it ended");
    bench.record.tick(bench.now);
    assert_eq!(kept(&bench), Some(bench.now + day));
}

#[test]
fn a_record_is_looked_at_seldom_and_forgotten_when_it_may_be() {
    let mut bench = Bench::new();
    let minute = 60 * SECOND;
    bench.try_it(10);
    let mut keep = Keep::new(bench.now);
    let over = |bench: &mut Bench, keep: &mut Keep| {
        let mut out = (&mut bench.pushes, &bench.deaf, bench.denied);
        keep.is_over(&mut bench.record, bench.now, &name(), &mut out)
    };
    // In use: looked at once a minute.
    let due = keep.due;
    assert_eq!(due, bench.now + minute);
    keep.used(&bench.record, bench.now, Duration::from_secs(60));
    assert_eq!(keep.due, due);
    // Released and taken again: still the same look.
    bench.release(10);
    keep.used(&bench.record, bench.now, Duration::from_secs(60));
    bench.now += 30 * SECOND;
    bench.try_it(11);
    keep.used(&bench.record, bench.now, Duration::from_secs(60));
    bench.release(11);
    keep.used(&bench.record, bench.now, Duration::from_secs(60));
    assert_eq!((keep.due, keep.until), (due, Some(due + 30 * SECOND)));
    bench.now = due;
    assert!(!over(&mut bench, &mut keep));
    assert_eq!(keep.due, due + 30 * SECOND);
    bench.now = keep.due;
    assert!(over(&mut bench, &mut keep));
    // A shorter retention than what is left is heeded.
    let mut keep = Keep::new(bench.now);
    keep.used(&bench.record, bench.now, Duration::from_secs(6));
    assert_eq!(keep.due, bench.now + 6 * SECOND);
    // Whoever died holding is told of for a day; who waited, and is silent, goes.
    bench.try_it(12);
    bench.wait(20);
    keep.used(&bench.record, bench.now, Duration::from_secs(6));
    bench.now += 10 * minute;
    let mut looks = 1;
    while !over(&mut bench, &mut keep) {
        bench.now = keep.due;
        looks += 1;
    }
    assert_eq!(looks, 2, "one that is rid of them, one at the end of the day");
    assert!(bench.record.holds.is_empty() && bench.record.waiters.is_empty());
    assert_eq!(bench.record.abandoned, Abandoned::Yes);
}

#[test]
fn a_contact_of_a_free_lock_does_not_cut_its_retention() {
    let mut bench = Bench::new();
    let (short, long) = (Duration::from_secs(60), Duration::from_secs(600));
    bench.try_it(10);
    let mut keep = Keep::new(bench.now);
    bench.now += SECOND;
    bench.release(10);
    keep.used(&bench.record, bench.now, long);
    let until = Some(bench.now + 600 * SECOND);
    assert_eq!(keep.until, until);
    // A late heartbeat, a break of what is not held: they name no retention.
    bench.now += 10 * SECOND;
    bench.beat(10);
    keep.used(&bench.record, bench.now, short);
    assert_eq!(keep.until, until);
    bench.now += 580 * SECOND;
    bench.beat(10);
    keep.used(&bench.record, bench.now, short);
    assert_eq!(keep.until, Some(bench.now + 60 * SECOND), "it may be kept for longer");
    // The next release says anew for how long.
    bench.try_it(11);
    keep.used(&bench.record, bench.now, short);
    bench.release(11);
    keep.used(&bench.record, bench.now, Duration::from_secs(6));
    assert_eq!(keep.until, Some(bench.now + 6 * SECOND));
}
