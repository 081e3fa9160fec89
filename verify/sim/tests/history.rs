//! The run's history, judged by the checks that real processes are judged by.

use fencelock_engine::plant::{self, Bug};
use fencelock_history::{check, read, write};
use fencelock_sim::{Case, Chronicle, Runner, StoreKind, Trace};

fn history(runner: &mut Runner, seed: u64, chronicle: Chronicle) -> Vec<fencelock_history::Record> {
    let case = Case::of(seed, StoreKind::Record);
    runner.record(&case, Trace::silent(), chronicle).history.into_records()
}

#[test]
fn the_shared_checks_find_nothing_in_clean_runs() {
    let mut runner = Runner::default();
    let (mut grants, mut lost, mut excused, mut refused) = (0, 0, 0, 0);
    for seed in 1..=300 {
        let records = history(&mut runner, seed, Chronicle::kept());
        match check::all(&records) {
            Ok(found) => {
                grants += found.grants;
                lost += found.lost;
                excused += found.excused;
                refused += found.refused_writes;
            }
            Err(broken) => panic!("seed {seed}: {broken:?}"),
        }
    }
    // What was met: without it nothing is shown.
    assert!(grants > 10_000 && lost > 100, "{grants} grants, {lost} lost");
    assert!(excused > 10 && refused > 10, "{excused} excused, {refused} writes refused");
}

#[test]
fn a_history_changes_nothing_and_is_read_back() {
    let case = Case::of(7, StoreKind::Record);
    let with = Runner::default().record(&case, Trace::silent(), Chronicle::kept());
    let without = Runner::default().play(&case, Trace::silent());
    assert_eq!((with.hash, with.steps), (without.hash, without.steps));
    let records = with.history.into_records();
    let mut file = Vec::new();
    write(&records, &mut file).unwrap();
    let (back, json) = (read(&*file).unwrap(), fencelock_history::Record::to_json);
    assert!(records.len() > 100);
    assert!(back.iter().map(json).eq(records.iter().map(json)));
    assert!(without.history.into_records().is_empty());
}

/// With the simulator's own checkers silent, the history alone must tell of a planted bug.
#[track_caller]
fn told(bug: Bug, word: &str) {
    plant::plant(Some(bug));
    let mut runner = Runner::default();
    let found = (1..=400).find(|seed| {
        let records = history(&mut runner, *seed, Chronicle::unchecked());
        let broken = check::all(&records).err().map(|broken| broken.0).unwrap_or_default();
        broken.iter().any(|what| what.starts_with(word))
    });
    plant::plant(None);
    assert!(found.is_some(), "{bug:?} is not told as {word}");
}

#[test]
fn a_history_alone_tells_of_planted_bugs() {
    told(Bug::ReleaseWithoutOwner, "exclusion");
    told(Bug::CounterStartsAgain, "token order");
    told(Bug::PushFromReceipt, "exclusion");
}
