//! `nemesis`: real processes on a real store under faults drawn from a seed.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use fencelock_nemesis::run::table::{MARKS, Table};
use fencelock_nemesis::run::{Kind, Outcome, Plan, faults, run};
use fencelock_nemesis::timeline::{self, CASES, Case, draw, table};

const USAGE: &str = "\
usage: nemesis run [--seconds N] [--seed S] [--store redis|sqlite|zookeeper|sentinel|cluster] [--each | --only FAULT]
                   [--page FILE --dated DAY]
       nemesis timeline [--page FILE --figure FILE --dated DAY]: what a holder and a waiter see of failovers
  --each   every fault by itself, in turn, and all mixed; at least once each
  --only   this fault by itself
  --page   write the table between its marks on this page, with the day of the run";

/// How long one seed is gone on with; a longer run takes the next ones.
const ROUND: u64 = 15;
/// The same where one fault is alone.
const ALONE: u64 = 8;

struct Args {
    seconds: u64,
    seed: u64,
    kinds: Vec<Kind>,
    each: bool,
    only: Option<String>,
    page: Option<String>,
    dated: Option<String>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("timeline", options)) = words.split_first().map(|it| (it.0.as_str(), it.1)) {
        return timeline(options);
    }
    match parse(&words) {
        Ok(args) => rounds(&args),
        Err(wrong) => {
            eprintln!("nemesis: {wrong}\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<Args, String> {
    let Some(("run", options)) = words.split_first().map(|(verb, rest)| (verb.as_str(), rest))
    else {
        return Err("there is one command: run".to_owned());
    };
    let kinds = Kind::ALL.to_vec();
    let mut args =
        Args { seconds: 60, seed: 1, kinds, each: false, only: None, page: None, dated: None };
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if option == "--each" {
            args.each = true;
            continue;
        }
        let value = options.next().ok_or_else(|| format!("{option} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{option}: {value} is no number"));
        match (option.as_str(), value.as_str()) {
            ("--seconds", _) => args.seconds = number()?,
            ("--seed", _) => args.seed = number()?,
            ("--store", name) if Kind::of(name).is_some() => {
                args.kinds = Kind::of(name).into_iter().collect();
            }
            ("--only", fault) => args.only = Some(fault.to_owned()),
            ("--page", page) => args.page = Some(page.to_owned()),
            ("--dated", day) => args.dated = Some(day.to_owned()),
            _ => return Err(format!("{option} {value} is not understood")),
        }
    }
    if args.page.is_some() && args.dated.is_none() {
        return Err("--page needs --dated: a run that is shown says when it was".to_owned());
    }
    if programme(&args).is_empty() {
        return Err(format!("there is no fault '{}'", args.only.unwrap_or_default()));
    }
    Ok(args)
}

/// What is gone on with in turn, until the time is over.
fn programme(args: &Args) -> Vec<(usize, Option<&'static str>)> {
    let mut programme = Vec::new();
    for (index, kind) in args.kinds.iter().enumerate() {
        let wanted = |fault: &&str| args.each || args.only.as_deref() == Some(*fault);
        programme.extend(faults(*kind).into_iter().filter(wanted).map(|it| (index, Some(it))));
        if args.only.is_none() {
            programme.push((index, None));
        }
    }
    programme
}

fn rounds(args: &Args) -> ExitCode {
    let begun = Instant::now();
    let (mut seed, mut failed) = (args.seed, false);
    let mut totals = vec![(Outcome::default(), Table::default()); args.kinds.len()];
    while begun.elapsed() < Duration::from_secs(args.seconds) {
        for (index, only) in programme(args) {
            let kind = args.kinds[index];
            let left = Duration::from_secs(args.seconds).saturating_sub(begun.elapsed());
            let span = match only {
                Some(_) => Duration::from_secs(ALONE),
                None => left.min(Duration::from_secs(ROUND)).max(Duration::from_secs(1)),
            };
            match run(Plan { only, ..Plan::new(seed, span, kind) }) {
                Ok(outcome) => {
                    failed |= told(kind, seed, only, &outcome);
                    let (total, table) = &mut totals[index];
                    table.add(&outcome, args.each && only.is_none());
                    total.add(outcome);
                }
                Err(error) => {
                    println!("FAILED --seed {seed} --store {kind}: {error}");
                    failed = true;
                }
            }
            // Each fault that is alone has a seed of its own.
            seed += u64::from(args.each);
        }
        seed += u64::from(!args.each);
    }
    let mut tables = String::new();
    for (kind, (outcome, table)) in args.kinds.iter().zip(&totals) {
        report(*kind, outcome);
        tables += &table.render(*kind, &faults(*kind));
    }
    println!("\n{tables}");
    let (grants, struck) = totals.iter().fold((0, 0), |(grants, struck), (it, _)| {
        (grants + it.found.grants, struck + it.faults.values().sum::<usize>())
    });
    let spent = begun.elapsed().as_secs();
    if let (Some(page), Some(day)) = (&args.page, &args.dated)
        && let Err(error) = write(page, day, spent, &tables)
    {
        println!("nemesis: {page}: {error}");
        failed = true;
    }
    let end = if failed { "BROKEN" } else { "clean" };
    println!(
        "nemesis: seeds {} to {}, {grants} grants, {struck} faults, {spent} s: {end}",
        args.seed,
        seed - 1
    );
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Writes the table on a page, with what it was made with.
fn write(page: &str, day: &str, spent: u64, tables: &str) -> Result<(), String> {
    let old = std::fs::read_to_string(page).map_err(|error| error.to_string())?;
    let text = format!(
        "A run of {} min on {day}: Fencelock {}, {}, SQLite {}.\n\n{tables}",
        spent.div_ceil(60),
        env!("CARGO_PKG_VERSION"),
        redis_version(),
        rusqlite::version()
    );
    let new = fencelock_history::page::put(&old, MARKS, &text)?;
    std::fs::write(page, new).map_err(|error| error.to_string())
}

/// Plays failovers, and shows them where the options say.
fn timeline(options: &[String]) -> ExitCode {
    let option = |name: &str| options.iter().skip_while(|it| *it != name).nth(1);
    let seen: std::io::Result<Vec<_>> = CASES.into_iter().map(Case::play).collect();
    let shown = seen.map_err(|error| error.to_string()).and_then(|seen| {
        let text = table(&seen);
        println!("{text}");
        if let Some(figure) = option("--figure") {
            std::fs::write(figure, draw(&seen)).map_err(|error| format!("{figure}: {error}"))?;
        }
        let (Some(page), Some(day)) = (option("--page"), option("--dated")) else { return Ok(()) };
        let text = format!("A run on {day}, {}:\n\n{text}", redis_version());
        let old = std::fs::read_to_string(page).map_err(|error| format!("{page}: {error}"))?;
        let new = fencelock_history::page::put(&old, timeline::MARKS, &text)?;
        std::fs::write(page, new).map_err(|error| format!("{page}: {error}"))
    });
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("nemesis: {error}");
            ExitCode::FAILURE
        }
    }
}

