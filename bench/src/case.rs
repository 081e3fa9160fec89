//! A thing that is measured, on its sides.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::stats::Spread;

/// Does so many operations and says how long they took.
pub type Run = Box<dyn FnMut(u64) -> Result<Duration>>;

/// One way of doing a thing.
pub struct Side {
    /// What does it.
    pub name: &'static str,
    run: Run,
}

impl Side {
    /// A side that `run` measures.
    pub fn new(name: &'static str, run: impl FnMut(u64) -> Result<Duration> + 'static) -> Side {
        Side { name, run: Box::new(run) }
    }

    /// Does it `count` times.
    ///
    /// # Errors
    /// Whatever fails in it.
    pub fn run(&mut self, count: u64) -> Result<Duration> {
        (self.run)(count)
    }
}

/// What is hoped for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aim {
    /// At most so many times the first floor's time.
    Ratio(f64),
    /// At most so many nanoseconds each.
    Nanos(f64),
    /// At least so many a second.
    PerSecond(f64),
    /// Nothing: the figure is for information.
    None,
}

impl Aim {
    /// Whether a figure reaches it.
    pub fn is_met(self, nanos: f64, ratio: f64) -> bool {
        match self {
            Aim::Ratio(limit) => ratio <= limit,
            Aim::Nanos(limit) => nanos <= limit,
            Aim::PerSecond(least) => 1e9 / nanos >= least,
            Aim::None => true,
        }
    }
}

/// A case that is made when its turn comes, so that no other's connections are there meanwhile.
pub struct Plan {
    /// The case's name, as in `Redis pair, blocking`.
    pub name: &'static str,
    make: Box<dyn FnOnce() -> Result<Case>>,
}

impl Plan {
    /// A case that `make` makes.
    pub fn new(name: &'static str, make: impl FnOnce() -> Result<Case> + 'static) -> Plan {
        Plan { name, make: Box::new(make) }
    }

    /// Makes it.
    ///
    /// # Errors
    /// When a client or a server cannot be reached.
    pub fn make(self) -> Result<Case> {
        (self.make)()
    }
}

/// A thing that is measured: ours first, then its floors.
pub struct Case {
    /// What is hoped for.
    pub aim: Aim,
    /// Ours, the floor that the aim speaks of, and others to compare with.
    pub sides: Vec<Side>,
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many rounds.
    pub rounds: usize,
    /// How long one side runs in a round, about.
    pub slice: Duration,
}

/// One side's times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    /// What did it.
    pub name: String,
    /// Nanoseconds each.
    pub nanos: Spread,
    /// Ours divided by this side's time, round by round.
    pub ratio: Spread,
}

/// What came of a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The case.
    pub name: String,
    /// What was hoped for.
    pub aim: Aim,
    /// Whether the median reaches it.
    pub met: bool,
    /// Ours first.
    pub sides: Vec<Times>,
}

impl Case {
    /// Runs all sides in turn, forwards and backwards, so that a machine that grows slower does so
    /// for all of them.
    ///
    /// # Errors
    /// Whatever fails in a side.
    pub fn measure(&mut self, name: &str, effort: Effort) -> Result<Measured> {
        let counts: Vec<u64> = self
            .sides
            .iter_mut()
            .map(|side| calibrate(side, effort.slice))
            .collect::<Result<_>>()?;
        let mut nanos = vec![Vec::new(); self.sides.len()];
        for round in 0..effort.rounds {
            for step in 0..self.sides.len() {
                let at = if round % 2 == 0 { step } else { self.sides.len() - 1 - step };
                let took = self.sides[at].run(counts[at])?;
                nanos[at].push(took.as_nanos() as f64 / counts[at] as f64);
            }
        }
        let sides: Vec<Times> = self
            .sides
            .iter()
            .zip(&nanos)
            .map(|(side, times)| Times {
                name: side.name.to_owned(),
                nanos: Spread::of(times.iter().copied()),
                ratio: Spread::of(nanos[0].iter().zip(times).map(|(ours, other)| ours / other)),
            })
            .collect();
        let ratio = sides.get(1).map_or(1.0, |floor| floor.ratio.median);
        let met = self.aim.is_met(sides[0].nanos.median, ratio);
        Ok(Measured { name: name.to_owned(), aim: self.aim, met, sides })
    }
}

/// How many operations fill the slice, with what is not timed of them; warms up on the way.
fn calibrate(side: &mut Side, slice: Duration) -> Result<u64> {
    let mut count = 64;
    loop {
        let start = Instant::now();
        side.run(count)?;
        let took = start.elapsed();
        if took * 4 >= slice {
            let each = took.as_secs_f64() / count as f64;
            return Ok(((slice.as_secs_f64() / each) as u64).max(16));
        }
        count *= 2;
    }
}
