//! Windows of tries, each on a lock of its own, checked for linearizability.
//!
//! In a window everybody tries to get the lock and releases it, a few times. Leases are longer than
//! the window, so that a lock is free only when it was released. The tags of window 7 begin with
//! `w7.`. The tries of a window may be to read, or for permits; who holds may be converted from a reader to
//! a writer, or the other way, and a semaphore may be given another number of permits.

use std::collections::BTreeMap;

use order::{Answer, Call, Operation};

use crate::check::Mode;
use crate::record::Record;

mod order;

/// More operations without an answer than this may explain anything.
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

/// What a try is at the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tries {
    /// One step: it is refused by those who hold, and by nobody else.
    AtOnce,
    /// It stands in line for a moment, as where the line is one of nodes, which are made before it is known
    /// who is first. So one may be refused by another that is under way and does not go with it, and that may be
    /// refused, too.
    InLine,
}

/// Judges all windows of a history; gives those that cannot be put in an order, too.
pub fn judge(records: &[Record], tries: Tries) -> (Windows, Vec<String>) {
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
        } else if history.is_linearizable(tries) {
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
    let done = records.iter().filter(|it| it.is_fault()).any(&mut touches);
    // One that has not ended yet reaches to the end.
    done || begun.is_some_and(|begun| begun <= to)
}

/// The operations of a window, in the order of their beginnings.
#[derive(Default)]
struct Operations {
    calls: Vec<Call>,
    /// How many operations were answered.
    count: usize,
    unanswered: usize,
}

impl Operations {
    fn read(records: &[&Record]) -> Operations {
        let mut read = Operations::default();
        // Each actor does one thing after the other: what it has begun, as a place in `calls`.
        let mut running: BTreeMap<&str, usize> = BTreeMap::new();
        let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
        let mut modes: Vec<Mode> = Vec::new();
        for (at, record) in records.iter().enumerate() {
            let number = holds.len();
            let hold = *holds.entry(&record.tag).or_insert(number);
            if hold == modes.len() {
                modes.push(Mode::read(record.get("mode")));
            }
            let (who, mode) = (&*record.who, modes[hold]);
            let kind = record.get("kind");
            match record.event.as_str() {
                "asked" => {
                    let index = read.begins(at, Operation::Try(hold), mode);
                    read.calls[index].adopts = record.get("adopt") == Some("yes");
                    running.insert(who, index);
                }
                "resize-asked" => {
                    let resize = Operation::Resize(record.number("of"));
                    running.insert(who, read.begins(at, resize, mode));
                }
                "resized" => {
                    let used = record.get("used") == Some("yes");
                    read.ends(at, running.remove(who), Answer::Resized { used });
                }
                "release-asked" => {
                    running.insert(who, read.begins(at, Operation::Release(hold), mode));
                }
                "downgrade-asked" => {
                    running.insert(who, read.begins(at, Operation::Convert(hold), Mode::Shared));
                }
                "upgrade-asked" => {
                    running.insert(who, read.begins(at, Operation::Convert(hold), Mode::Exclusive));
                }
                "converted" => read.ends(at, running.remove(who), Answer::Converted),
                "unconverted" if kind == Some("contended") => {
                    read.ends(at, running.remove(who), Answer::Contended);
                }
                "unconverted" => {
                    // It may have been, and is then undone: either way its holder reads at the end.
                    running.remove(who);
                    read.unanswered += 1;
                    read.begins(at, Operation::Convert(hold), Mode::Shared);
                }
                "granted" => read.ends(at, running.remove(who), Answer::Granted),
                "released" => read.ends(at, running.remove(who), Answer::Released),
                "failed" => {
                    let call = running.remove(who);
                    let operation = call.map(|call| read.calls[call].operation);
                    let resizes = matches!(operation, Some(Operation::Resize(_)));
                    let semaphore = resizes || matches!(mode, Mode::Permits { .. });
                    match kind.and_then(|kind| refusal(kind, semaphore)) {
                        Some(_) if resizes => read.ends(at, call, Answer::Contended),
                        Some(refused) => read.ends(at, call, refused),
                        None if resizes => read.unanswered += 1,
                        None => {
                            // It may have been granted, and is then taken back, both at some time.
                            read.unanswered += 1;
                            read.begins(at, Operation::Release(hold), mode);
                        }
                    }
                }
                "unreleased" => {
                    running.remove(who);
                    read.unanswered += 1;
                }
                _ => {}
            }
        }
        read.unanswered += running.len();
        read
    }

    fn begins(&mut self, from: usize, operation: Operation, mode: Mode) -> usize {
        self.calls.push(Call { operation, mode, adopts: false, from, answer: None });
        self.calls.len() - 1
    }

    fn ends(&mut self, at: usize, call: Option<usize>, answer: Answer) {
        let Some(call) = call else {
            debug_assert!(false, "an answer to nothing, at {at}");
            return;
        };
        self.calls[call].answer = Some((at, answer));
        self.count += 1;
    }

    fn is_linearizable(&self, tries: Tries) -> bool {
        order::exists(&self.calls, tries)
    }
}

/// What is known to have come to nothing, by the kind of its failure.
fn refusal(kind: &str, semaphore: bool) -> Option<Answer> {
    match kind {
        "contended" => Some(Answer::Contended),
        "misconfigured" if semaphore => Some(Answer::OtherNumber),
        "invalid_argument" if semaphore => Some(Answer::TooMany),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
