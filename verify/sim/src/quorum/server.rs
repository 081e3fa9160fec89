//! One server: records by the rules, a clock, and the marker of its memory.

use std::collections::BTreeMap;

use fencelock_engine::plant::{self, Bug};
use fencelock_engine::reply::{Body, Failure, Push, Refusal, RefusalKind, Reply, Standing};
use fencelock_engine::request::Op;
use fencelock_engine::store::{Announce, Caller, Delivery, Keep, Record};
use fencelock_engine::{ClientId, HoldId, Name};

use crate::clock::{Instant, StoreClock, US};

/// What a client goes by, besides its servers: all must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creed {
    /// How many servers are in its list.
    pub list: usize,
    /// The longest lease, in microseconds.
    pub max_lease: u64,
}

/// What the server remembers of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Which run of the server's process wrote it.
    pub run: u32,
    /// When, by the server's clock.
    pub birth: u64,
    creed: Creed,
}

impl Marker {
    /// Of nobody.
    pub fn unknown(creed: Creed) -> Marker {
        Marker { run: 0, birth: 0, creed }
    }
}

type Records = BTreeMap<Name, (Record, Keep)>;

/// One server.
#[derive(Clone, Debug)]
pub struct Server {
    pub clock: StoreClock,
    run: u32,
    marker: Option<Marker>,
    records: Records,
    /// What is on its disk, which lags.
    saved: (Records, Option<Marker>),
    /// It is not there until then.
    pub down_until: Instant,
    /// It stands still until then.
    pub mute_until: Instant,
    /// When its present marker was written.
    pub born: Instant,
    /// When it last forgot anything.
    pub forgot: Option<Instant>,
}

/// Whom pushes reach, and what was said to them.
pub struct Reach<'a> {
    pub listens: &'a dyn Fn(&str) -> Option<usize>,
    pub said: Vec<(usize, Push)>,
}

impl Announce for Reach<'_> {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        match (self.listens)(client) {
            Some(to) => {
                self.said.push((to, push));
                Delivery::Delivered
            }
            None => Delivery::Nobody,
        }
    }
}

impl Server {
    /// One whose memory is old enough.
    pub fn new(clock: StoreClock, creed: Creed) -> Server {
        let marker = Some(Marker { run: 1, birth: 0, creed });
        Server {
            clock,
            run: 1,
            marker,
            records: Records::new(),
            saved: (Records::new(), marker),
            down_until: 0,
            mute_until: 0,
            born: 0,
            forgot: None,
        }
    }

    /// What a client is told with its session: the marker, and how long the server gives no vote. `None`:
    /// it goes by another list, or another longest lease.
    pub fn greet(&mut self, now: Instant, creed: Creed) -> Option<(Marker, u64)> {
        let read = self.clock.read(now);
        let fresh = Marker { run: self.run, birth: read, creed };
        let marker = match self.marker {
            Some(known) if known.run == self.run || plant::on(Bug::RunIdNotCompared) => known,
            _ => {
                self.born = now;
                *self.marker.insert(fresh)
            }
        };
        let lists = marker.creed.list == creed.list || plant::on(Bug::ListNotCompared);
        let leases =
            marker.creed.max_lease == creed.max_lease || plant::on(Bug::MaxLeaseNotCompared);
        (lists && leases).then(|| (marker, (marker.birth + creed.max_lease).saturating_sub(read)))
    }

