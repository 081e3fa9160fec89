//! A small dose of mixed faults on each store.
#![cfg(target_os = "linux")]

use std::time::Duration;

use fencelock_nemesis::run::{Kind, Outcome, Plan, run};
use fencelock_testkit::skip_servers;

fn dose(kind: Kind) -> Outcome {
    let outcome = run(Plan::new(1, Duration::from_secs(20), kind)).unwrap();
    assert!(
        outcome.broken.is_empty(),
        "{:#?}\nthe history is in {:?}",
        outcome.broken,
        outcome.history
    );
    // A run that met nothing shows nothing.
    let found = &outcome.found;
    assert!(found.grants > 100, "{found:?}");
    assert!(found.lost > 0 && found.killed + found.abandoned > 0, "{found:?}");
    // Each acquisition on ZooKeeper takes longer.
    let many = if kind == Kind::ZooKeeper { 10 } else { 50 };
    assert!(found.together > many, "{found:?}");
    assert!(found.converted > if kind == Kind::ZooKeeper { 0 } else { 5 }, "{found:?}");
    assert!(outcome.windows > 10, "{outcome:?}");
    assert!(outcome.faults.len() > 2, "{:?}", outcome.faults);
    outcome
}

#[test]
fn mixed_faults_on_sqlite() {
    dose(Kind::Sqlite);
}

mod redis {
    #[test]
    fn mixed_faults() {
        if !super::skip_servers() {
            super::dose(super::Kind::Redis);
        }
    }

    #[test]
    fn mixed_faults_behind_sentinels() {
        several(super::Kind::Sentinel);
    }

    #[test]
    fn mixed_faults_in_a_cluster() {
        several(super::Kind::Cluster);
    }

    fn several(kind: super::Kind) {
        if super::skip_servers() {
            return;
        }
        let outcome = super::dose(kind);
        let by_servers = |fault: &&str| fault.contains("master") || fault.contains("failover");
        assert!(outcome.faults.keys().any(by_servers), "{:?}", outcome.faults);
    }
}

mod zookeeper {
    #[test]
    fn mixed_faults() {
        if !super::skip_servers() {
            super::dose(super::Kind::ZooKeeper);
        }
    }
}
