//! Readers beside a writer, and permits.

use super::{Bench, LEASE, SECOND, caller, name};
use crate::id::{HoldId, OwnerId};
use crate::reply::{Abandoned, Broken, Push, RefusalKind, Released, Standing, State};
use crate::request::{Acquire, Break, Mode};

const READ: Mode = Mode::Shared;

fn permits(count: u32, of: u32) -> Mode {
    Mode::Permits { count, of }
}

impl Bench {
    fn in_mode(&self, id: u128, mode: Mode) -> Acquire {
        Acquire { mode, ..self.ask(id) }
    }

    fn read(&mut self, id: u128) -> State {
        self.acquire(&self.in_mode(id, READ))
    }

    fn take(&mut self, id: u128, count: u32, of: u32) -> State {
        self.acquire(&self.in_mode(id, permits(count, of)))
    }

    fn owned_in(&mut self, id: u128, owner: &str, mode: Mode) -> State {
        let owner = Some(OwnerId::new(owner).unwrap());
        self.acquire(&Acquire { owner, ..self.in_mode(id, mode) })
    }

    fn refusal(&mut self, ask: &Acquire) -> (RefusalKind, String) {
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        let refused = self.record.acquire(self.now, &caller(ask.hold.0), ask, &mut out);
        let refusal = refused.unwrap_err();
        (refusal.kind, refusal.message)
    }
}

#[test]
fn readers_hold_together_and_a_writer_alone() {
    let mut bench = Bench::new();
    let one = bench.read(1);
    let two = bench.read(11);
    assert_eq!([one.standing, two.standing], [Standing::Granted; 2]);
    assert_eq!(two.token, one.token + 1, "a number each, and no block");
    assert_eq!([one.end, two.end], [one.token, two.token]);
    assert_eq!(bench.wait(21).standing, Standing::Queued);
    bench.release(1);
    assert!(bench.granted_by_push().is_empty(), "a reader is left");
    bench.release(11);
    assert_eq!(bench.granted_by_push(), [21]);
    let Some(Push::Granted { token, end, .. }) = bench.pushes.last() else { panic!("no grant") };
    assert!(*token > two.token && end > token, "a writer's is above, with a block");
}

#[test]
fn bug_083_no_reader_passes_a_writer_that_waits() {
    let mut bench = Bench::new();
    bench.read(1);
    assert_eq!(bench.wait(11).standing, Standing::Queued);
    assert_eq!(bench.read(21).standing, Standing::Queued);
    let tried = bench.acquire(&Acquire { wait: None, ..bench.in_mode(31, READ) });
    assert_eq!(tried.standing, Standing::Contended, "nor does a try");
}

#[test]
fn bug_084_all_readers_at_the_head_are_let_in_and_none_behind_the_next_writer() {
    let mut bench = Bench::new();
    bench.wait(1);
    for id in [11, 21, 31] {
        assert_eq!(bench.read(id).standing, Standing::Queued);
    }
    bench.wait(41);
    bench.read(51);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11, 21, 31]);
}

#[test]
fn bug_085_a_dead_reader_in_the_middle_is_passed_over() {
    let mut bench = Bench::new();
    bench.wait(1);
    for id in [11, 21, 31] {
        bench.read(id);
    }
    bench.deaf.insert(caller(21).client.id().to_owned());
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11, 31]);
}

#[test]
fn bug_086_the_last_reader_lets_the_first_of_two_writers_in() {
    let mut bench = Bench::new();
    bench.read(1);
    bench.wait(11);
    bench.wait(21);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11]);
}

#[test]
fn bug_087_and_090_each_reader_has_its_own_lease() {
    let mut bench = Bench::new();
    bench.read(1);
    let mut short = bench.in_mode(11, READ);
    short.lease = std::time::Duration::from_secs(1);
    bench.acquire(&short);
    bench.wait(21);
    bench.now += 2 * SECOND;
    bench.beat(21);
    let info = bench.record.inspect(bench.now, &name());
    assert_eq!(info.holds.iter().map(|hold| hold.hold.0).collect::<Vec<_>>(), [1]);
    assert!(info.holds[0].expires_in.as_secs() > 25);
    // Nor does the renewal of one keep the other.
    bench.now += LEASE - 3 * SECOND;
    bench.beat(21);
    bench.now += 2 * SECOND;
    assert_eq!(bench.beat(21).standing, Standing::Granted);
}

#[test]
fn bug_088_and_089_each_reader_is_renewed_by_itself() {
    let mut bench = Bench::new();
    let one = bench.read(1);
    bench.read(11);
    for _ in 0..3 {
        bench.now += LEASE / 2;
        assert_eq!(bench.beat_for(1, LEASE, one.token).standing, Standing::Granted);
    }
    assert_eq!(bench.beat(11).standing, Standing::Gone);
    assert_eq!(bench.record.holds.len(), 1);
}

