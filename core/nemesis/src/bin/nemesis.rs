//! `nemesis`: real processes on a real store under faults drawn from a seed.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fencelock_nemesis::run::{Kind, Outcome, Plan, run};

const USAGE: &str = "usage: nemesis run [--seconds N] [--seed S] [--store redis|sqlite]";

/// How long one seed is gone on with; a longer run takes the next ones.
const ROUND: u64 = 15;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match parse(&words) {
        Ok((seconds, seed, kinds)) => rounds(seconds, seed, &kinds),
        Err(wrong) => {
            eprintln!("nemesis: {wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<(u64, u64, Vec<Kind>), String> {
    let Some(("run", options)) = words.split_first().map(|(verb, rest)| (verb.as_str(), rest))
    else {
        return Err("there is one command: run".to_owned());
    };
    let (mut seconds, mut seed, mut kinds) = (60, 1, vec![Kind::Redis, Kind::Sqlite]);
    for pair in options.chunks(2) {
        let [option, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
        let number = || value.parse::<u64>().map_err(|_| format!("{option}: {value} is no number"));
        match (option.as_str(), value.as_str()) {
            ("--seconds", _) => seconds = number()?,
            ("--seed", _) => seed = number()?,
            ("--store", "redis") => kinds = vec![Kind::Redis],
            ("--store", "sqlite") => kinds = vec![Kind::Sqlite],
            _ => return Err(format!("{option} {value} is not understood")),
        }
    }
    Ok((seconds, seed, kinds))
}

fn rounds(seconds: u64, first: u64, kinds: &[Kind]) -> ExitCode {
    let begun = Instant::now();
    let (mut seed, mut failed) = (first, false);
    let mut totals = vec![Outcome::default(); kinds.len()];
    while begun.elapsed() < Duration::from_secs(seconds) {
        for (kind, total) in kinds.iter().zip(&mut totals) {
            let left = Duration::from_secs(seconds).saturating_sub(begun.elapsed());
            let span = left.min(Duration::from_secs(ROUND)).max(Duration::from_secs(1));
            match run(Plan { seed, span, kind: *kind }) {
                Ok(outcome) => {
                    failed |= told(*kind, seed, &outcome);
                    total.add(outcome);
                }
                Err(error) => {
                    println!("FAILED --seed {seed} --store {kind}: {error}");
                    failed = true;
                }
            }
        }
        seed += 1;
    }
    kinds.iter().zip(&totals).for_each(|(kind, total)| report(*kind, total));
    let grants: usize = totals.iter().map(|it| it.found.grants).sum();
    let faults: usize = totals.iter().flat_map(|it| it.faults.values()).sum();
    let end = if failed { "BROKEN" } else { "clean" };
    println!(
        "nemesis: seeds {first} to {}, {grants} grants, {faults} faults, {:.0} s: {end}",
        seed - 1,
        begun.elapsed().as_secs_f64()
    );
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints what a run broke; gives whether it did.
fn told(kind: Kind, seed: u64, outcome: &Outcome) -> bool {
    for what in outcome.broken.iter().take(5) {
        println!("BROKEN --seed {seed} --store {kind}: {what}");
    }
    if let Some(path) = &outcome.history {
        println!("  {} broken; the history is in {}", outcome.broken.len(), path.display());
    }
    !outcome.broken.is_empty()
}

fn report(kind: Kind, outcome: &Outcome) {
    let found = &outcome.found;
    println!(
        "{kind}: {} acquisitions, {} grants; {} holds lost and told (the latest {} ms after the end \
         of its trust), {} killed, {} grants told of it; {} overlaps that the faults excuse; {} \
         writes refused by the ledger",
        found.asked,
        found.grants,
        found.lost,
        found.latest_word / 1000,
        found.killed,
        found.abandoned,
        found.excused,
        found.refused_writes
    );
    println!(
        "{kind}: {} windows of tries with {} operations are linearizable; {} show nothing, because \
         the store forgot or too much went unanswered",
        outcome.windows, outcome.operations, outcome.spoiled
    );
    for (fault, count) in &outcome.faults {
        println!("{count:>7} {fault}");
    }
}
