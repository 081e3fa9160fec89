//! The rules in Rust over a map of records, as the memory and SQLite stores run them.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::options::RETENTION;
use fencelock_engine::plant::{self, Bug};
use fencelock_engine::reply::{Body, Failure, Refusal, RefusalKind, Reply, Standing};
use fencelock_engine::request::{Op, Release};
use fencelock_engine::store::{Caller, Keep, Record};
use fencelock_engine::{ClientId, HoldId, Name};

use crate::fault::Refusing;
use crate::store::{Reach, Store};

/// A map of records.
#[derive(Debug, Default)]
pub struct RecordStore {
    callers: Vec<Caller>,
    // A run has three locks at most: a list is the fastest map.
    records: Vec<Kept>,
    replica: Vec<Kept>,
    forgotten: Vec<Name>,
    refusing: Option<Refusing>,
    foreign: Vec<Name>,
    work: u64,
    /// Of how many losses each hold's latest acquire was told; only with a bug that was planted.
    told: BTreeMap<HoldId, u32>,
}

/// A lock's record, and for how long it is kept.
#[derive(Clone, Debug)]
struct Kept {
    name: Name,
    record: Record,
    keep: Keep,
}

/// Runs `change` on a lock's record, which is there from now on.
fn touch<T>(
    records: &mut Vec<Kept>,
    now: u64,
    lock: &Name,
    retention: Duration,
    change: impl FnOnce(&mut Record) -> T,
) -> T {
    let index = match records.iter().position(|it| it.name == *lock) {
        Some(index) => index,
        None => {
            let (name, record) = (lock.clone(), Record::default());
            records.push(Kept { name, record, keep: Keep::new(now) });
            records.len() - 1
        }
    };
    let it = &mut records[index];
    let result = change(&mut it.record);
    it.keep.used(&it.record, now, retention);
    result
}

impl RecordStore {
    /// Forgets the records that rested for long enough; who only looks changes nothing else.
    fn sweep(&mut self, now: u64, looks: bool, reach: &mut Reach) {
        let forgotten = &mut self.forgotten;
        self.records.retain_mut(|it| {
            let over = it.keep.due <= now
                && (!looks || it.keep.until.is_some())
                && it.keep.is_over(&mut it.record, now, &it.name, reach);
            if over {
                forgotten.push(it.name.clone());
            }
            !over
        });
    }

    fn refuses(&self, op: &Op) -> bool {
        match (self.refusing, op) {
            (None, _) | (Some(_), Op::Inspect(_) | Op::List { .. } | Op::Time) => false,
            (Some(Refusing::ReadOnly), _) => true,
            (Some(Refusing::MemoryFull), op) => {
                matches!(op, Op::Acquire(_)) || plant::on(Bug::FullMemoryStopsRenewals)
            }
        }
    }
}

impl RecordStore {
    /// A request for one lock fails with its key; in a batch only that lock's part does.
    fn check_foreign(&self, op: &Op) -> Result<(), Failure> {
        if self.foreign.is_empty() {
            return Ok(());
        }
        let foreign = |lock: &Name| self.foreign.contains(lock);
        let fails = match op {
            Op::Acquire(ask) => foreign(&ask.lock),
            Op::Release(release) => foreign(&release.lock),
            Op::Convert(ask) => foreign(&ask.lock),
            Op::Resize(ask) => foreign(&ask.lock),
            Op::Break(what) => foreign(&what.lock),
            Op::Inspect(lock) => foreign(lock),
            Op::Beat(beats) if plant::on(Bug::BatchFailsWhole) => {
                beats.iter().any(|beat| foreign(&beat.lock))
            }
            Op::Beat(_) | Op::List { .. } | Op::Time | Op::Revoke(_) => false,
        };
        if fails { Err(Failure::Refused(foreign_key())) } else { Ok(()) }
    }
}

fn foreign_key() -> Refusal {
    Refusal {
        kind: RefusalKind::Misconfigured,
        message: "another program uses the lock's key; choose another name".to_owned(),
    }
}

impl Store for RecordStore {
    fn reset(&mut self) {
        self.callers.clear();
        self.records.clear();
        self.replica.clear();
        self.forgotten.clear();
        self.refusing = None;
        self.foreign.clear();
        self.told.clear();
    }

