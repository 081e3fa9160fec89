//! `fencelock-sim`: runs the simulator.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fencelock_sim::cluster::{self, Scene};
use fencelock_sim::planted::Row;
use fencelock_sim::redis::ModelRedis;
use fencelock_sim::shrink::{TRIES, shrink};
use fencelock_sim::{Bias, Case, Chronicle, Edits, Runner, StoreKind, Tally, Trace, table};

const USAGE: &str = "\
usage: fencelock-sim quick
       fencelock-sim deep --seconds N [--from SEED] [--store record|redis|zookeeper]
                     [--seeds N]   (so many, whatever that takes, or to the first that breaks a promise)
                     [--bias strays|joins|late-replies|suspensions|ties|echoes|rests|shortened|
                            crowd|far|readers|permits]   (only seeds bent so)
       fencelock-sim exhaust [small|large|planted] [--scope NAME] [--threads N]
       fencelock-sim planted [--row N] [--known FILE] [--note FILE]   (seeds to try first; those that found)
       fencelock-sim table [--check] PAGE
       fencelock-sim scene STORE SCENE SEED
       fencelock-sim cluster SECONDS [FROM]   (a cluster of Redis servers: seeds from there on)
       fencelock-sim cluster SCENE SEED
       fencelock-sim --seed N [--store record|redis|zookeeper] [--edit CHANGES] [--trace | --shrink]
                     [--history FILE] [--row N]   (with the planted bug of that row)";

/// Seeds of `quick`, on each store.
const QUICK: [(StoreKind, u64); 3] =
    [(StoreKind::Record, 4_000), (StoreKind::Redis, 400), (StoreKind::ZooKeeper, 300)];
/// So many of these for one of each kind of name that several hold together.
const SHARED: u64 = 4;
/// How often `quick` must meet each hard case at the least.
const FLOOR: u64 = 10;

#[derive(Default)]
struct Args {
    command: Option<String>,
    seed: Option<u64>,
    row: Option<Row>,
    known: Option<String>,
    note: Option<String>,
    from: u64,
    seconds: u64,
    seeds: Option<u64>,
    store: Option<StoreKind>,
    bias: Option<Bias>,
    trace: bool,
    shrink: bool,
    history: Option<String>,
    edits: Edits,
}

