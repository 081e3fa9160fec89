use std::time::Duration;

use super::Stats;
use crate::demo::wire::{Abandoned, Deed, Visit};

#[test]
fn quantiles_are_nearest_ranks() {
    let visits: Vec<Visit> = (1..=200)
        .map(|i| Visit {
            worker: 0,
            token: None,
            abandoned: Abandoned::No,
            asked: 0,
            got: i * 1_000,
            left: i * 10_000,
            deed: Deed::Sold,
        })
        .collect();
    let stats = Stats::of(visits.iter()).unwrap();
    assert_eq!(stats.p50, Duration::from_millis(100));
    assert_eq!(stats.p99, Duration::from_millis(198));
    assert!((stats.rate - 100.0).abs() < 1e-9);
    assert_eq!(Stats::of([].iter()), None);
}
