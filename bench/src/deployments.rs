//! Redis behind Sentinels, in a cluster and as a quorum, beside one server.

use std::time::{Duration, Instant};

use fencelock::{Client, Lock, blocking};
use fencelock_testkit::{Driver, RedisCluster, RedisQuorum, RedisSentinels, RedisServer};

use crate::case::Effort;
use crate::compare::peers::{Entrant, Part};
use crate::compare::server::Server;
use crate::compare::team::Team;
use crate::gauge::Gauge;
use crate::local::Flavor;
use crate::machine::said;
use crate::pair::{KEYS, spread};
use crate::watchdog::processor;
use crate::{Aim, Case, Plan, Result, Side};

/// How long a library of Java's runs before it is measured.
const WARMING: Duration = Duration::from_secs(3);

/// How many processes ask for one lock, and how many callers each has.
const PROCESSES: usize = 4;
const CALLERS: usize = 4;

/// How many pairs the processors' time is counted over.
const COUNTED: u64 = 20_000;

/// A master with two replicas, by its Sentinels' word and by its own address, and a server alone.
pub fn sentinel(servers: &RedisSentinels, alone: &RedisServer) -> Vec<Plan> {
    let master = servers.says(0).unwrap_or(0);
    let by_master = servers.servers[master].url();
    let urls = [servers.url(), by_master, alone.url()];
    let names = ["by Sentinels", "the master itself", "a server without replicas"];
    // The same client at the same server: what is between them is noise.
    pairs(urls, names, 1.05)
}

/// Three masters, and a server alone.
pub fn cluster(
    cluster: &RedisCluster,
    alone: &RedisServer,
    effort: Effort,
    java: &[Entrant],
) -> Vec<Plan> {
    let mut plans = pairs([cluster.url(), alone.url()], ["a cluster", "a server alone"], 1.1);
    let all: Vec<String> = (0..KEYS).map(|at| format!("deployments/{at}")).collect();
    let one: Vec<String> =
        (0..KEYS).map(|at| cluster.name_at(0, &format!("deployments/{at}/"))).collect();
    for (name, flavor) in [
        ("64 tasks on 64 keys, one thread", Flavor::Current),
        ("64 tasks on 64 keys, two workers", Flavor::Multi),
    ] {
        let (urls, all, one) = ([cluster.url(), alone.url()], all.clone(), one.clone());
        plans.push(Plan::new(name, move || {
            let [cluster, alone] = urls;
            Ok(Case {
                // 1.5 times the rate.
                aim: Aim::Ratio(0.67),
                sides: vec![
                    keys("over three masters", &cluster, &all, flavor)?,
                    keys("all at one master", &cluster, &one, flavor)?,
                    keys("a server alone", &alone, &all, flavor)?,
                ],
            })
        }));
    }
    for (name, order) in
        [("Java: a pair", "pairs pair"), ("Java: 64 threads on 64 keys", "keys 64 many")]
    {
        if java.is_empty() {
            break;
        }
        let (url, java) = (cluster.url(), java.to_vec());
        plans.push(Plan::new(name, move || {
            let sides =
                java.iter().map(|entrant| driven(entrant.library, entrant, &url, order, effort));
            Ok(Case { aim: Aim::Ratio(1.0), sides: sides.collect::<Result<_>>()? })
        }));
    }
    plans
}