    /// Carries out a request of a client that was told of a marker.
    pub fn execute(
        &mut self,
        now: Instant,
        caller: &Caller,
        (told, creed): (Marker, Creed),
        op: &Op,
        reach: &mut Reach<'_>,
    ) -> Result<Reply, Failure> {
        let read = self.clock.read(now);
        if matches!(op, Op::Acquire(_)) && !plant::on(Bug::MarkerNotAsked) {
            let young = read < told.birth + creed.max_lease;
            if self.marker != Some(told) || young {
                let message = "the server's memory is new".to_owned();
                return Err(Failure::Refused(Refusal { kind: RefusalKind::Retry, message }));
            }
        }
        self.records.retain(|name, (record, keep)| {
            keep.due > read || !keep.is_over(record, read, name, reach)
        });
        let body = match op {
            Op::Acquire(ask) => {
                let record = record(&mut self.records, read, &ask.lock);
                let state = record.0.acquire(read, caller, ask, reach).map_err(Failure::Refused)?;
                record.1.used(&record.0, read, fencelock_engine::options::RETENTION);
                Body::Acquire(state)
            }
            Op::Beat(beats) => Body::Beat(
                beats
                    .iter()
                    .map(|beat| {
                        let record = record(&mut self.records, read, &beat.lock);
                        let state = record.0.beat(read, caller, beat, reach);
                        record.1.used(&record.0, read, fencelock_engine::options::RETENTION);
                        state
                    })
                    .collect(),
            ),
            Op::Release(release) => {
                let record = record(&mut self.records, read, &release.lock);
                let released = record.0.release(read, release, reach);
                record.1.used(&record.0, read, release.retention);
                Body::Release(released)
            }
            Op::Break(what) => {
                let record = record(&mut self.records, read, &what.lock);
                Body::Break(record.0.break_lock(read, what, reach))
            }
            Op::Inspect(name) => {
                Body::Inspect(self.records.get(name).map(|(record, _)| record.inspect(read, name)))
            }
            Op::List { limit, .. } => {
                Body::List(self.records.keys().take(*limit).cloned().collect())
            }
            _ => Body::Time,
        };
        Ok(Reply { now: read, body })
    }

    /// Which of its processes this is.
    pub fn run(&self) -> u32 {
        self.run
    }

    /// Who has this server's vote.
    pub fn holder(&self, lock: &Name) -> Option<HoldId> {
        self.records.get(lock)?.0.holds.first().map(|hold| hold.hold)
    }

    /// Whether anybody holds or waits, as far as it knows now.
    pub fn is_busy(&self, now: Instant) -> bool {
        let read = self.clock.read(now);
        self.records.iter().any(|(name, (record, _))| {
            let info = record.inspect(read, name);
            !info.holds.is_empty() || info.waiters.iter().any(|waiter| !waiter.silent)
        })
    }

    /// What is on the disk is what is in memory.
    pub fn save(&mut self) {
        self.saved = (self.records.clone(), self.marker);
    }

    /// Its process is another, with nothing, or with what is on the disk.
    pub fn restart(&mut self, now: Instant, down: Instant, empty: bool) {
        self.run += 1;
        (self.down_until, self.mute_until) = (now + down, 0);
        (self.records, self.marker) =
            if empty { (Records::new(), None) } else { self.saved.clone() };
        self.forgot = Some(now);
    }

    /// Everything goes, the marker, too, while sessions last.
    pub fn flush(&mut self, now: Instant) {
        (self.records, self.marker) = (Records::new(), None);
        self.forgot = Some(now);
    }

    /// Its clock jumps ahead, and its memory is older for it.
    pub fn jump(&mut self, micros: u64) {
        self.clock.step(micros as i64);
        self.forgot = self.forgot.map(|forgot| forgot.saturating_sub(micros * US));
    }

    /// Whether it must not give a vote: it has forgotten what it gave before, and that may live on.
    pub fn is_newborn(&self, now: Instant, max_lease: u64) -> bool {
        // Clocks go at their own rates.
        let wait = max_lease * US / 100 * 98;
        self.forgot.is_some_and(|forgot| now < forgot + wait)
    }
}

fn record<'a>(records: &'a mut Records, now: u64, lock: &Name) -> &'a mut (Record, Keep) {
    records.entry(lock.clone()).or_insert_with(|| (Record::default(), Keep::new(now)))
}

/// Whether an answer to an acquire gives a vote.
pub fn gives(result: &Result<Reply, Failure>) -> bool {
    matches!(result, Ok(Reply { body: Body::Acquire(state), .. })
        if state.standing == Standing::Granted)
}

/// A client as servers know it.
pub fn caller(number: u64) -> Caller {
    Caller { client: ClientId::new(number, "sim").expect("a short label"), polling: false }
}
