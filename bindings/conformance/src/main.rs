//! `conformance`: every language on the same stores, put to the same tests.

use std::process::ExitCode;
use std::time::Duration;

use fencelock_conformance::mix;
use fencelock_conformance::scene::{self, SCENES};
use fencelock_nemesis::Role;
use fencelock_nemesis::run::Kind;

const USAGE: &str = "\
usage: conformance [OPTION…]
  --driver NAME=PROGRAM [ARGUMENT…]  a language's driver, its words apart by blanks; again for each.
                                     Rust's own always takes part
  --missing NAME=WHY                 a language that cannot take part, to be shown as such
  --store redis|sqlite|zookeeper|sentinel|cluster
                                     this store; again for more (all)
  --scene NAME                       this scene; again for more (all)
  --no-scenes                        only the mix
  --mix SECONDS                      all languages on one hot lock under faults, for so long (0)
  --seed N                           what the mix draws its faults from (1)";

struct Args {
    cast: Vec<Role>,
    missing: Vec<(String, String)>,
    kinds: Vec<Kind>,
    scenes: bool,
    names: Vec<String>,
    mix: u64,
    seed: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let args = match parse(&words) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("conformance: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut sound = true;
    for kind in &args.kinds {
        let done = (!args.scenes || scenes(*kind, &args)) & (args.mix == 0 || mixed(*kind, &args));
        sound &= done;
    }
    if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn parse(words: &[String]) -> Result<Args, String> {
    let mut args = Args {
        cast: vec![Role { name: "rust".to_owned(), ..Role::own() }],
        missing: Vec::new(),
        kinds: Vec::new(),
        scenes: true,
        names: Vec::new(),
        mix: 0,
        seed: 1,
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if word == "--no-scenes" {
            args.scenes = false;
            continue;
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is no number"));
        let pair = || value.split_once('=').ok_or_else(|| format!("{word}: NAME=… is wanted"));
        match (word.as_str(), value.as_str()) {
            ("--driver", _) => {
                let (name, program) = pair()?;
                args.cast.push(Role::driver(name, program.split(' ')));
            }
            ("--missing", _) => {
                let (name, why) = pair()?;
                args.missing.push((name.to_owned(), why.to_owned()));
            }
            ("--store", name) if Kind::of(name).is_some() => args.kinds.extend(Kind::of(name)),
            ("--scene", name) if SCENES.iter().any(|it| it.name == name) => {
                args.names.push(name.to_owned());
            }
            ("--mix", _) => args.mix = number()?,
            ("--seed", _) => args.seed = number()?,
            _ => return Err(format!("{word} {value} is not understood")),
        }
    }
    if args.kinds.is_empty() {
        args.kinds = Kind::ALL.to_vec();
    }
    Ok(args)
}

/// Plays the scenes; gives whether all promises were kept.
fn scenes(kind: Kind, args: &Args) -> bool {
    let mut matrix = match scene::play(kind, &args.cast, &args.names) {
        Ok(matrix) => matrix,
        Err(error) => {
            println!("FAILED {kind}: {error}");
            return false;
        }
    };
    for (language, why) in &args.missing {
        matrix.missing(language, why);
    }
    println!("{}", matrix.render(kind.title(), &scene::columns()));
    let broken = matrix.broken();
    for what in &broken {
        println!("BROKEN {kind}: {what}");
    }
    let (kept, bad, empty) = matrix.counts();
    println!("conformance on {kind}: {kept} kept, {bad} broken, {empty} not tested");
    broken.is_empty()
}

/// Does the mix; gives whether all promises were kept.
fn mixed(kind: Kind, args: &Args) -> bool {
    let span = Duration::from_secs(args.mix);
    let outcome = match mix::mix(kind, args.seed, span, &args.cast) {
        Ok(outcome) => outcome,
        Err(error) => {
            println!("FAILED --seed {} on {kind}: {error}", args.seed);
            return false;
        }
    };
    println!("### {}, all languages on one lock\n", kind.title());
    println!("{}", mix::render(&outcome.records, &args.cast));
    for what in outcome.broken.iter().take(5) {
        println!("BROKEN --seed {} on {kind}: {what}", args.seed);
    }
    if let Some(path) = &outcome.history {
        println!("  {} broken; the history is in {}", outcome.broken.len(), path.display());
    }
    let struck: usize = outcome.faults.values().sum();
    let end = if outcome.broken.is_empty() { "clean" } else { "BROKEN" };
    println!(
        "conformance on {kind}, mixed: seed {}, {} grants, {struck} faults of {} kinds, {} s: {end}",
        args.seed,
        outcome.found.grants,
        outcome.faults.len(),
        args.mix
    );
    outcome.broken.is_empty()
}