    fn enrol(&mut self, number: u64, polling: bool) {
        let client = ClientId::new(number, "sim").expect("a short label");
        self.callers.push(Caller { client, polling });
    }

    fn execute(
        &mut self,
        now: u64,
        incarnation: usize,
        op: &Op,
        reach: &mut Reach,
    ) -> Result<Reply, Failure> {
        if self.refuses(op) {
            return Err(Failure::Refused(Refusal {
                kind: RefusalKind::Retry,
                message: "the model store refuses for a while; try again".to_owned(),
            }));
        }
        self.check_foreign(op)?;
        self.sweep(now, matches!(op, Op::Inspect(_) | Op::List { .. } | Op::Time), reach);
        self.work += match op {
            Op::Beat(beats) => beats.len() as u64,
            _ => 1,
        };
        let RecordStore { callers, records, foreign, told, .. } = self;
        let caller = &callers[incarnation];
        let body = match op {
            Op::Acquire(ask) => {
                let retention = ask.after.as_ref().map_or(RETENTION, |after| after.retention);
                let state = touch(records, now, &ask.lock, retention, |record| {
                    record.acquire(now, caller, ask, reach)
                });
                let state = state.map_err(Failure::Refused)?;
                if plant::on(Bug::StrayJoinTells) && state.standing == Standing::Granted {
                    told.insert(ask.hold, state.losses);
                }
                Body::Acquire(state)
            }
            Op::Beat(beats) => Body::Beat(
                beats
                    .iter()
                    .map(|beat| {
                        if foreign.contains(&beat.lock) {
                            return Err(foreign_key());
                        }
                        touch(records, now, &beat.lock, RETENTION, |record| {
                            record.beat(now, caller, beat, reach)
                        })
                    })
                    .collect(),
            ),
            Op::Release(release) => {
                let wrong = told.get(&release.hold);
                let wrong = wrong.map(|&losses| Release { losses, ..release.clone() });
                let release = wrong.as_ref().unwrap_or(release);
                Body::Release(touch(records, now, &release.lock, release.retention, |record| {
                    record.release(now, release, reach)
                }))
            }
            Op::Inspect(lock) => Body::Inspect(
                records.iter().find(|it| it.name == *lock).map(|it| it.record.inspect(now, lock)),
            ),
            Op::List { prefix, limit } => {
                let names = records.iter().map(|it| &it.name);
                let names = names.filter(|name| name.as_str().starts_with(prefix.as_str()));
                Body::List(names.take(*limit).cloned().collect())
            }
            Op::Convert(ask) => {
                let state = touch(records, now, &ask.lock, RETENTION, |record| {
                    record.convert(now, caller, ask, reach)
                });
                Body::Convert(state.map_err(Failure::Refused)?)
            }
            Op::Resize(ask) => {
                let resized = touch(records, now, &ask.lock, RETENTION, |record| {
                    record.resize(now, ask, reach)
                });
                Body::Resize(resized.map_err(Failure::Refused)?)
            }
            Op::Break(what) => Body::Break(touch(records, now, &what.lock, RETENTION, |record| {
                record.break_lock(now, what, reach)
            })),
            Op::Revoke(_) => Body::Revoke(false),
            Op::Time => Body::Time,
        };
        Ok(Reply { now, body })
    }

    /// A record is one thing to read and write, however many wait for it.
    fn work(&mut self) -> u64 {
        std::mem::take(&mut self.work)
    }

    fn wipe(&mut self) {
        self.records.clear();
        self.replica.clear();
    }

    fn evict(&mut self, lock: &Name) {
        self.records.retain(|it| it.name != *lock);
    }

    fn snapshot(&mut self) {
        self.replica.clone_from(&self.records);
    }

    fn rollback(&mut self) {
        self.records.clone_from(&self.replica);
    }

    fn foreign(&mut self, lock: &Name, queue: Option<bool>) {
        self.foreign.retain(|name| name != lock);
        self.evict(lock);
        if queue.is_some() {
            self.foreign.push(lock.clone());
        }
    }

    fn forgotten(&mut self) -> Vec<Name> {
        std::mem::take(&mut self.forgotten)
    }

    fn refuse(&mut self, how: Option<Refusing>) {
        self.refusing = how;
    }
}
