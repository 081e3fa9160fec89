//! The Lua scripts against the reference rules: random sequences of operations and faults must
//! give the same replies, the same pushes and the same stored state.
//!
//! The modelled server is compared with its own clock. A real server's clock cannot be set, so
//! there the scripts' one call of `TIME` is replaced in the text by a key that the test writes;
//! everything else of the scripts runs as shipped, and no time is masked.
//!
//! `DIFFERENTIAL_SEEDS=n` and `DIFFERENTIAL_FIRST=n` choose how many seeds, and from which.

mod clients;
mod compare;
mod cost;
mod crowd;
mod expiry;
mod model;
mod plan;
mod real;
mod resp;
mod strange;

use compare::{Counts, Server};

const STEPS: usize = 400;

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn compare_all(server: &mut dyn Server, seeds: u64) -> Counts {
    let first = number("DIFFERENTIAL_FIRST", 1);
    let mut counts = Counts::default();
    for seed in first..first + number("DIFFERENTIAL_SEEDS", seeds) {
        compare::run(server, seed, STEPS, &mut counts);
    }
    println!("compared without difference: {counts:?}");
    counts
}

#[test]
fn scripts_agree_with_the_rules_on_the_modelled_server() {
    let mut server = model::Model::default();
    compare_all(&mut server, 150).assert_met(5);
}

#[test]
fn scripts_agree_with_the_rules_on_a_real_server() {
    let Some(mut server) = real::Real::start() else {
        println!("skipped: no redis-server here; set REDIS_SERVER to its path");
        return;
    };
    compare_all(&mut server, 30).assert_met(1);
}

#[test]
fn scripts_agree_with_the_rules_on_a_crowd_on_the_modelled_server() {
    let mut server = model::Model::default();
    // Around what a contact passes over, and what an inspection shows.
    for silent in [1, 255, 256, 257, 511, 512, 513] {
        crowd::compare(&mut server, silent, true);
        crowd::compare(&mut server, silent, false);
    }
    for silent in [512, 513, 1_100] {
        crowd::compare_left(&mut server, silent);
    }
}

#[test]
fn a_key_that_holds_something_else_is_left_alone_on_the_modelled_server() {
    strange::compare(&mut model::Model::default());
}

#[test]
fn frequent_cases_stay_cheap_on_the_modelled_server() {
    cost::compare();
}