fn main() -> ExitCode {
    let words = || std::env::args().skip(2);
    match std::env::args().nth(1).as_deref() {
        Some("exhaust") => return fencelock_sim::exhaust::command(words()),
        Some("table") => return guarantees(&words().collect::<Vec<_>>()),
        Some("cluster") => return run_cluster(&words().collect::<Vec<_>>()),
        Some("scene") => return scene(&words().collect::<Vec<_>>()),
        _ => {}
    }
    let args = match parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("fencelock-sim: {wrong}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match (args.command.as_deref(), args.seed) {
        (None, Some(seed)) => replay(seed, &args),
        (Some("quick"), None) => quick(),
        (Some("deep"), None) => deep(&args),
        (Some("planted"), None) => planted(&args),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args { from: 1, seconds: 60, ..Args::default() };
    while let Some(word) = words.next() {
        let mut number = || {
            let text = words.next().ok_or(format!("{word} needs a number"))?;
            text.parse::<u64>().map_err(|_| format!("{word}: {text} is not a number"))
        };
        match word.as_str() {
            "--seed" => args.seed = Some(number()?),
            "--row" => {
                let row = words.next().unwrap_or_default();
                args.row = Some(row.parse().map_err(|_| format!("--row {row}: there is none"))?);
            }
            "--known" => args.known = Some(words.next().ok_or("--known needs a file")?),
            "--note" => args.note = Some(words.next().ok_or("--note needs a file")?),
            "--from" => args.from = number()?,
            "--seconds" => args.seconds = number()?,
            "--seeds" => args.seeds = Some(number()?),
            "--trace" => args.trace = true,
            "--history" => args.history = Some(words.next().ok_or("--history needs a file")?),
            "--shrink" => args.shrink = true,
            "--edit" => args.edits = words.next().unwrap_or_default().parse()?,
            "--bias" => {
                let name = words.next().unwrap_or_default();
                let bias = Bias::named(&name).ok_or(format!("--bias {name}: there is none"))?;
                args.bias = Some(bias);
            }
            "--store" => {
                args.store = Some(match words.next().as_deref() {
                    Some("record") => StoreKind::Record,
                    Some("redis") => StoreKind::Redis,
                    Some("zookeeper") => StoreKind::ZooKeeper,
                    other => return Err(format!("--store {other:?}: record, redis or zookeeper")),
                });
            }
            _ if args.command.is_none() && !word.starts_with('-') => args.command = Some(word),
            _ => return Err(format!("{word} is not understood")),
        }
    }
    Ok(args)
}

fn replay(seed: u64, args: &Args) -> ExitCode {
    let kind = args.store.unwrap_or(StoreKind::Record);
    let bias = Bias::of_seed(seed);
    if bias.shares() && args.history.is_some() {
        eprintln!(
            "fencelock-sim: in this run several hold a name together, which no history of it says"
        );
        return ExitCode::from(2);
    }
    let trace = if args.trace { Trace::printed() } else { Trace::silent() };
    let case = Case { seed, store: kind, edits: args.edits.clone() };
    if let Some(row) = args.row {
        use fencelock_sim::planted::{Place, TABLE};
        let bug = TABLE.iter().find_map(|it| match it.place {
            Place::Code(bug)
            | Place::ZooKeeper(bug)
            | Place::Shared(_, bug)
            | Place::ZooKeeperShared(_, bug)
                if it.row == row =>
            {
                Some(bug)
            }
            _ => None,
        });
        fencelock_engine::plant::plant(bug);
    }
    if args.shrink {
        shorter(&case);
        return ExitCode::SUCCESS;
    }
    let chronicle = match args.history {
        Some(_) => Chronicle::kept(),
        None => Chronicle::default(),
    };
    let run = Runner::default().record(&case, trace, chronicle);
    if let Some(path) = &args.history {
        let written = std::fs::File::create(path)
            .and_then(|file| fencelock_history::write(&run.history.into_records(), file));
        if let Err(error) = written {
            eprintln!("fencelock-sim: {path}: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!(
        "seed {seed}, store {}, profile {:?}: {} steps, hash {:016x}",
        kind.name(),
        run.plan.profile,
        run.steps,
        run.hash
    );
    match run.violation {
        None => {
            println!("clean");
            ExitCode::SUCCESS
        }
        Some(it) => {
            println!("BROKEN at {:.6}: {}: {}", it.at as f64 / 1e9, it.promise, it.what);
            ExitCode::FAILURE
        }
    }
}

/// Prints the smallest run that was found to break what this one breaks.
fn shorter(case: &Case) {
    let mut runner = Runner::default();
    let Some(found) = shrink(&mut runner, case, TRIES) else {
        println!("{case} breaks nothing");
        return;
    };
    let run = runner.play(&found.case, Trace::kept());
    print!("{}", run.trace.text());
    if let Some(it) = run.violation {
        println!("BROKEN at {:.6}: {}: {}", it.at as f64 / 1e9, it.promise, it.what);
    }
    println!(
        "smallest of {} runs: {} steps; replay it with: fencelock-sim {} --trace",
        found.tried, found.steps, found.case
    );
    println!(
        "or with: make verify SEED={} STORE={} EDIT='{}'",
        found.case.seed,
        found.case.store.name(),
        found.case.edits
    );
}

/// Runs of each fault on the model of each store, for the table.
const RUNS: u64 = 60;
/// The same of a cluster, where a run is longer.
const CLUSTER_RUNS: u64 = 40;

/// Runs of the cluster of Redis servers: for so long, or one again.
fn run_cluster(words: &[String]) -> ExitCode {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    let named = words.first().and_then(|name| Scene::named(name));
    let (mut redis, since) = (ModelRedis::new(), Instant::now());
    if let (Some(scene), Some(seed)) = (named, number(1)) {
        let (_, done) = cluster::run(redis, scene, seed);
        println!("{done:#?}");
        return if done.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if words == ["table"] {
        println!("{}", cluster::table(CLUSTER_RUNS).unwrap_or_else(|why| why));
        return ExitCode::SUCCESS;
    }
    let Some(seconds) = number(0) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let (from, mut broken) = (number(1).unwrap_or(1), 0);
    let mut seed = from;
    while since.elapsed() < Duration::from_secs(seconds) {
        let (back, done) = cluster::run(redis, Scene::of(seed), seed);
        redis = back;
        if let Err(why) = done {
            broken += 1;
            println!("{why}");
        }
        seed += 1;
    }
    println!("cluster: seeds {from} to {}, {broken} broken", seed - 1);
    if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Writes the table on the page, or checks that the page's is what the runs give.
fn guarantees(words: &[String]) -> ExitCode {
    let (check, page) = match words {
        [page] if page != "--check" => (false, page),
        [check, page] if check == "--check" => (true, page),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let done = || -> Result<String, String> {
        let mut tables = table::render(&table::measure(RUNS)?)?;
        tables.push_str(&cluster::table(CLUSTER_RUNS)?);
        let old = std::fs::read_to_string(page).map_err(|error| format!("{page}: {error}"))?;
        let new = table::put(&old, &tables)?;
        if check {
            let (told, seen) = (table::shape(&old), table::shape(&new));
            if told == seen {
                return Ok(format!("{page} says what {} rows of runs give", seen.len()));
            }
            let differs = seen.iter().find(|row| !told.contains(row)).or(told.last());
            return Err(format!(
                "{page} does not say what the runs give; write it anew with `scripts/sim table`. \
                 The first row: {differs:?}"
            ));
        }
        std::fs::write(page, new).map_err(|error| format!("{page}: {error}"))?;
        Ok(format!("{page} is written"))
    };
    match done() {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            println!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Replays one run of the table.
fn scene(words: &[String]) -> ExitCode {
    let done = match words {
        [shop, scene, seed] => match seed.parse() {
            Ok(seed) => table::replay(shop, scene, seed),
            Err(_) => Err(format!("{seed} is not a number")),
        },
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("fencelock-sim: {text}");
            ExitCode::from(2)
        }
    }
}

fn quick() -> ExitCode {
    let mut whole = Tally::default();
    for (kind, seeds) in QUICK {
        let mut runner = Runner::default();
        let mut tally = Tally::default();
        let begun = Instant::now();
        for seed in 1..=seeds {
            tally.add(&runner.run(seed, kind, Trace::silent()));
        }
        for bias in Bias::APART {
            for seed in (0..seeds / SHARED).filter(|_| bias.stores().contains(&kind)) {
                tally.add(&runner.run(bias.next(1 + seed), kind, Trace::silent()));
            }
        }
        report(kind, &tally, begun.elapsed());
        whole.cover.merge(&tally.cover);
        whole.broken.extend(tally.broken);
    }
    for (name, count) in whole.cover.rows() {
        println!("{count:>9} {name}");
    }
    let missed = whole.cover.below(FLOOR);
    if !missed.is_empty() {
        println!("met less often than {FLOOR} times: {}", missed.join(", "));
    }
    verdict(&whole, missed.is_empty())
}

fn deep(args: &Args) -> ExitCode {
    let stop = Instant::now() + Duration::from_secs(args.seconds);
    let kinds = match args.store {
        Some(kind) => vec![kind],
        None => vec![StoreKind::Record, StoreKind::Redis, StoreKind::ZooKeeper],
    };
    let from = args.bias.map_or(args.from, |bias| bias.next(args.from));
    let mut runner = Runner::default();
    let mut tallies: Vec<(StoreKind, Tally, Duration)> =
        kinds.iter().map(|kind| (*kind, Tally::default(), Duration::ZERO)).collect();
    let mut seed = from;
    let goes_on = |seed, tallies: &[(StoreKind, Tally, Duration)]| match args.seeds {
        Some(seeds) => seed < from + seeds && tallies.iter().all(|it| it.1.broken.is_empty()),
        None => Instant::now() < stop,
    };
    while goes_on(seed, &tallies) {
        seed = args.bias.map_or(seed, |bias| bias.next(seed));
        for (kind, tally, spent) in &mut tallies {
            let begun = Instant::now();
            tally.add(&runner.run(seed, *kind, Trace::silent()));
            // Now and then one of those whose seeds are their own.
            for bias in Bias::APART {
                if args.bias.is_none() && seed.is_multiple_of(4) && bias.stores().contains(kind) {
                    tally.add(&runner.run(bias.next(seed / 4), *kind, Trace::silent()));
                }
            }
            *spent += begun.elapsed();
        }
        seed += 1;
    }
    let mut whole = Tally::default();
    for (kind, tally, spent) in tallies {
        report(kind, &tally, spent);
        whole.cover.merge(&tally.cover);
        whole.broken.extend(tally.broken);
    }
    for (name, count) in whole.cover.rows() {
        println!("{count:>9} {name}");
    }
    verdict(&whole, true)
}

fn planted(args: &Args) -> ExitCode {
    use fencelock_sim::planted::{
        Found, Known, Place, SCRIPT_SEEDS, SEEDS, TABLE, ZOOKEEPER_SEEDS, hunt,
    };
    let row = args.row;
    // A file that is not there knows nothing.
    let known = args.known.as_ref().and_then(|path| std::fs::read_to_string(path).ok());
    let known = known.map_or(Known::default(), |text| Known::read(&text));
    let mut noted = Known::default();
    let table: Vec<_> = TABLE.iter().filter(|it| row.is_none_or(|row| it.row == row)).collect();
    let mut found = 0;
    println!("{:>4}  {:<62} {:>6} {:>6}  found by", "row", "planted bug", "seeds", "seed");
    for planted in &table {
        let seeds = match planted.place {
            Place::Code(_) | Place::Shared(..) => SEEDS,
            Place::Scripts(_) => SCRIPT_SEEDS,
            Place::ZooKeeper(_) | Place::ZooKeeperShared(..) => ZOOKEEPER_SEEDS,
        };
        let hit = hunt(planted, seeds, known.of(planted, seeds));
        match hit {
            Some(hit) => {
                found += 1;
                let (row, what) = (planted.row, planted.what);
                let Found { seed, tried, promise } = hit;
                noted.note(planted, seed);
                println!("{row:>4}  {what:<62} {tried:>6} {seed:>6}  {promise}");
            }
            None => {
                println!(
                    "{:>4}  {:<62} {:>6} {:>6}  NOT FOUND",
                    planted.row, planted.what, "-", "-"
                );
            }
        }
    }
    println!("planted: {found} of {} found", table.len());
    if let Some(path) = &args.note
        && let Err(error) = std::fs::write(path, noted.text())
    {
        eprintln!("fencelock-sim: {path}: {error}");
        return ExitCode::FAILURE;
    }
    if found == table.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(kind: StoreKind, tally: &Tally, spent: Duration) {
    let seconds = spent.as_secs_f64();
    println!(
        "{}: {} seeds, {} engine steps in {seconds:.1} s: {:.0} seeds/s, {:.0} steps/s, {} broken",
        kind.name(),
        tally.runs,
        tally.steps,
        tally.runs as f64 / seconds,
        tally.steps as f64 / seconds,
        tally.broken.len()
    );
}

fn verdict(tally: &Tally, met: bool) -> ExitCode {
    let mut shown: std::collections::BTreeMap<&str, usize> = Default::default();
    for (seed, kind, promise, what) in &tally.broken {
        let shown = shown.entry(promise).or_default();
        *shown += 1;
        if *shown > 5 {
            continue;
        }
        let what: String = what.chars().take(300).collect();
        println!("BROKEN --seed {seed} --store {}: {promise}: {what}", kind.name());
        // The first of each promise is made as small as it will be.
        if *shown == 1 {
            shorter(&Case::of(*seed, *kind));
        }
    }
    if tally.broken.is_empty() && met {
        println!("clean");
        return ExitCode::SUCCESS;
    }
    let mut kinds: std::collections::BTreeMap<&str, usize> = Default::default();
    for (_, _, promise, _) in &tally.broken {
        *kinds.entry(promise).or_default() += 1;
    }
    for (promise, count) in kinds {
        println!("{count:>6} seeds break: {promise}");
    }
    ExitCode::FAILURE
}
