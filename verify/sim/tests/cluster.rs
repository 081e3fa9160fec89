//! Clients of a Redis Cluster, what they are promised under what happens to its servers, and what happens
//! when a rule of them is bent.

use fencelock_engine::plant::{self, Bug};
use fencelock_sim::cluster::{Outcome, Scene, run};
use fencelock_sim::redis::ModelRedis;

/// How many seeds a planted bug may take to be found.
const SEEDS: u64 = 400;

/// Runs seeds, each in its scene; what all of them came to.
fn runs(seeds: impl Iterator<Item = (Scene, u64)>) -> Outcome {
    let (mut redis, mut all) = (ModelRedis::new(), Outcome::default());
    for (scene, seed) in seeds {
        let (back, done) = run(redis, scene, seed);
        redis = back;
        let outcome = done.unwrap();
        all.grants += outcome.grants;
        all.pushed += outcome.pushed;
        all.promoted += outcome.promoted;
        all.moved += outcome.moved;
        all.again += outcome.again;
        all.unknown += outcome.unknown;
        all.stale += outcome.stale;
        all.sent_on += outcome.sent_on;
    }
    all
}

#[test]
fn promises_are_kept_whatever_happens_to_servers() {
    let all = runs((1..=45).map(|seed| (Scene::of(seed), seed)));
    assert!(all.grants > 5_000 && all.pushed > 500, "{all:?}");
    assert!(all.promoted > 10 && all.moved > 5 && all.stale > 0, "{all:?}");
    assert!(all.again > 0 && all.unknown > 0 && all.sent_on > 0, "{all:?}");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    for seed in [1, 4, 8] {
        let one = || run(ModelRedis::new(), Scene::of(seed), seed).1;
        assert_eq!(one(), one());
    }
}

/// What is said of the first seed that finds a bug, in a scene.
fn found(bug: Bug, scene: Scene) -> String {
    let mut redis = Some(ModelRedis::new());
    let found = (1..=SEEDS).find_map(|seed| {
        plant::plant(Some(bug));
        let (back, done) = run(redis.take()?, scene, seed);
        plant::plant(None);
        redis = Some(back);
        done.err()
    });
    found.unwrap_or_else(|| panic!("{bug:?} is not found in {SEEDS} seeds"))
}

#[track_caller]
fn is_found(bug: Bug, scene: Scene, by: &[&str]) {
    let why = found(bug, scene);
    assert!(by.iter().any(|check| why.contains(&format!("ms: {check}"))), "{why}");
}

#[test]
fn d126_a_hold_that_is_renewed_with_its_queue_while_its_slot_moves_is_found() {
    is_found(Bug::MovingBeatsWhole, Scene::Moves, &["watchdog"]);
}

#[test]
fn d127_renewals_that_wait_for_a_silent_server_are_found() {
    is_found(Bug::BeatsAwaitAll, Scene::Silent, &["watchdog", "order", "wake-up", "lanes"]);
}

#[test]
fn d128_connections_that_are_all_made_anew_for_one_silent_server_are_found() {
    is_found(Bug::AllLanesReset, Scene::Silent, &["connections"]);
}

#[test]
fn d129_a_bound_by_another_servers_clock_is_found() {
    is_found(Bug::OtherLanesClock, Scene::Calm, &["clocks"]);
}

#[test]
fn d136_a_forgotten_script_that_is_taken_for_the_servers_death_is_found() {
    is_found(Bug::ForgottenScriptIsDeath, Scene::Scripts, &["connections"]);
}

#[test]
fn d137_a_map_for_each_word_is_found() {
    is_found(Bug::EachMovedFetches, Scene::Killed, &["fetches"]);
}

#[test]
fn d138_a_silent_server_that_is_trusted_is_found() {
    is_found(Bug::SilentLaneTrusted, Scene::SilentReplaced, &["watchdog", "liveness"]);
}

#[test]
fn d139_waiters_that_are_subscribed_at_another_server_are_found() {
    is_found(Bug::SubscribedElsewhere, Scene::Calm, &["wake-up"]);
}
