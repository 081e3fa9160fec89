//! A client that follows the masters that Sentinels name, and what happens when a rule of it is bent.

use fencelock_engine::plant::{self, Bug};
use fencelock_sim::sentinel::{Outcome, run};

/// How many seeds a planted bug may take to be found.
const SEEDS: u64 = 2_000;

#[test]
fn the_client_is_where_the_highest_epoch_is() {
    let mut all = Outcome::default();
    for seed in 1..=600 {
        let outcome = run(seed).unwrap();
        all.failovers += outcome.failovers;
        all.sessions += outcome.sessions;
        all.left += outcome.left;
    }
    assert!(all.failovers > 2_000 && all.left > 500, "{all:?}");
    assert!(all.sessions > all.failovers, "{all:?}");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    for seed in 1..=20 {
        assert_eq!(run(seed), run(seed));
    }
}

/// The seed that finds a bug.
fn found(bug: Bug) -> (u64, String) {
    let found = (1..=SEEDS).find_map(|seed| {
        plant::plant(Some(bug));
        let why = run(seed).err();
        plant::plant(None);
        why.map(|why| (seed, why))
    });
    found.unwrap_or_else(|| panic!("{bug:?} is not found in {SEEDS} seeds"))
}

#[test]
fn d120_a_stale_sentinel_that_is_believed_is_found() {
    let (_, why) = found(Bug::FirstSentinelBelieved);
    assert!(why.contains("was heard of"), "{why}");
}

#[test]
fn d121_a_connection_that_outlives_its_masters_time_is_found() {
    let (_, why) = found(Bug::MasterNotLeft);
    assert!(why.contains("for long") || why.contains("in the end"), "{why}");
}

#[test]
fn d122_a_replica_that_is_not_asked_its_role_is_found() {
    let (_, why) = found(Bug::RoleNotAsked);
    assert!(why.contains("is a replica"), "{why}");
}

#[test]
fn d123_a_switch_whose_message_was_lost_and_that_is_never_asked_for_is_found() {
    let (_, why) = found(Bug::SentinelsNotAskedAgain);
    assert!(why.contains("for long") || why.contains("in the end"), "{why}");
}
