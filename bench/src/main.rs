//! Measures Fencelock beside its raw floors, on all processors and pinned to one, and prints a
//! table of both.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fencelock_bench::case::Effort;
use fencelock_bench::compare::measures::Dose;
use fencelock_bench::compare::peers::peers;
use fencelock_bench::compare::report::{self, Wanted, compare};
use fencelock_bench::compare::server::Server;
use fencelock_bench::driver::drive;
use fencelock_bench::machine::{Machine, load};
use fencelock_bench::peer::{Kind, serve};
use fencelock_bench::report::{
    DeploymentsReport, EnsembleReport, Part, QueueReport, Report, figures, put,
};
use fencelock_bench::{
    Plan, Result, confirmed, cost, deployments, handoff, local, pair, queue, rivals, waiters,
    watchdog, zookeeper,
};
use fencelock_testkit::{RedisCluster, RedisQuorum, RedisSentinels, RedisServer, ZooKeeper};
use serde::Serialize;
use serde::de::DeserializeOwned;

const USAGE: &str =
    "usage: fencelock-bench [zookeeper | zookeeper-shared | queue | deployments | compare] [--quick] [--rounds N] [--only TEXT] [--out FILE]
comparing, and deployments: --driver LANGUAGE=COMMAND… [--missing WHAT]… [--page FILE]";

/// What was asked for on the command line.
#[derive(Default)]
struct Args {
    quick: bool,
    /// How many rounds, instead of what the effort has.
    rounds: Option<usize>,
    only: String,
    out: Option<PathBuf>,
    /// Print one part as JSON: the rest of the program has pinned this process.
    part: bool,
    /// What is measured.
    what: What,
    /// How the drivers of the comparison are started.
    drivers: Vec<String>,
    /// Who takes no part in it, and why.
    missing: Vec<String>,
    /// The page that it writes its tables into.
    page: Option<PathBuf>,
}

/// What is measured.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum What {
    /// Ours beside raw floors.
    #[default]
    Floors,
    /// ZooKeeper, beside what others make of it.
    ZooKeeper,
    /// Readers and permits on it, beside Curator's.
    ZooKeeperShared,
    /// A lock that many clients wait for.
    Queue,
    /// Redis behind Sentinels and in a cluster, beside one server.
    Deployments,
    /// Every language beside every lock that its users could pick instead.
    Comparison,
}

