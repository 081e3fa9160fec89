//! What a lock costs the server that many clients wait for.
//!
//! The clients are simulated: each has an id, an inbox and a hold of its own, and a few connections
//! serve them all. Lines of all lengths stand on one server and have their turns in each round.

mod crowd;
mod holders;

use std::time::{Duration, Instant};

use redis::Connection;

use crate::case::Effort;
use crate::compare::server::{Nested, Server};
use crate::cost::quotients;
use crate::gauge::Gauge;
use crate::{Result, bare, cost};
use crowd::{Count, Crowd};

/// How many wait.
const SIZES: [usize; 4] = [2, 100, 1_000, 10_000];
/// How often each thing is done before the server is asked what it took.
const TIMES: usize = 200;
/// With the most that wait, at most so many times what it takes with the fewest.
const GROWTH: f64 = 1.5;

/// What the server is asked for, in its own time.
const WORK: [(&str, Work); 3] = [
    ("hand-off", Crowd::hand_over),
    ("queueing", Crowd::queue_and_leave),
    ("beat", Crowd::beat_next),
];
type Work = fn(&mut Crowd, &mut Connection, Count) -> Result<usize>;

/// The parts whose names have `only`: a pair that nobody contends for, what many hold together, and what
/// many wait for, with those who only wait, counted for `window`.
///
/// # Errors
/// When the server does not answer, or not as expected.
pub fn measure(effort: Effort, window: Duration, only: &str) -> Result<Vec<Gauge>> {
    let mut server = Server::start()?;
    let mut wire = bare::client(server.url())?.get_connection()?;
    bare::Scripts::load(&mut wire)?;
    // Before anybody waits.
    let pair = match "server time of a pair".contains(only) {
        true => cost::measure(server.url(), effort)?,
        false => Vec::new(),
    };
    let mut gauges = Vec::new();
    if "waiting".contains(only) {
        gauges.extend(lines(&mut server, &mut wire, effort, window)?);
    }
    if "holders".contains(only) {
        gauges.extend(holders::measure(&mut wire, effort)?);
    }
    gauges.extend(pair);
    Ok(gauges)
}

/// The figures of each length.
fn lines(
    server: &mut Server,
    wire: &mut Connection,
    effort: Effort,
    window: Duration,
) -> Result<Vec<Gauge>> {
    let mut crowds = Vec::new();
    for waiting in SIZES {
        eprintln!("  {waiting} waiting");
        crowds.push(Crowd::gather(server.url(), wire, waiting)?);
    }
    let mut times = WORK.map(|_| SIZES.map(|_| Vec::new()));
    let mut rates = SIZES.map(|_| Vec::new());
    for round in 0..effort.rounds {
        eprintln!("  round {}", round + 1);
        for (at, crowd) in crowds.iter_mut().enumerate() {
            for ((_, work), times) in WORK.iter().zip(&mut times) {
                times[at].push(spent(wire, crowd, *work)?);
            }
            rates[at].push(rate(wire, crowd, effort.slice)?);
        }
    }
    let mut gauges = Vec::new();
    for ((name, _), of_sizes) in WORK.iter().zip(times) {
        let last = SIZES.len() - 1;
        let growth = quotients(&of_sizes[last], &of_sizes[0]);
        for (waiting, figures) in SIZES.iter().zip(of_sizes) {
            let what = format!("server time of a {name}, {waiting} waiting");
            gauges.push(Gauge::of(what, "µs", figures, None));
        }
        let what = format!("{name}, {} waiting beside {}", SIZES[last], SIZES[0]);
        gauges.push(Gauge::of(what, "×", growth, Some(GROWTH)));
    }
    let slower = quotients(&rates[1], &rates[3]);
    for (waiting, figures) in SIZES.iter().zip(rates) {
        gauges.push(Gauge::of(format!("hand-offs, {waiting} waiting"), "a second", figures, None));
    }
    let what = format!("time from hand-off to hand-off, {} waiting beside {}", SIZES[3], SIZES[1]);
    gauges.push(Gauge::of(what, "×", slower, Some(2.0)));
    eprintln!("  {} that only wait", SIZES[3]);
    gauges.extend(only_wait(server, wire, &mut crowds[3], window)?);
    Ok(gauges)
}

/// Microseconds in scripts for each time that `work` is done; what a script calls is counted in it.
fn spent(wire: &mut Connection, crowd: &mut Crowd, work: Work) -> Result<f64> {
    bare::count_anew(wire)?;
    let mut wanted = 0;
    for _ in 0..TIMES {
        wanted += work(crowd, wire, Count::These)?;
    }
    let (calls, micros) = bare::scripts_run(wire)?;
    if calls != wanted as f64 {
        return Err(format!("{calls} scripts ran where {wanted} were sent").into());
    }
    Ok(micros / TIMES as f64)
}

/// Hand-offs a second, each to the next in line, while the others show that they live.
fn rate(wire: &mut Connection, crowd: &mut Crowd, span: Duration) -> Result<f64> {
    let (begin, mut count) = (Instant::now(), 0_u32);
    while begin.elapsed() < span {
        let before = Instant::now();
        crowd.hand_over(wire, Count::All)?;
        while crowd.beat_due(wire)? {}
        crowd.pass(before.elapsed());
        count += 1;
    }
    Ok(f64::from(count) / begin.elapsed().as_secs_f64())
}

/// What those who only wait take of the server: its time on a processor, by its own account.
fn only_wait(
    server: &mut Server,
    wire: &mut Connection,
    crowd: &mut Crowd,
    window: Duration,
) -> Result<[Gauge; 2]> {
    // Their hand-overs have brought them to beat together; some rest for longer than the window.
    crowd.rest();
    server.count_anew()?;
    let (begin, mut passed, mut beats) = (Instant::now(), Duration::ZERO, 0_u32);
    while passed < window {
        // One by one, as from connections of their own.
        while crowd.beat_due(wire)? {
            beats += 1;
        }
        std::thread::sleep(crowd.idle().min(window - passed));
        let now = begin.elapsed();
        crowd.pass(now - passed);
        passed = now;
    }
    let load = server.load(&Nested::default())?;
    let share = load.micros / passed.as_secs_f64() / 1e4;
    let beats = f64::from(beats) / passed.as_secs_f64();
    let what = format!("{} that only wait", SIZES[3]);
    Ok([
        Gauge::of(format!("{what}, of a processor of the server"), "%", vec![share], Some(5.0)),
        Gauge::of(format!("{what}, beats"), "a second", vec![beats], None),
    ])
}