/// Three independent servers: ours beside one of them alone, and beside the Redlock of other languages on all three.
pub fn quorum(servers: &RedisQuorum, entrants: &[Entrant], effort: Effort) -> Vec<Plan> {
    let Some(ours) = entrants.first() else { return Vec::new() };
    let urls: Vec<String> = servers.servers.iter().map(RedisServer::url).collect();
    let url_of = |entrant: &Entrant| match entrant.part {
        Part::Ours => servers.direct_url(),
        _ => urls.join(","),
    };
    let all: Vec<(Entrant, String)> = entrants.iter().map(|it| (it.clone(), url_of(it))).collect();
    let free = all.clone();
    let alone: Vec<_> = ["the first server alone", "the second", "the third"]
        .into_iter()
        .zip(urls)
        .map(|(name, url)| (name, ours.clone(), url))
        .collect();
    vec![
        Plan::new("a free pair", move || {
            let pair = |(entrant, url): &(Entrant, String)| {
                driven(entrant.library, entrant, url, "pairs pair", effort)
            };
            // Ours first, and what it is to be compared with second.
            let mut sides = free.iter().take(1).map(pair).collect::<Result<Vec<_>>>()?;
            for (name, entrant, url) in &alone {
                sides.push(driven(name, entrant, url, "pairs pair", effort)?);
            }
            for peer in free.iter().skip(1) {
                sides.push(pair(peer)?);
            }
            Ok(Case { aim: Aim::Ratio(1.5), sides })
        }),
        Plan::new("4 processes with 4 callers each on one lock", move || {
            let sides = all.iter().map(|(entrant, url)| {
                let teams = Team::start(std::iter::once(entrant), PROCESSES, url)?;
                let mut team = teams.into_iter().next().ok_or("no team")?;
                let key = team.key("quorum");
                let order =
                    move |span: Duration| format!("hot {CALLERS} {key} {}", span.as_millis());
                team.turn(&order(WARMING))?;
                Ok(Side::new(entrant.library, move |count| {
                    let turn = team.turn(&order(effort.slice))?.ok_or("it cannot")?;
                    Ok(Duration::from_secs_f64(count as f64 / turn.rate))
                }))
            });
            // Five times the rate.
            Ok(Case { aim: Aim::Ratio(0.2), sides: sides.collect::<Result<_>>()? })
        }),
    ]
}

/// Those that have a quorum: ours in Rust, which is first, Go's redsync and Node's redlock.
pub fn of_quorums(entrants: &[Entrant]) -> Vec<Entrant> {
    let wanted = |it: &&Entrant| match it.language {
        "Rust" => it.library == "fencelock",
        "Go" => it.library == "redsync",
        "Node" => it.library == "redlock",
        _ => false,
    };
    entrants.iter().filter(wanted).cloned().collect()
}

/// Those of Java's that are put beside each other: ours, and Redisson's usual lock.
pub fn in_java(entrants: &[Entrant]) -> Vec<Entrant> {
    let wanted = |it: &&Entrant| it.part == Part::Ours || it.library == "redisson-lock";
    entrants.iter().filter(|it| it.language == "Java").filter(wanted).cloned().collect()
}

