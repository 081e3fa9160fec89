//! Windows of tries, each on a lock of its own, checked for linearizability.
//!
//! In a window everybody tries to get the lock and releases it, a few times. Leases are longer than
//! the window, so that a lock is free only when it was released. The tags of window 7 begin with
//! `w7.`.

use std::collections::BTreeMap;
use std::sync::Arc;

use stateright::semantics::{ConsistencyTester, LinearizabilityTester, SequentialSpec};

use crate::record::{NEMESIS, Record};

/// More operations without an answer than this may explain anything, and take long to look through.
const VAGUE: usize = 3;

/// What the windows of a history show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    /// Windows that are linearizable.
    pub windows: usize,
    /// Their operations.
    pub operations: usize,
    /// Windows in which the store forgot or too much went unanswered, so that they show nothing.
    pub spoiled: usize,
}

/// Judges all windows of a history; gives those that cannot be put in an order, too.
pub fn judge(records: &[Record]) -> (Windows, Vec<String>) {
    let mut outcome = Windows::default();
    let mut broken = Vec::new();
    let mut windows: BTreeMap<usize, Vec<&Record>> = BTreeMap::new();
    for record in records {
        let number = record.tag.strip_prefix('w').and_then(|it| it.split('.').next()?.parse().ok());
        if let Some(number) = number {
            windows.entry(number).or_default().push(record);
        }
    }
    for (number, mut records_of) in windows {
        records_of.sort_by_key(|it| it.at);
        let span = (records_of[0].at, records_of[records_of.len() - 1].at);
        let history = Operations::read(&records_of);
        if forgot(records, span) || history.unanswered > VAGUE {
            outcome.spoiled += 1;
        } else if history.is_linearizable() {
            outcome.windows += 1;
            outcome.operations += history.count;
        } else {
            let shown: Vec<String> = records_of.iter().map(|it| it.to_string()).collect();
            broken.push(format!(
                "linearizability: window {number} cannot be put in an order:\n    {}",
                shown.join("\n    ")
            ));
        }
    }
    (outcome, broken)
}

/// Whether the store broke what a lock rests on within a span.
fn forgot(records: &[Record], (from, to): (u64, u64)) -> bool {
    let mut begun = None;
    let mut touches = |record: &Record| match record.event.as_str() {
        "forgetting" | "leaping" => {
            begun = Some(record.at);
            false
        }
        "forgot" | "leapt" => begun.take().is_some_and(|it| it <= to) && record.at >= from,
        _ => false,
    };
    let done = records.iter().filter(|it| &*it.who == NEMESIS).any(&mut touches);
    // One that has not ended yet reaches to the end.
    done || begun.is_some_and(|begun| begun <= to)
}

/// A lock that is tried, and never expires.
#[derive(Clone, Debug, Default)]
struct TryLock(Option<usize>);

#[derive(Clone, Debug)]
enum Operation {
    Try(usize),
    Release(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Granted,
    Contended,
    Released,
}

impl SequentialSpec for TryLock {
    type Op = Operation;
    type Ret = Answer;

    fn invoke(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Try(who) if self.0.is_none() => {
                self.0 = Some(*who);
                Answer::Granted
            }
            Operation::Try(_) => Answer::Contended,
            Operation::Release(who) => {
                if self.0 == Some(*who) {
                    self.0 = None;
                }
                Answer::Released
            }
        }
    }
}

/// The operations of a window, in the order of their beginnings and ends.
struct Operations {
    tester: LinearizabilityTester<usize, TryLock>,
    count: usize,
    unanswered: usize,
}

impl Operations {
    fn read(records: &[&Record]) -> Operations {
        // Each actor does one thing after the other, until one is not answered: then what it does
        // next is another thread's.
        let mut threads: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut next = 0;
        let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut tester = LinearizabilityTester::new(TryLock::default());
        let (mut count, mut unanswered) = (0, 0);
        let mut fresh = || {
            next += 1;
            next
        };
        let mut pending: BTreeMap<usize, ()> = BTreeMap::new();
        for record in records {
            let thread = *threads.entry(record.who.clone()).or_insert_with(&mut fresh);
            let number = holds.len();
            let hold = *holds.entry(&record.tag).or_insert(number);
            let mut returned = |answer| {
                count += 1;
                pending.remove(&thread);
                tester.on_return(thread, answer).map(drop)
            };
            let read = match record.event.as_str() {
                "asked" => {
                    pending.insert(thread, ());
                    tester.on_invoke(thread, Operation::Try(hold)).map(drop)
                }
                "release-asked" => {
                    pending.insert(thread, ());
                    tester.on_invoke(thread, Operation::Release(hold)).map(drop)
                }
                "granted" => returned(Answer::Granted),
                "released" => returned(Answer::Released),
                "failed" if record.get("kind") == Some("contended") => returned(Answer::Contended),
                "failed" => {
                    // It may have been granted, and is then taken back, both at some time.
                    unanswered += 1;
                    threads.insert(record.who.clone(), fresh());
                    tester.on_invoke(fresh(), Operation::Release(hold)).map(drop)
                }
                "unreleased" => {
                    unanswered += 1;
                    threads.insert(record.who.clone(), fresh());
                    Ok(())
                }
                _ => Ok(()),
            };
            if let Err(wrong) = read {
                debug_assert!(false, "{wrong}");
            }
        }
        Operations { tester, count, unanswered: unanswered + pending.len() }
    }

    fn is_linearizable(&self) -> bool {
        self.tester.is_consistent()
    }
}

#[cfg(test)]
mod tests;
