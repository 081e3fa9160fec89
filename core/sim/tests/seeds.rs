//! A few hundred seeds on each store, the same run twice, and planted bugs that must be found.

use fencelock_sim::planted::{Place, TABLE, hunt};
use fencelock_sim::{Runner, StoreKind, Tally, Trace};

fn run(kind: StoreKind, seeds: u64) -> Tally {
    let mut runner = Runner::default();
    let mut tally = Tally::default();
    for seed in 1..=seeds {
        tally.add(&runner.run(seed, kind, Trace::silent()));
    }
    tally
}

#[test]
fn record_keeps_its_promises() {
    let tally = run(StoreKind::Record, 400);
    assert!(tally.broken.is_empty(), "{:#?}", tally.broken);
    assert!(tally.steps > 100_000, "only {} steps", tally.steps);
}

#[test]
fn redis_keeps_its_promises() {
    let tally = run(StoreKind::Redis, 80);
    assert!(tally.broken.is_empty(), "{:#?}", tally.broken);
}

#[test]
fn zookeeper_keeps_its_promises() {
    let tally = run(StoreKind::ZooKeeper, 40);
    assert!(tally.broken.is_empty(), "{:#?}", tally.broken);
}

#[test]
fn a_seed_gives_the_same_run_twice() {
    for kind in [StoreKind::Record, StoreKind::Redis, StoreKind::ZooKeeper] {
        let (mut one, mut two) = (Runner::default(), Runner::default());
        for seed in 1..=15 {
            // The second runner has another history behind it.
            two.run(1_000 + seed, kind, Trace::silent());
            let first = one.run(seed, kind, Trace::silent());
            let second = two.run(seed, kind, Trace::kept());
            assert_eq!(first.hash, second.hash, "seed {seed} on {}", kind.name());
            assert_eq!(first.steps, second.steps, "seed {seed} on {}", kind.name());
            assert!(!second.trace.text().is_empty());
        }
    }
}

#[test]
fn a_planted_bug_is_found_in_the_code_and_in_the_scripts() {
    let code = TABLE.iter().find(|it| matches!(it.place, Place::Code(_))).unwrap();
    let found = hunt(code, 200).expect("row 1 is found");
    assert_eq!(found.promise, "only the holder releases");
    let token = TABLE.iter().find(|it| it.row == 61).unwrap();
    assert!(hunt(token, 50).is_some(), "a damaged token is found");
    // Nothing stays planted.
    assert!(run(StoreKind::Record, 20).broken.is_empty());
}
