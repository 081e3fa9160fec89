//! A lock that many hold together, and as many wait for.

use std::time::Duration;

use fencelock_engine::redis::{Codec, Value};
use fencelock_engine::request::{Acquire, Beat, Mode, Op, Release, Wait};
use fencelock_engine::{ClientId, HoldId, Name};
use redis::{Connection, Pipeline};

use crate::case::Effort;
use crate::cost::quotients;
use crate::gauge::Gauge;
use crate::{Result, bare};

/// How many hold; the most that a store keeps of a name, less one who comes and goes.
const SIZES: [usize; 3] = [1, 100, 9_999];
/// How often each thing is done before the server is asked what it took.
const TIMES: usize = 500;
/// With the most, at most so many times what it takes with the fewest.
const GROWTH: f64 = 1.5;
/// Nothing here ends by itself.
const LONG: Duration = Duration::from_secs(1800);
/// How many requests leave together.
const BATCH: usize = 500;

/// One name: who holds it, and who waits behind them.
struct Gathering {
    name: Name,
    codec: Codec,
    mode: Mode,
    holds: Vec<HoldId>,
    waiting: Vec<HoldId>,
    next: u128,
}

type Work = fn(&mut Gathering) -> [Op; 2];

/// What is measured while nobody waits, and what while as many wait as hold.
const FREELY: [(&str, Work); 2] = [("pair", Gathering::pair), ("beat", Gathering::beat)];
const BEHIND: [(&str, Work); 2] =
    [("queueing and leaving", Gathering::queue), ("beat with as many waiting", Gathering::beats)];

/// Server time of readers' and permits' requests, by how many hold.
///
/// # Errors
/// When the server does not answer, or not as expected.
pub fn measure(wire: &mut Connection, effort: Effort) -> Result<Vec<Gauge>> {
    let kinds = [("reader", Mode::Shared), ("permit", Mode::Permits { count: 1, of: 10_000 })];
    let mut gauges = Vec::new();
    for (kind, mode) in kinds {
        let mut all = Vec::new();
        for size in SIZES {
            eprintln!("  {size} holders: {kind}s");
            all.push(Gathering::new(wire, format!("holders/{kind}/{size}"), mode, size)?);
        }
        gauges.extend(grown(wire, &mut all, kind, FREELY, effort)?);
        for (gathering, size) in all.iter_mut().zip(SIZES) {
            gathering.line_up(wire, size)?;
        }
        gauges.extend(grown(wire, &mut all, kind, BEHIND, effort)?);
    }
    Ok(gauges)
}

/// The figures of each size in turn, and how they grow.
fn grown(
    wire: &mut Connection,
    all: &mut [Gathering],
    kind: &str,
    works: [(&str, Work); 2],
    effort: Effort,
) -> Result<Vec<Gauge>> {
    let mut gauges = Vec::new();
    for (name, work) in works {
        let mut figures = SIZES.map(|_| Vec::new());
        for _ in 0..effort.rounds {
            for (gathering, figures) in all.iter_mut().zip(&mut figures) {
                figures.push(gathering.spent(wire, work)?);
            }
        }
        let growth = quotients(&figures[2], &figures[0]);
        for (size, figures) in SIZES.iter().zip(figures) {
            let what = format!("server time of a {kind}'s {name}, {size} holders");
            gauges.push(Gauge::of(what, "µs", figures, None));
        }
        let what = format!("a {kind}'s {name}, {} holders beside {}", SIZES[2], SIZES[0]);
        gauges.push(Gauge::of(what, "×", growth, Some(GROWTH)));
    }
    Ok(gauges)
}

impl Gathering {
    fn new(wire: &mut Connection, name: String, mode: Mode, size: usize) -> Result<Gathering> {
        let id = ClientId::new(size as u64 + 1, "bench")?;
        let (name, codec) = (Name::new(name)?, Codec::new(id, "fl:")?);
        let next = u128::from(bare::micros()) << 64;
        let mut made =
            Gathering { name, codec, mode, holds: Vec::new(), waiting: Vec::new(), next };
        let holds: Vec<HoldId> = (0..size).map(|_| made.mint()).collect();
        made.send(wire, holds.iter().map(|hold| made.acquire(*hold, made.mode, false)))?;
        made.holds = holds;
        Ok(made)
    }