fn redis_version() -> String {
    let output = Command::new("redis-server").arg("--version").output();
    let text = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    let version = text.ok().and_then(|text| {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix("v="))?;
        Some(format!("redis-server {word}"))
    });
    version.unwrap_or_else(|| "redis-server of unknown version".to_owned())
}

/// Prints what a run broke; gives whether it did.
fn told(kind: Kind, seed: u64, only: Option<&str>, outcome: &Outcome) -> bool {
    let under = only.map_or(String::new(), |fault| format!(" --only '{fault}'"));
    for what in outcome.broken.iter().take(5) {
        println!("BROKEN --seed {seed} --store {kind}{under}: {what}");
    }
    if let Some(path) = &outcome.history {
        println!("  {} broken; the history is in {}", outcome.broken.len(), path.display());
    }
    !outcome.broken.is_empty()
}

fn report(kind: Kind, outcome: &Outcome) {
    let found = &outcome.found;
    println!(
        "{kind}: {} acquisitions, {} grants, {} conversions; {} holds lost and told (the latest {} ms after the end \
         of its trust), {} killed, {} grants told of it; {} overlaps that the faults excuse; {} \
         writes refused by the ledger",
        found.asked,
        found.grants,
        found.converted,
        found.lost,
        found.latest_word / 1000,
        found.killed,
        found.abandoned,
        found.excused,
        found.refused_writes
    );
}
