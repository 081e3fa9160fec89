//! Holds that change their mode.

use std::time::Duration;

use super::{Bench, CLAIM, LEASE, SECOND, caller, name};
use crate::id::{HoldId, OwnerId};
use crate::reply::{Abandoned, RefusalKind, Released, Standing, State};
use crate::request::{Acquire, Convert, Mode};

const READ: Mode = Mode::Shared;
const WRITE: Mode = Mode::Exclusive;

impl Bench {
    fn conversion(&self, id: u128, to: Mode) -> Convert {
        let lease = Duration::from_micros(LEASE);
        let losses = self.losses.get(&id).copied().unwrap_or(0);
        let used = self.record.token;
        let ask = Convert::new(name(), HoldId(id), to, lease, self.now + CLAIM);
        Convert { used, losses, ..ask }
    }

    fn ask_to(&mut self, ask: &Convert) -> State {
        let mut out = (&mut self.pushes, &self.deaf, self.denied);
        self.record.convert(self.now, &caller(ask.hold.0), ask, &mut out).unwrap()
    }

    fn convert(&mut self, id: u128, to: Mode) -> State {
        let ask = self.conversion(id, to);
        self.ask_to(&ask)
    }

    fn reader(&mut self, id: u128) -> State {
        let ask = Acquire { mode: READ, ..self.ask(id) };
        self.acquire(&ask)
    }

    fn owned_reader(&mut self, id: u128, owner: &str) -> State {
        let owner = Some(OwnerId::new(owner).unwrap());
        let ask = Acquire { mode: READ, owner, ..self.ask(id) };
        self.acquire(&ask)
    }

    fn mode_of(&self, id: u128) -> Mode {
        self.record.holds.iter().find(|hold| hold.hold.0 == id).unwrap().mode
    }
}

#[test]
fn bug_092_a_downgrade_lets_readers_in_and_no_writer() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.reader(11);
    bench.wait(21);
    bench.reader(31);
    assert_eq!(bench.convert(1, READ).standing, Standing::Granted);
    assert_eq!(bench.granted_by_push(), [11], "up to the next writer");
    assert_eq!(bench.holders(), [1, 11]);
    bench.release(11);
    assert_eq!(bench.holders(), [1], "the writer waits for the one that was downgraded");
    bench.release(1);
    assert_eq!(bench.holders(), [21]);
}

#[test]
fn bug_093_what_was_downgraded_is_released_once() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.convert(1, READ);
    bench.reader(11);
    assert_eq!(bench.release(1), Released::Done);
    assert_eq!(bench.holders(), [11]);
    bench.reader(21);
    assert_eq!(bench.release(1), Released::Done, "said again, it ends nobody");
    assert_eq!(bench.holders(), [11, 21]);
    assert_eq!(bench.convert(1, READ).standing, Standing::Released);
    assert_eq!(bench.holders(), [11, 21], "nor does a late copy bring it back");
}

#[test]
fn bug_094_a_downgrades_token_is_above_the_writers_and_below_all_that_follow() {
    let mut bench = Bench::new();
    let writer = bench.wait(1);
    let used = writer.token + 5;
    bench.beat_for(1, LEASE, used);
    bench.wait(21);
    let ask = Convert { used, ..bench.conversion(1, READ) };
    let reader = bench.ask_to(&ask);
    assert_eq!([reader.token, reader.end], [used + 1; 2]);
    assert_eq!(bench.record.last, used + 1, "what is left of the block goes back");
    bench.release(1);
    assert_eq!(bench.holders(), [21]);
    assert!(bench.record.token > reader.token);
}

#[test]
fn a_conversion_is_repeated_without_harm() {
    let mut bench = Bench::new();
    bench.wait(1);
    let first = bench.convert(1, READ);
    bench.now += SECOND;
    let again = bench.convert(1, READ);
    assert_eq!(again.token, first.token);
    let up = bench.convert(1, WRITE);
    assert!(up.token > first.token && up.end > up.token, "a block of its own");
    assert_eq!(bench.convert(1, WRITE).token, up.token);
    assert_eq!(bench.mode_of(1), WRITE);
}

#[test]
fn only_the_sole_hold_becomes_exclusive_and_passes_who_waits() {
    let mut bench = Bench::new();
    bench.reader(1);
    bench.reader(11);
    bench.wait(21);
    let refused = bench.convert(1, WRITE);
    assert_eq!((refused.standing, refused.others_waiting), (Standing::Contended, 1));
    assert_eq!(bench.mode_of(1), READ);
    bench.release(11);
    let granted = bench.convert(1, WRITE);
    assert_eq!(granted.standing, Standing::Granted, "past the writer that waits");
    assert_eq!(bench.holders(), [1]);
    bench.reader(31);
    assert_eq!(bench.holders(), [1], "and no reader joins it");
}

