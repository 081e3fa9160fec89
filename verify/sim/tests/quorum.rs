//! Locks on most of several servers, and what happens when a rule of it is bent.

use fencelock_engine::plant::{self, Bug};
use fencelock_sim::quorum::{Outcome, run};

/// How many seeds a planted bug may take to be found.
const SEEDS: u64 = 4_000;

/// How many runs there are without a bug: `scripts/deep quorum` sets more.
fn runs() -> u64 {
    let set = std::env::var("QUORUM_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    set.unwrap_or(300)
}

#[test]
fn a_lock_is_kept_by_most_servers() {
    let mut all = Outcome::default();
    for seed in 1..=runs() {
        let outcome = run(seed).unwrap();
        all.grants += outcome.grants;
        all.losses += outcome.losses;
        all.failures += outcome.failures;
        all.faults += outcome.faults;
    }
    // What was to go wrong did.
    assert!(u64::from(all.grants) > 100 * runs() && u64::from(all.faults) > 10 * runs(), "{all:?}");
    assert!(u64::from(all.losses) > runs() / 2 && u64::from(all.failures) > runs(), "{all:?}");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    for seed in 1..=10 {
        assert_eq!(run(seed), run(seed));
    }
}

/// What the first seed that finds a bug says.
fn found(bug: Bug) -> String {
    let found = (1..=SEEDS).find_map(|seed| {
        plant::plant(Some(bug));
        let why = run(seed).err();
        plant::plant(None);
        why
    });
    let why = found.unwrap_or_else(|| panic!("{bug:?} is not found in {SEEDS} seeds"));
    println!("{bug:?}: {why}");
    why
}

#[test]
fn d146_most_of_those_that_answer_is_found() {
    let why = found(Bug::MajorityOfReachable);
    assert!(why.contains("may trust") || why.contains("token"), "{why}");
}

#[test]
fn d147_votes_that_are_missing_and_not_asked_for_again_are_found() {
    let why = found(Bug::MissingVotesLeft);
    assert!(why.contains("votes of") && why.contains("for long"), "{why}");
}

#[test]
fn d148_a_restart_that_forgot_the_last_second_is_found() {
    let why = found(Bug::RunIdNotCompared);
    assert!(why.contains("its memory is new"), "{why}");
}

#[test]
fn d149_votes_at_once_after_all_was_flushed_are_found() {
    let why = found(Bug::MarkerNotAsked);
    assert!(why.contains("its memory is new"), "{why}");
}

#[test]
fn d150_a_vote_that_revives_a_hold_is_found() {
    let why = found(Bug::RepairRevives);
    assert!(why.contains("which an operator ended") || why.contains("token"), "{why}");
}

#[test]
fn d151_one_silent_server_that_all_wait_for_is_found() {
    found(Bug::OneSilentAllWait);
}

#[test]
fn d152_lists_of_three_and_five_are_found() {
    let why = found(Bug::ListNotCompared);
    assert!(why.contains("may trust") || why.contains("token"), "{why}");
}

#[test]
fn d162_a_late_release_of_a_vote_under_the_same_id_is_found() {
    found(Bug::VoteIdReused);
}

#[test]
fn d166_two_longest_leases_are_found() {
    let why = found(Bug::MaxLeaseNotCompared);
    assert!(why.contains("may trust") || why.contains("token"), "{why}");
}

#[test]
fn d167_votes_that_pass_the_arbiters_queue_are_found() {
    let why = found(Bug::ArbiterPassed);
    assert!(why.contains("past the arbiter's queue"), "{why}");
}

#[test]
fn the_largest_token_that_too_few_know_of_is_found() {
    let why = found(Bug::MaximumAlone);
    // Or a holder shows a token that its votes do not know.
    assert!(why.contains("token") || why.contains("lost a hold"), "{why}");
}
