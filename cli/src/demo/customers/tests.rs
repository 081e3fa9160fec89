use std::collections::BTreeMap;

use super::{arrivals, served_by};

#[test]
fn everybody_comes_and_every_other_one_twice_in_a_row() {
    let all = arrivals(100, 1);
    let mut clicks = BTreeMap::new();
    for person in &all {
        *clicks.entry(*person).or_insert(0) += 1;
    }
    assert_eq!(clicks.len(), 100);
    assert_eq!(clicks.values().filter(|&&n| n == 2).count(), 50);
    assert_eq!(all[0], all[1]);
}

#[test]
fn a_seed_gives_the_same_sale_again() {
    assert_eq!(arrivals(50, 3), arrivals(50, 3));
    assert_ne!(arrivals(50, 3), arrivals(50, 4));
}

#[test]
fn workers_share_the_arrivals_out() {
    let all = arrivals(40, 2);
    let mut served: Vec<u32> = (0..7).flat_map(|worker| served_by(&all, worker, 7)).collect();
    let mut wanted = all.clone();
    served.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(served, wanted);
}
