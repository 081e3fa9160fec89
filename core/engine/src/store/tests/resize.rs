//! Semaphores that get another number of permits while some are out.

use super::{Bench, LEASE, SECOND, caller, name};
use crate::reply::{RefusalKind, Standing, State};
use crate::request::{Acquire, Mode, Resize};

impl Bench {
    fn permits(&mut self, id: u128, count: u32, of: u32) -> State {
        let ask = Acquire { mode: Mode::Permits { count, of }, ..self.ask(id) };
        self.acquire(&ask)
    }

    fn resize(&mut self, of: u32) -> bool {
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        self.record.resize(self.now, &Resize { lock: name(), of }, &mut out).unwrap()
    }
}

#[test]
fn bug_105_a_larger_number_lets_in_who_fits_now() {
    let mut bench = Bench::new();
    bench.permits(1, 2, 2);
    for id in [11, 21, 31] {
        assert_eq!(bench.permits(id, 1, 2).standing, Standing::Queued);
    }
    assert!(bench.resize(4));
    assert_eq!(bench.granted_by_push(), [11, 21]);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11, 21, 31]);
}

#[test]
fn bug_105_who_wants_more_than_there_are_is_passed_over_and_ends_at_its_next_word() {
    let mut bench = Bench::new();
    bench.permits(1, 3, 5);
    assert_eq!(bench.permits(11, 4, 5).standing, Standing::Queued);
    assert_eq!(bench.permits(21, 1, 5).standing, Standing::Queued);
    bench.resize(3);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [21], "past the one that waited for 4 of 3");
    assert_eq!(bench.beat(11).standing, Standing::Doomed { of: 3 });
    assert_eq!(bench.beat(11).standing, Standing::Gone, "and said once");
    assert_eq!(bench.holders(), [21]);
}

#[test]
fn a_doomed_waiter_that_asks_again_is_told_as_well() {
    let mut bench = Bench::new();
    bench.permits(1, 5, 5);
    bench.permits(11, 4, 5);
    bench.resize(2);
    assert_eq!(bench.permits(11, 4, 5).standing, Standing::Doomed { of: 2 });
    assert!(bench.record.waiters.is_empty());
}

#[test]
fn a_smaller_number_ends_nobody_and_lets_nobody_in_until_it_fits() {
    let mut bench = Bench::new();
    for id in [1, 11, 21] {
        bench.permits(id, 1, 3);
    }
    bench.permits(31, 1, 3);
    bench.resize(1);
    assert_eq!(bench.holders(), [1, 11, 21]);
    bench.release(1);
    bench.release(11);
    assert!(bench.granted_by_push().is_empty(), "one is out, of one");
    bench.release(21);
    assert_eq!(bench.granted_by_push(), [31]);
}

#[test]
fn bug_106_the_number_is_set_and_not_added() {
    let mut bench = Bench::new();
    bench.permits(1, 3, 3);
    bench.permits(11, 1, 3);
    bench.resize(3);
    bench.resize(3);
    assert!(bench.granted_by_push().is_empty());
    let ask = Acquire { wait: None, mode: Mode::Permits { count: 1, of: 3 }, ..bench.ask(21) };
    assert_eq!(bench.acquire(&ask).standing, Standing::Contended);
}

#[test]
fn whoever_comes_says_the_new_number_until_nobody_holds_or_waits() {
    let mut bench = Bench::new();
    bench.permits(1, 1, 3);
    bench.resize(5);
    assert_eq!(bench.permits(11, 4, 5).standing, Standing::Granted);
    let ask = Acquire { mode: Mode::Permits { count: 1, of: 3 }, ..bench.ask(21) };
    let mut out = (&mut bench.pushes, &bench.deaf, bench.denied);
    let refused = bench.record.acquire(bench.now, &caller(21), &ask, &mut out).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::OtherPermits { of: 5 });
    assert!(refused.message.contains('5') && refused.message.contains('3'), "{}", refused.message);
    bench.release(1);
    bench.release(11);
    assert_eq!(bench.permits(31, 1, 3).standing, Standing::Granted, "it is free");
}

#[test]
fn of_what_nobody_uses_nothing_is_changed() {
    let mut bench = Bench::new();
    assert!(!bench.resize(4));
    bench.permits(1, 1, 3);
    bench.now += LEASE + SECOND;
    assert!(!bench.resize(4), "nor of what has expired");
    assert_eq!(bench.permits(11, 1, 2).standing, Standing::Granted);
}

#[test]
fn a_lock_is_no_semaphore() {
    let mut bench = Bench::new();
    bench.wait(1);
    let mut out = (&mut bench.pushes, &bench.deaf, bench.denied);
    let ask = Resize { lock: name(), of: 4 };
    let refused = bench.record.resize(bench.now, &ask, &mut out).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Misconfigured);
    assert_eq!(bench.holders(), [1]);
}