#[test]
fn bug_095_who_reads_and_wants_to_write_is_told_at_once() {
    let mut bench = Bench::new();
    bench.owned_in(1, "a", READ);
    bench.read(11);
    assert_eq!(bench.owned_in(21, "a", Mode::Exclusive).standing, Standing::Deadlock);
    assert!(bench.record.waiters.is_empty(), "nothing is queued");
    let tried = Acquire { wait: None, ..bench.in_mode(22, Mode::Exclusive) };
    let owner = Some(OwnerId::new("a").unwrap());
    assert_eq!(bench.acquire(&Acquire { owner, ..tried }).standing, Standing::Deadlock);
}

#[test]
fn bug_096_an_owner_reads_again_past_a_writer() {
    let mut bench = Bench::new();
    let first = bench.owned_in(1, "a", READ);
    bench.wait(11);
    let again = bench.owned_in(21, "a", READ);
    assert_eq!((again.standing, again.token), (Standing::Granted, first.token));
    assert_eq!(bench.read(31).standing, Standing::Queued);
}

#[test]
fn an_owner_that_writes_reads_too_and_goes_on_reading() {
    let mut bench = Bench::new();
    let writer = bench.owned_in(1, "a", Mode::Exclusive);
    let reader = bench.owned_in(11, "a", READ);
    assert_eq!((reader.standing, reader.token), (Standing::Granted, writer.token));
    assert_eq!(bench.read(21).standing, Standing::Queued);
    bench.end(1, writer.token + 3, true, false);
    assert_eq!(bench.granted_by_push(), [21], "what is left is a reader");
    let late = bench.record.holds.iter().find(|hold| hold.hold.0 == 21).unwrap();
    assert!(late.token > writer.token + 3);
    assert_eq!(bench.owned_in(31, "a", Mode::Exclusive).standing, Standing::Deadlock);
}

#[test]
fn bug_121_a_queued_writer_whose_owner_reads_by_now_ends_its_wait() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.owned_in(11, "a", READ);
    bench.owned_in(21, "a", Mode::Exclusive);
    bench.read(31);
    bench.release(1);
    // The reader is in; the writer that would wait for it holds up nobody behind it.
    assert_eq!(bench.granted_by_push(), [11, 31]);
    assert_eq!(bench.beat(21).standing, Standing::Deadlock);
    assert!(bench.record.waiters.is_empty());
}

#[test]
fn an_owners_readers_join_each_other_however_they_wait() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.owned_in(11, "a", READ);
    bench.wait(21);
    bench.owned_in(31, "a", READ);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11, 31], "the second one is not behind the writer");
    let tokens: Vec<u64> = bench.record.holds.iter().map(|hold| hold.token).collect();
    assert_eq!(tokens[0], tokens[1]);
}

#[test]
fn bug_097_a_name_has_one_queue_for_both_sides() {
    let mut bench = Bench::new();
    bench.wait(1);
    assert_eq!(bench.read(11).standing, Standing::Queued);
    let mut bench = Bench::new();
    bench.read(1);
    assert_eq!(bench.try_it(11).standing, Standing::Contended);
}

#[test]
fn bug_098_readers_do_not_run_ahead_of_the_clock() {
    let mut bench = Bench::new();
    for id in 0..1_000 {
        bench.now += 10;
        bench.read(id * 10);
        bench.release(id * 10);
    }
    assert!(bench.record.last <= bench.now + 1_024, "{} ahead", bench.record.last - bench.now);
}

#[test]
fn bug_099_only_a_writer_leaves_a_lock_abandoned_and_only_a_writer_clears_it() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.release(1);
    bench.read(11);
    bench.now += LEASE;
    let writer = bench.wait(21);
    assert_eq!(writer.abandoned, Abandoned::No, "a reader that died left nothing half done");
    bench.now += LEASE;
    let reader = bench.read(31);
    assert_eq!(reader.abandoned, Abandoned::Yes);
    bench.release(31);
    let writer = bench.wait(41);
    assert_eq!(writer.abandoned, Abandoned::Yes, "and a reader mends nothing");
    bench.release(41);
    assert_eq!(bench.read(51).abandoned, Abandoned::No);
}

#[test]
fn permits_are_counted_and_come_back_once() {
    let mut bench = Bench::new();
    assert_eq!(bench.take(1, 2, 4).standing, Standing::Granted);
    let two = bench.take(11, 2, 4);
    assert_eq!(two.standing, Standing::Granted);
    assert_eq!(bench.take(21, 1, 4).standing, Standing::Queued);
    assert_eq!(bench.release(11), Released::Done);
    assert_eq!(bench.release(11), Released::Done, "a repeat adds nothing");
    assert_eq!(bench.granted_by_push(), [21]);
    assert_eq!(bench.take(31, 2, 4).standing, Standing::Queued);
    assert_eq!(bench.take(41, 1, 4).standing, Standing::Queued, "not past the larger one");
}