impl Args {
    fn read(words: &[String]) -> Result<Args> {
        let mut args = Args::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--quick" => args.quick = true,
                "--rounds" => {
                    let rounds = words.next().and_then(|text| text.parse().ok());
                    args.rounds = Some(rounds.filter(|rounds| *rounds > 0).ok_or(USAGE)?);
                }
                "--part" => args.part = true,
                "zookeeper" => args.what = What::ZooKeeper,
                "zookeeper-shared" => args.what = What::ZooKeeperShared,
                "queue" => args.what = What::Queue,
                "deployments" => args.what = What::Deployments,
                "compare" => args.what = What::Comparison,
                "--driver" => args.drivers.push(words.next().ok_or(USAGE)?.clone()),
                "--missing" => args.missing.push(words.next().ok_or(USAGE)?.clone()),
                "--page" => args.page = Some(words.next().ok_or(USAGE)?.into()),
                "--only" => args.only = words.next().ok_or(USAGE)?.clone(),
                "--out" => args.out = Some(words.next().ok_or(USAGE)?.into()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(args)
    }

    fn effort(&self) -> Effort {
        let (rounds, slice) = if self.quick { (1, 60) } else { (11, 200) };
        let rounds = self.rounds.unwrap_or(rounds);
        Effort { rounds, slice: Duration::from_millis(slice) }
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let ended = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["peer", kind, url] => match Kind::parse(kind) {
            Some(kind) => serve(kind, url),
            None => Err(USAGE.into()),
        },
        ["driver", library, url] => drive(library, url),
        _ => Args::read(&words).and_then(|args| match args.what {
            What::Floors => run(&args),
            What::ZooKeeper => zookeeper(&args, |it, servers| Ok(zookeeper::plans(it, servers))),
            What::ZooKeeperShared => zookeeper(&args, zookeeper::shared::plans),
            What::Queue => queued(&args),
            What::Deployments => deployed(&args),
            What::Comparison => compared(&args),
        }),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fencelock-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if args.part {
        println!("{}", serde_json::to_string(&part(args)?)?);
        return Ok(());
    }
    eprintln!("on all processors:");
    let unpinned = part(args)?;
    eprintln!("pinned to one processor:");
    let pinned = pinned(args)?;
    let machine = Machine::here([("redis", Server::start()?.version()?)]);
    let report = Report { machine, rounds: args.effort().rounds, unpinned, pinned };
    let parts = [
        ("On all processors", &report.unpinned),
        ("Server and clients pinned to one processor", &report.pinned),
    ];
    let figures = figures(&report.machine, report.rounds, &parts);
    say(args, &figures, &report)
}

/// On one server and on three, beside the bare client, Curator and kazoo: what `plans` says.
fn zookeeper(args: &Args, plans: impl Fn(&Path, &ZooKeeper) -> Result<Vec<Plan>>) -> Result<()> {
    let (effort, program) = (args.effort(), std::env::current_exe()?);
    let mut parts = Vec::new();
    for (title, servers) in [("One server", 1), ("Three servers", 3)] {
        eprintln!("{title}:");
        let servers = ZooKeeper::builder().servers(servers).lasting().start()?;
        let load_before = load();
        let mut cases = Vec::new();
        for plan in plans(&program, &servers)? {
            let name = plan.name;
            if name.contains(&args.only) {
                eprintln!("  {name}");
                cases.push(plan.make()?.measure(name, effort)?);
            }
        }
        parts.push(Part { load_before, load_after: load(), cases, gauges: Vec::new() });
    }
    let [alone, ensemble] = <[Part; 2]>::try_from(parts).map_err(|_| "two parts were measured")?;
    let machine = Machine::here(rivals::versions());
    let report = EnsembleReport { machine, rounds: effort.rounds, alone, ensemble };
    let parts = [("One server", &report.alone), ("Three servers", &report.ensemble)];
    let figures = figures(&report.machine, report.rounds, &parts);
    say(args, &figures, &report)
}

/// A lock that up to 10,000 clients wait for.
fn queued(args: &Args) -> Result<()> {
    let (effort, load_before) = (args.effort(), load());
    let window = Duration::from_secs(if args.quick { 5 } else { 30 });
    let gauges = queue::measure(effort, window, &args.only)?;
    let part = Part { load_before, load_after: load(), cases: Vec::new(), gauges };
    let machine = Machine::here([("redis", Server::start()?.version()?)]);
    let report = QueueReport { machine, rounds: effort.rounds, queue: part };
    let parts = [("Server and clients on one machine", &report.queue)];
    let figures = figures(&report.machine, report.rounds, &parts);
    say(args, &figures, &report)
}

/// Redis behind Sentinels, in a cluster and as a quorum, beside one server, and beside those whose drivers are
/// given.
fn deployed(args: &Args) -> Result<()> {
    let (effort, entrants) = (args.effort(), peers(&args.drivers)?);
    let java = deployments::in_java(&entrants);
    let redlocks = deployments::of_quorums(&entrants);
    for missing in &args.missing {
        eprintln!("without {missing}");
    }
    let measured = |title: &str, plans: Vec<Plan>| -> Result<Part> {
        eprintln!("{title}:");
        let load_before = load();
        let mut cases = Vec::new();
        for plan in plans.into_iter().filter(|it| it.name.contains(&args.only)) {
            let name = plan.name;
            eprintln!("  {name}");
            cases.push(plan.make()?.measure(name, effort)?);
        }
        Ok(Part { load_before, load_after: load(), cases, gauges: Vec::new() })
    };
    let [behind, many, most] =
        ["Behind Sentinels", "A cluster of three masters", "A quorum of three servers"];
    let sentinel = {
        let (servers, alone) = (RedisSentinels::start()?, RedisServer::start()?);
        measured(behind, deployments::sentinel(&servers, &alone))?
    };
    let cluster = {
        let servers = RedisCluster::builder().masters_alone().start()?;
        let alone = RedisServer::start()?;
        let plans = deployments::cluster(&servers, &alone, effort, &java);
        let mut part = measured(many, plans)?;
        if "processors' time".contains(&args.only) {
            eprintln!("  processors' time");
            part.gauges = deployments::processors(&servers, effort)?;
        }
        part
    };
    let quorum = {
        let servers = RedisQuorum::start()?;
        measured(most, deployments::quorum(&servers, &redlocks, effort))?
    };
    let machine = Machine::here(deployments::versions(&java, &redlocks)?);
    let report = DeploymentsReport { machine, rounds: effort.rounds, sentinel, cluster, quorum };
    let parts = [(behind, &report.sentinel), (many, &report.cluster), (most, &report.quorum)];
    let figures = figures(&report.machine, report.rounds, &parts);
    say(args, &figures, &report)
}

/// Prints the figures, and writes them where the arguments say.
fn say(args: &Args, figures: &str, report: &impl Serialize) -> Result<()> {
    println!("\n{figures}");
    if let Some(out) = &args.out {
        std::fs::write(out, serde_json::to_string_pretty(report)? + "\n")?;
    }
    if let Some(page) = &args.page {
        put(page, figures)?;
    }
    Ok(())
}

/// Every language beside its peers.
fn compared(args: &Args) -> Result<()> {
    let entrants = peers(&args.drivers)?;
    let seconds = Duration::from_secs;
    let full = Dose { rounds: 5, span: 300, handoffs: 40, rest: seconds(3), patience: seconds(45) };
    let quick = Dose { rounds: 1, span: 60, handoffs: 3, rest: seconds(1), patience: seconds(12) };
    let mut dose = if args.quick { quick } else { full };
    dose.rounds = args.rounds.unwrap_or(dose.rounds);
    let wanted = Wanted { only: args.only.clone(), dose, single: args.part };
    if args.part {
        let tables = report::tables(&entrants, &mut Server::start()?, &wanted)?;
        println!("{}", serde_json::to_string(&tables)?);
        return Ok(());
    }
    let made = compare(&entrants, &wanted, args.missing.clone(), || pinned(args))?;
    print!("{}", made.markdown(None));
    if let Some(out) = &args.out {
        std::fs::write(out, serde_json::to_string_pretty(&made)? + "\n")?;
    }
    if let Some(page) = &args.page {
        made.write(page, "comparison")?;
    }
    Ok(())
}

/// Runs this program once more on one processor, with a server of its own there.
fn pinned<T: DeserializeOwned>(args: &Args) -> Result<T> {
    let mut again = Command::new("taskset");
    again.args(["-c", "0"]).arg(std::env::current_exe()?).arg("--part");
    if args.what == What::Comparison {
        again.arg("compare");
        for driver in &args.drivers {
            again.args(["--driver", driver]);
        }
    }
    if args.quick {
        again.arg("--quick");
    }
    if let Some(rounds) = args.rounds {
        again.args(["--rounds", &rounds.to_string()]);
    }
    again.args(["--only", &args.only]).stderr(Stdio::inherit());
    let output = again.output().map_err(|error| format!("taskset (of util-linux): {error}"))?;
    if !output.status.success() {
        return Err("the pinned run failed; see above".into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn part(args: &Args) -> Result<Part> {
    let (effort, load_before) = (args.effort(), load());
    let server = RedisServer::start()?;
    let (url, program) = (server.url(), std::env::current_exe()?);
    let mut plans = local::plans();
    plans.extend(pair::single(&url));
    plans.extend(pair::many(&url));
    plans.extend(handoff::plans(&program, &url));
    plans.extend(confirmed::plans());
    let mut cases = Vec::new();
    for plan in plans {
        let name = plan.name;
        if name.contains(&args.only) {
            eprintln!("  {name}");
            cases.push(plan.make()?.measure(name, effort)?);
        }
    }
    let mut gauges = Vec::new();
    if "server time".contains(&args.only) {
        eprintln!("  server time");
        gauges.extend(cost::measure(&url, effort)?);
    }
    // One processor says nothing new of these two.
    let short = args.quick && args.part;
    if "held locks".contains(&args.only) && !short {
        // Each is renewed every ten seconds.
        let (window, counts) = match args.quick {
            true => (10, &[100_000][..]),
            false => (20, &[1, 1_000, 100_000][..]),
        };
        for &held in counts {
            eprintln!("  {held} held locks");
            gauges.extend(watchdog::measure(&url, held, Duration::from_secs(window))?);
        }
    }
    if "waiters".contains(&args.only) && !short {
        eprintln!("  waiters");
        gauges.extend(waiters::measure(&program, &url)?);
    }
    Ok(Part { load_before, load_after: load(), cases, gauges })
}