/// One caller, one lock, in the ways of both APIs.
fn pairs<const N: usize>(urls: [String; N], names: [&'static str; N], most: f64) -> Vec<Plan> {
    let (again, aim) = (urls.clone(), Aim::Ratio(most));
    vec![
        Plan::new("a pair, blocking", move || {
            let sides = urls.iter().zip(names).map(|(url, name)| {
                let lock = blocking::Client::connect(url)?.lock("deployments/pair")?;
                Ok(Side::new(name, move |count| {
                    let start = Instant::now();
                    for _ in 0..count {
                        lock.acquire()?.release()?;
                    }
                    Ok(start.elapsed())
                }))
            });
            Ok(Case { aim, sides: sides.collect::<Result<_>>()? })
        }),
        Plan::new("a pair, async", move || {
            let sides = again.iter().zip(names).map(|(url, name)| {
                let runtime = Flavor::Current.runtime()?;
                let lock = runtime.block_on(Client::connect(url))?.lock("deployments/pair")?;
                Ok(Side::new(name, move |count| {
                    let start = Instant::now();
                    runtime.block_on(many_pairs(lock.clone(), count))?;
                    Ok(start.elapsed())
                }))
            });
            Ok(Case { aim, sides: sides.collect::<Result<_>>()? })
        }),
    ]
}

async fn many_pairs(lock: Lock, count: u64) -> Result<()> {
    for _ in 0..count {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

fn keys(name: &'static str, url: &str, names: &[String], flavor: Flavor) -> Result<Side> {
    let runtime = flavor.runtime()?;
    let client = runtime.block_on(Client::connect(url))?;
    let locks: Vec<Lock> = names.iter().map(|it| client.lock(it)).collect::<Result<_, _>>()?;
    Ok(Side::new(name, move |count| {
        runtime.block_on(spread(count, |at, each| many_pairs(locks[at].clone(), each)))
    }))
}

/// What a driver does, each time for as long as a slice is.
fn driven(
    name: &'static str,
    entrant: &Entrant,
    url: &str,
    order: &'static str,
    effort: Effort,
) -> Result<Side> {
    let mut driver = entrant.start(url)?;
    driver.wait_for("ready");
    did(&mut driver, order, WARMING)?;
    Ok(Side::new(name, move |count| {
        Ok(did(&mut driver, order, effort.slice)?.mul_f64(count as f64))
    }))
}

/// How long each took.
fn did(driver: &mut Driver, order: &str, span: Duration) -> Result<Duration> {
    let said = driver.ask(&format!("{order} {}", span.as_millis()), "did");
    let mut words = said.split(' ').map(str::parse::<f64>);
    match (words.next(), words.next()) {
        (Some(Ok(count)), Some(Ok(nanos))) => Ok(Duration::from_secs_f64(nanos / count / 1e9)),
        _ => Err(format!("the driver did {said:?}").into()),
    }
}

/// What a pair takes of the processors, at the client and at its servers, where 64 tasks are at work: how
/// far that goes on so many processors.
///
/// # Errors
/// When a server does not answer.
pub fn processors(cluster: &RedisCluster, effort: Effort) -> Result<Vec<Gauge>> {
    let names: Vec<String> = (0..KEYS).map(|at| format!("deployments/{at}")).collect();
    let mut side = keys("over three masters", &cluster.url(), &names, Flavor::Multi)?;
    side.run(COUNTED / 4)?;
    let (mut ours, mut theirs, mut bound) = (Vec::new(), Vec::new(), Vec::new());
    let cpus = std::thread::available_parallelism().map_or(1.0, |it| it.get() as f64);
    for _ in 0..effort.rounds {
        let (client, servers) = (processor(), spent(cluster)?);
        side.run(COUNTED)?;
        let client = (processor() - client).as_secs_f64() * 1e6 / COUNTED as f64;
        let servers = (spent(cluster)? - servers) / COUNTED as f64;
        ours.push(client);
        theirs.push(servers);
        // One master does no more than one in its time; all together no more than the processors have.
        bound.push(servers * cpus / (servers + client));
    }
    Ok(vec![
        Gauge::of("a pair on 64 keys, the client's time", "µs", ours, None),
        Gauge::of("a pair on 64 keys, the servers' time", "µs", theirs, None),
        Gauge::of("the most that masters without end would gain here", "×", bound, None),
    ])
}

/// For how many microseconds the servers have run.
fn spent(cluster: &RedisCluster) -> Result<f64> {
    let mut micros = 0.0;
    for server in &cluster.servers {
        let mut wire = server.connection()?;
        let info: String = redis::cmd("INFO").arg("cpu").query(&mut wire)?;
        for key in ["used_cpu_sys:", "used_cpu_user:"] {
            let line = info.lines().find_map(|line| line.strip_prefix(key));
            micros += line.ok_or("no processor's time")?.trim().parse::<f64>()? * 1e6;
        }
    }
    Ok(micros)
}

/// What ran, by name and version.
///
/// # Errors
/// When one of them cannot be started.
pub fn versions(java: &[Entrant], redlocks: &[Entrant]) -> Result<Vec<(&'static str, String)>> {
    let mut server = Server::start()?;
    let mut versions = vec![("redis", server.version()?)];
    for entrant in java.iter().chain(redlocks).filter(|it| it.part == Part::Peer) {
        let driver = entrant.start(server.url())?;
        let name = if entrant.language == "Java" { "redisson" } else { entrant.library };
        versions.push((name, driver.wait_for("ready")));
    }
    if !java.is_empty() {
        versions.push(("java", said("java", "--version")));
    }
    Ok(versions)
}