#[test]
fn two_that_ask_to_write_are_both_refused() {
    let mut bench = Bench::new();
    bench.reader(1);
    bench.reader(11);
    for id in [1, 11] {
        assert_eq!(bench.convert(id, WRITE).standing, Standing::Contended);
    }
    assert_eq!(bench.holders(), [1, 11]);
}

#[test]
fn a_downgrade_clears_abandoned_as_a_release_does() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.now += LEASE;
    assert_eq!(bench.wait(11).abandoned, Abandoned::Yes);
    assert_eq!(bench.reader(21).standing, Standing::Queued);
    let state = bench.convert(11, READ);
    assert_eq!((state.standing, state.abandoned), (Standing::Granted, Abandoned::No));
    bench.release(11);
    bench.release(21);
    assert_eq!(bench.wait(31).abandoned, Abandoned::No);
}

#[test]
fn an_upgrade_is_told_of_a_loss_and_its_undoing_clears_nothing() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.now += LEASE;
    let reader = bench.reader(11);
    assert_eq!(reader.abandoned, Abandoned::Yes);
    let writer = bench.convert(11, WRITE);
    assert_eq!(writer.abandoned, Abandoned::Yes);
    let undo = Convert { told: false, used: reader.token, ..bench.conversion(11, READ) };
    let undone = bench.ask_to(&undo);
    assert_eq!(undone.abandoned, Abandoned::Yes);
    assert_eq!(undone.token, writer.token, "a number that nobody was given");
    bench.release(11);
    assert_eq!(bench.wait(21).abandoned, Abandoned::Yes);
}

#[test]
fn a_late_conversion_changes_nothing() {
    let mut bench = Bench::new();
    bench.wait(1);
    let ask = bench.conversion(1, READ);
    bench.now += CLAIM + 1;
    bench.beat(1);
    assert_eq!(bench.ask_to(&ask).standing, Standing::Late);
    let far = Convert { not_after: bench.now + 3 * CLAIM, ..ask };
    assert_eq!(bench.ask_to(&far).standing, Standing::Late, "nor one whose bound is too far ahead");
    assert_eq!(bench.mode_of(1), WRITE);
}

#[test]
fn what_is_not_held_is_not_converted() {
    let mut bench = Bench::new();
    assert_eq!(bench.convert(1, READ).standing, Standing::Gone);
    bench.wait(1);
    bench.wait(11);
    assert_eq!(bench.convert(11, WRITE).standing, Standing::Gone, "it only waits");
    bench.now += LEASE;
    assert_eq!(bench.convert(1, READ).standing, Standing::Gone, "its time was over");
    assert!(bench.granted_by_push().contains(&11) || bench.holders().is_empty());
}

#[test]
fn a_conversion_renews_and_never_shortens() {
    let mut bench = Bench::new();
    bench.wait(1);
    bench.now += LEASE / 2;
    let deadline = bench.now + LEASE;
    bench.convert(1, READ);
    assert_eq!(bench.record.holds[0].deadline, deadline);
    let short = Convert { lease: Duration::from_secs(1), ..bench.conversion(1, WRITE) };
    bench.ask_to(&short);
    assert_eq!(bench.record.holds[0].deadline, deadline);
}

#[test]
fn bug_122_an_owners_levels_keep_their_mode() {
    let mut bench = Bench::new();
    let write = bench.owned(1, "o");
    let read = bench.owned_reader(2, "o");
    assert_eq!(read.token, write.token);
    bench.reader(11);
    bench.release(1);
    assert_eq!(bench.granted_by_push(), [11], "what is left of the owner only reads");
    assert_eq!(bench.mode_of(2), READ);
}

#[test]
fn an_owner_has_the_lock_for_itself_while_one_of_its_holds_is_exclusive() {
    let mut bench = Bench::new();
    let write = bench.owned(1, "o");
    bench.owned(2, "o");
    bench.reader(11);
    assert_eq!(bench.convert(1, READ).token, write.token);
    assert!(bench.granted_by_push().is_empty());
    let last = bench.convert(2, READ);
    assert_eq!(last.token, write.token + 1);
    assert_eq!(bench.granted_by_push(), [11]);
    assert_eq!(bench.convert(1, WRITE).standing, Standing::Contended);
}

#[test]
fn an_owner_that_is_made_exclusive_may_enter_again() {
    let mut bench = Bench::new();
    bench.owned_reader(1, "o");
    let write = bench.convert(1, WRITE);
    let again = bench.owned(2, "o");
    assert_eq!((again.standing, again.token), (Standing::Granted, write.token));
}

#[test]
fn permits_have_no_other_mode() {
    let mut bench = Bench::new();
    let mode = Mode::Permits { count: 1, of: 2 };
    let ask = Acquire { mode, ..bench.ask(1) };
    bench.acquire(&ask);
    let ask = bench.conversion(1, READ);
    let mut out = (&mut bench.pushes, &bench.deaf, bench.denied);
    let refused = bench.record.convert(bench.now, &caller(1), &ask, &mut out).unwrap_err();
    assert_eq!(refused.kind, RefusalKind::Misconfigured);
}
