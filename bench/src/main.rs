//! Measures Fencelock beside its raw floors, on all processors and pinned to one, and prints a
//! table of both.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fencelock_bench::case::Effort;
use fencelock_bench::machine::{Machine, load};
use fencelock_bench::peer::{Kind, serve};
use fencelock_bench::report::{EnsembleReport, Part, Report};
use fencelock_bench::{Result, cost, handoff, local, pair, rivals, zookeeper};
use fencelock_testkit::{RedisServer, ZooKeeper};

const USAGE: &str =
    "usage: fencelock-bench [zookeeper] [--quick] [--rounds N] [--only TEXT] [--out FILE]";

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
    /// ZooKeeper, beside what others make of it, instead of the rest.
    zookeeper: bool,
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
                "zookeeper" => args.zookeeper = true,
                "--only" => args.only = words.next().ok_or(USAGE)?.clone(),
                "--out" => args.out = Some(words.next().ok_or(USAGE)?.into()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(args)
    }

    fn effort(&self) -> Effort {
        let (rounds, slice) = if self.quick { (3, 60) } else { (11, 200) };
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
        _ => Args::read(&words).and_then(|args| match args.zookeeper {
            true => zookeeper(&args),
            false => run(&args),
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
    let server = RedisServer::start()?;
    let about: String = redis::cmd("INFO").arg("server").query(&mut server.connection()?)?;
    let version = about.lines().find_map(|line| line.strip_prefix("redis_version:"));
    let machine = Machine::here([("redis", version.unwrap_or("unknown").to_owned())]);
    let report = Report { machine, rounds: args.effort().rounds, unpinned, pinned };
    for (title, part) in [
        ("On all processors", &report.unpinned),
        ("Server and clients pinned to one processor", &report.pinned),
    ] {
        println!("\n{title} (load {} before, {} after)\n", part.load_before, part.load_after);
        print!("{}", part.table());
    }
    if let Some(out) = &args.out {
        std::fs::write(out, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

/// On one server and on three, beside the bare client, Curator and kazoo.
fn zookeeper(args: &Args) -> Result<()> {
    let (effort, program) = (args.effort(), std::env::current_exe()?);
    let mut parts = Vec::new();
    for (title, servers) in [("One server", 1), ("Three servers", 3)] {
        eprintln!("{title}:");
        let servers = ZooKeeper::builder().servers(servers).lasting().start()?;
        let load_before = load();
        let mut cases = Vec::new();
        for plan in zookeeper::plans(&program, &servers) {
            let name = plan.name;
            if name.contains(&args.only) {
                eprintln!("  {name}");
                cases.push(plan.make()?.measure(name, effort)?);
            }
        }
        let part = Part { load_before, load_after: load(), cases, costs: Vec::new() };
        println!("\n{title} (load {} before, {} after)\n", part.load_before, part.load_after);
        print!("{}", part.table());
        parts.push(part);
    }
    let [alone, ensemble] = <[Part; 2]>::try_from(parts).map_err(|_| "two parts were measured")?;
    let machine = Machine::here(rivals::versions());
    let report = EnsembleReport { machine, rounds: effort.rounds, alone, ensemble };
    if let Some(out) = &args.out {
        std::fs::write(out, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    Ok(())
}

/// Runs this program once more on one processor, with a server of its own there.
fn pinned(args: &Args) -> Result<Part> {
    let mut again = Command::new("taskset");
    again.args(["-c", "0"]).arg(std::env::current_exe()?).arg("--part");
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
    let mut cases = Vec::new();
    for plan in plans {
        let name = plan.name;
        if name.contains(&args.only) {
            eprintln!("  {name}");
            cases.push(plan.make()?.measure(name, effort)?);
        }
    }
    let mut costs = Vec::new();
    if "server time".contains(&args.only) {
        eprintln!("  server time");
        costs = cost::measure(&url, effort)?;
    }
    Ok(Part { load_before, load_after: load(), cases, costs })
}