#[test]
fn bug_103_small_requests_do_not_pass_a_large_one() {
    let mut bench = Bench::new();
    bench.take(1, 1, 3);
    assert_eq!(bench.take(11, 3, 3).standing, Standing::Queued);
    let small = bench.in_mode(21, permits(1, 3));
    assert_eq!(bench.acquire(&small).standing, Standing::Queued);
    let tried = Acquire { wait: None, ..bench.in_mode(31, permits(1, 3)) };
    assert_eq!(bench.acquire(&tried).standing, Standing::Contended);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11]);
}

#[test]
fn bug_104_the_large_one_at_the_head_gives_up_and_the_others_go_on() {
    let mut bench = Bench::new();
    bench.take(1, 1, 3);
    bench.take(11, 3, 3);
    bench.take(21, 1, 3);
    bench.take(31, 1, 3);
    bench.release(11);
    assert_eq!(bench.granted_by_push(), [21, 31]);
}

#[test]
fn bug_107_another_number_of_permits_is_refused_with_both() {
    let mut bench = Bench::new();
    bench.take(1, 1, 5);
    let (kind, message) = bench.refusal(&bench.in_mode(11, permits(1, 10)));
    assert_eq!(kind, RefusalKind::OtherPermits { of: 5 });
    assert!(message.contains('5') && message.contains("10"), "{message}");
    let (kind, message) = bench.refusal(&bench.in_mode(11, READ));
    assert_eq!(kind, RefusalKind::Misconfigured);
    assert!(message.contains("semaphore"), "{message}");
    // Once nobody holds or waits, the newcomer says how many there are.
    bench.release(1);
    assert_eq!(bench.take(11, 1, 10).standing, Standing::Granted);
    let mut bench = Bench::new();
    bench.wait(1);
    let (_, message) = bench.refusal(&bench.in_mode(11, permits(1, 10)));
    assert!(message.contains("another name"), "{message}");
}

#[test]
fn silent_waiters_of_another_kind_do_not_keep_a_name() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.wait(11);
    bench.deaf.insert(caller(11).client.id().to_owned());
    bench.release(1);
    assert!(!bench.record.waiters.is_empty());
    assert_eq!(bench.take(21, 1, 2).standing, Standing::Granted);
    assert!(bench.record.waiters.is_empty());
}

#[test]
fn bug_108_a_permit_that_expired_is_not_given_back_again() {
    let mut bench = Bench::new();
    bench.take(1, 1, 1);
    bench.now += LEASE;
    assert_eq!(bench.take(11, 1, 1).standing, Standing::Granted);
    assert_eq!(bench.release(1), Released::Unknown);
    assert_eq!(bench.take(21, 1, 1).standing, Standing::Queued);
    assert!(bench.granted_by_push().is_empty());
}

#[test]
fn bug_112_a_clock_that_steps_back_clamps_every_hold() {
    let mut bench = Bench::new();
    for id in [1, 11, 21] {
        bench.read(id);
    }
    bench.now -= 1_000 * SECOND;
    bench.wait(31);
    bench.now += LEASE;
    assert_eq!(bench.beat(31).standing, Standing::Granted);
}

#[test]
fn a_batch_is_bounded_and_the_next_contact_goes_on() {
    let mut bench = Bench::new();
    bench.wait(1);
    for id in 1..=100 {
        bench.read(id * 10 + 1);
    }
    bench.release(1);
    assert_eq!(bench.granted_by_push().len(), 64);
    // Those behind do not pass, and none is left out.
    let tried = Acquire { wait: None, ..bench.in_mode(9_001, READ) };
    assert_eq!(bench.acquire(&tried).standing, Standing::Granted, "the rest came first");
    assert_eq!(bench.record.holds.len(), 101);
}

#[test]
fn a_break_ends_the_hold_that_was_seen_and_a_lost_reader_is_no_loss() {
    let mut bench = Bench::new();
    let one = bench.read(1);
    let two = bench.read(11);
    let what = |token, hold| Break { lock: name(), token, hold };
    let mut out = (&mut bench.pushes, &bench.deaf, false);
    let broken = bench.record.break_lock(bench.now, &what(one.token, None), &mut out);
    assert_eq!(broken, Broken::Ended(1));
    let again = bench.record.break_lock(bench.now, &what(one.token, None), &mut out);
    assert_eq!(again, Broken::ChangedHands(two.token));
    let named = what(two.token, Some(HoldId(11)));
    assert_eq!(bench.record.break_lock(bench.now, &named, &mut out), Broken::Ended(1));
    assert_ne!(bench.wait(21).abandoned, Abandoned::Yes);
}
