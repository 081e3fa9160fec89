//! A driver that is wrong is caught.
#![cfg(target_os = "linux")]

use fencelock_conformance::scene;
use fencelock_nemesis::Role;
use fencelock_nemesis::run::Kind;

/// What is found when the driver plays these scenes.
fn found(mode: &str, scenes: &[&str]) -> Vec<String> {
    let role = Role::driver(mode, [env!("CARGO_BIN_EXE_broken-driver"), mode]);
    let scenes: Vec<String> = scenes.iter().map(|it| (*it).to_owned()).collect();
    scene::play(Kind::Sqlite, &[role], &scenes).unwrap().broken()
}

#[test]
fn a_driver_that_ignores_a_loss_is_caught() {
    let found = found("deaf", &["late-release"]);
    let caught = |what: &str| found.iter().any(|it| it.contains(what));
    assert!(caught("it trusts a hold that another has"), "{found:#?}");
    // The history shows it without the scene.
    assert!(caught("exclusion: deaf-0 trusts its hold"), "{found:#?}");
}

#[test]
fn a_driver_that_ends_another_s_hold_is_caught() {
    let found = found("thief", &["exclusion"]);
    let caught = |what: &str| found.iter().any(|it| it.contains(what));
    assert!(caught("taken away: thief-0 trusted its hold"), "{found:#?}");
}

#[test]
fn a_driver_that_reads_instead_of_writing_is_caught() {
    let found = found("reader", &["readers"]);
    let caught = |what: &str| found.iter().any(|it| it.contains(what));
    assert!(caught("reader, readers: readers: instead of 'failed' it said"), "{found:#?}");
    // The history shows it without the scene.
    assert!(caught("exclusion: reader-0 trusts its hold"), "{found:#?}");
}

#[test]
fn rust_keeps_the_promises_that_those_break() {
    let role = Role { name: "rust".to_owned(), ..Role::own() };
    let scenes = ["late-release", "exclusion", "readers"].map(str::to_owned);
    let matrix = scene::play(Kind::Sqlite, &[role], &scenes).unwrap();
    assert_eq!(matrix.broken(), Vec::<String>::new());
    assert_eq!(matrix.counts(), (3, 0, 0));
}