    /// Lets so many wait, behind one who waits for the lock alone, or for more permits than are left.
    fn line_up(&mut self, wire: &mut Connection, size: usize) -> Result<()> {
        let waiting: Vec<HoldId> = (0..size).map(|_| self.mint()).collect();
        let greedy = match self.mode {
            Mode::Permits { of, .. } => Mode::Permits { count: of, of },
            _ => Mode::Exclusive,
        };
        let first = waiting[0];
        // A writer's first request is told to name all keys.
        let ask = self.acquire(first, greedy, true);
        let refused = Value::Error("MODES".to_owned());
        if greedy == Mode::Exclusive && self.codec.decode(&ask, refused).is_ok() {
            return Err("a refusal was no error".into());
        }
        let mode = |hold| if hold == first { greedy } else { self.mode };
        self.send(wire, waiting.iter().map(|hold| self.acquire(*hold, mode(*hold), true)))?;
        self.waiting = waiting;
        Ok(())
    }

    fn send(&self, wire: &mut Connection, ops: impl Iterator<Item = Op>) -> Result<()> {
        let ops: Vec<Op> = ops.collect();
        for batch in ops.chunks(BATCH) {
            let mut pipe = Pipeline::new();
            for op in batch {
                pipe.add_command(bare::encoded(&self.codec, op));
            }
            pipe.query::<Vec<redis::Value>>(wire)?;
        }
        Ok(())
    }

    /// Microseconds in scripts for each time that `work` is done.
    fn spent(&mut self, wire: &mut Connection, work: Work) -> Result<f64> {
        bare::count_anew(wire)?;
        for _ in 0..TIMES {
            for op in work(self) {
                let answer: redis::Value = bare::encoded(&self.codec, &op).query(wire)?;
                if matches!(answer, redis::Value::ServerError(_)) {
                    return Err(format!("{op:?}: {answer:?}").into());
                }
            }
        }
        let (calls, micros) = bare::scripts_run(wire)?;
        if calls != 2.0 * TIMES as f64 {
            return Err(format!("{calls} scripts ran where {} were sent", 2 * TIMES).into());
        }
        Ok(micros / TIMES as f64)
    }

    fn pair(&mut self) -> [Op; 2] {
        let hold = self.mint();
        [self.acquire(hold, self.mode, true), self.release(hold)]
    }

    fn queue(&mut self) -> [Op; 2] {
        self.pair()
    }

    /// Two holders renew, each time others.
    fn beat(&mut self) -> [Op; 2] {
        let (one, other) =
            (Self::any(&self.holds, self.next), Self::any(&self.holds, self.next + 1));
        self.next += 2 << 64;
        [self.renew(one), self.renew(other)]
    }

    /// A holder renews, and who waits shows itself.
    fn beats(&mut self) -> [Op; 2] {
        let (one, other) = (Self::any(&self.holds, self.next), Self::any(&self.waiting, self.next));
        self.next += 1 << 64;
        [self.renew(one), self.renew(other)]
    }

    /// Steps that are prime to each size, through all of them.
    fn any(holds: &[HoldId], step: u128) -> HoldId {
        holds[((step >> 64) * 617 % holds.len() as u128) as usize]
    }

    fn mint(&mut self) -> HoldId {
        self.next += 1 << 64;
        HoldId(self.next)
    }

    fn acquire(&self, hold: HoldId, mode: Mode, wait: bool) -> Op {
        let wait = wait.then_some(Wait { ticket: 0, claim: LONG, silence: LONG });
        let until = bare::micros() + 3_000_000;
        Op::Acquire(Acquire { mode, wait, ..Acquire::new(self.name.clone(), hold, LONG, until) })
    }

    fn renew(&self, hold: HoldId) -> Op {
        Op::Beat(vec![Beat { mode: self.mode, ..Beat::new(self.name.clone(), hold, LONG) }])
    }

    fn release(&self, hold: HoldId) -> Op {
        Op::Release(Release { mode: self.mode, ..Release::new(self.name.clone(), hold, 0) })
    }
}
