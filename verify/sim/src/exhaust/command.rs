//! `fencelock-sim exhaust`: explores the scopes and prints a table.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use fencelock_engine::plant::Bug;

use crate::exhaust::{Explored, Scope, Wrong, explore};

const USAGE: &str = "\
usage: fencelock-sim exhaust [small|large|planted] [--scope NAME] [--threads N] [--within SECONDS]";

/// Runs the subcommand with the words after its name.
pub fn command(words: impl Iterator<Item = String>) -> ExitCode {
    let (mut which, mut only, mut threads) = ("small".to_owned(), None, 1);
    let (begun, mut within) = (Instant::now(), u64::MAX);
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "small" | "large" | "planted" => which = word,
            "--scope" => only = words.next(),
            "--threads" => {
                threads = words.next().and_then(|text| text.parse().ok()).unwrap_or(1);
            }
            "--within" => {
                within = words.next().and_then(|text| text.parse().ok()).unwrap_or(0);
            }
            _ => {
                eprintln!("fencelock-sim: {word} is not understood\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    if which == "planted" {
        return planted(threads);
    }
    let scopes = if which == "large" { Scope::large() } else { Scope::small() };
    let scopes: Vec<Scope> = scopes
        .into_iter()
        .filter(|scope| only.as_deref().is_none_or(|name| name == scope.name))
        .collect();
    if scopes.is_empty() {
        eprintln!("fencelock-sim: there is no such scope\n{USAGE}");
        return ExitCode::from(2);
    }
    let mut whole: BTreeMap<&str, u64> = BTreeMap::new();
    let mut all_well = true;
    println!("{:<26} {:>11} {:>12} {:>6} {:>9}", "scope", "states", "steps", "depth", "seconds");
    let mut done = 0;
    for scope in &scopes {
        // A scope that was begun is explored to its end, or it would show nothing.
        if begun.elapsed().as_secs() >= within {
            println!("{:<26} left out: {within} s are over", scope.name);
            continue;
        }
        done += 1;
        let explored = explore(scope, None, threads);
        row(&explored);
        all_well &= explored.broken.is_none();
        for (name, count) in &explored.cover {
            *whole.entry(name).or_default() += count;
        }
        show(&explored);
    }
    for (name, count) in &whole {
        println!("{count:>12} {name}");
    }
    let all = scopes.len();
    println!("exhausted: {done} of {all} scopes, {}", if all_well { "clean" } else { "BROKEN" });
    if all_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Bugs planted in the engine and in the store's rules that worlds this small can meet.
const PLANTED: &[Bug] = &[
    Bug::ReleaseWithoutOwner,
    Bug::ImmortalAfterCancel,
    Bug::ValidityFromReply,
    Bug::LossNotTold,
    Bug::CancelLeavesWaiter,
    Bug::DeadWaiterBlocks,
    Bug::NotAfterIgnored,
    Bug::EarlyPushTrusted,
    Bug::ReentryAfterEnd,
];

/// Each wrong store and each of these bugs must be found out by one of the small scopes.
fn planted(threads: usize) -> ExitCode {
    let bugs = PLANTED.iter().map(|bug| Wrong::Planted(*bug));
    let all: Vec<Wrong> = Wrong::STORES.into_iter().chain(bugs).collect();
    let mut found = 0;
    for wrong in &all {
        let broken = Scope::small().into_iter().find_map(|scope| {
            let explored = explore(&scope, Some(*wrong), threads);
            explored.broken.map(|(what, path)| (scope.name, what, path))
        });
        match broken {
            Some((scope, what, path)) => {
                found += 1;
                println!("{wrong:?}: {what}; {} steps in scope '{scope}'", path.len());
            }
            None => println!("{wrong:?}: NOT FOUND"),
        }
    }
    println!("planted: {found} of {} found", all.len());
    if found == all.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn row(explored: &Explored) {
    println!(
        "{:<26} {:>11} {:>12} {:>6} {:>9.1}",
        explored.scope,
        explored.states,
        explored.steps,
        explored.depth,
        explored.spent.as_secs_f64()
    );
}

fn show(explored: &Explored) {
    let Some((what, path)) = &explored.broken else { return };
    println!("BROKEN: {what}, after");
    for line in path {
        println!("  {line}");
    }
}
