//! A planted bug's first failing run is made small, and the small run replays.

use fencelock_engine::plant::{self, Bug};
use fencelock_sim::shrink::{TRIES, shrink};
use fencelock_sim::{Case, Edits, Runner, StoreKind, Trace};

/// Plants a bug, takes the first seed that finds it in a long run, and makes that smaller.
fn smaller(bug: Bug, promise: &str, at_most: u64) {
    plant::plant(Some(bug));
    let mut runner = Runner::default();
    let failing = (1..2_000).find_map(|seed| {
        let run = runner.run(seed, StoreKind::Record, Trace::silent());
        // One that is small already shows nothing.
        run.violation.filter(|it| it.promise == promise && run.steps > at_most)?;
        Some((seed, run.steps))
    });
    let (seed, steps) = failing.expect("the bug is found");
    let case = Case::of(seed, StoreKind::Record);
    let found = shrink(&mut runner, &case, TRIES).expect("it still fails");
    assert_eq!(found.promise, promise);
    assert!(found.steps < steps && found.steps <= at_most, "{found:?}, at first {steps} steps");
    // What is printed is all that it takes to see it again.
    let text = found.case.edits.to_string();
    let edits: Edits = text.parse().unwrap();
    let again = Runner::default().play(&Case { edits, ..case }, Trace::kept());
    assert_eq!(again.violation.map(|it| it.promise), Some(found.promise), "{text}");
    assert_eq!(again.steps, found.steps);
    assert!(again.trace.text().lines().count() > 10);
    // Without the bug the small run is clean.
    plant::plant(None);
    let clean = Runner::default().play(&found.case, Trace::silent());
    assert_eq!(clean.violation, None);
}

#[test]
fn a_release_without_owner_takes_few_steps() {
    smaller(Bug::ReleaseWithoutOwner, "only the holder releases", 60);
}

#[test]
fn a_ledger_without_tokens_takes_few_steps() {
    smaller(Bug::WriteWithoutToken, "fencing", 120);
}

#[test]
fn a_block_not_reserved_takes_few_steps() {
    smaller(Bug::BlockNotReserved, "token order", 200);
}

#[test]
fn a_clean_run_is_not_made_smaller() {
    plant::plant(None);
    let case = Case::of(1, StoreKind::Record);
    assert!(shrink(&mut Runner::default(), &case, 10).is_none());
}
