//! What is promised, and whether it was kept.

use std::collections::{BTreeMap, VecDeque};

use fencelock_engine::HoldKey;

use crate::clock::{Instant, MS, SEC};

/// A hold that its caller has.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub slot: usize,
    pub caller: usize,
    pub key: HoldKey,
    /// When it was granted.
    pub since: Instant,
}

/// How a lock's last holder ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    Nobody,
    Released(Instant),
    Lost,
}

/// What is known of one lock.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub holds: Vec<Held>,
    /// The highest token that was delivered.
    pub token: u64,
    /// Which client each was delivered to first.
    pub tokens: BTreeMap<u64, usize>,
    pub last: Last,
    /// When it was granted last.
    pub latest: Instant,
    /// Since when each client stands in the queue, or holds.
    pub places: BTreeMap<usize, Instant>,
    /// Until then what was granted may have been lost by the servers, and may be granted again.
    pub shaken: Instant,
    /// Until then two servers granted it.
    pub doubled: Instant,
    /// Until then its server could not answer as usual, or its slot moved.
    pub disturbed: Instant,
    /// Until then it could not be renewed.
    pub unserved: Instant,
    /// Since when each client asks a server for it that has it no more, and when it did so last.
    pub stale: BTreeMap<usize, (Instant, Instant)>,
}

/// All promises.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    pub books: Vec<Book>,
    /// The first that was broken.
    pub found: Option<String>,
    /// How often each was not kept, and need not have been.
    pub waived: BTreeMap<&'static str, u64>,
    /// How often each was looked at.
    pub looked: BTreeMap<&'static str, u64>,
    fetches: BTreeMap<usize, VecDeque<Instant>>,
    redirects: BTreeMap<usize, VecDeque<Instant>>,
}

/// How long a client may go on asking a server that has a lock no more.
const LATE: Instant = 8 * SEC;
/// How many maps a client may fetch within a second, and how many requests servers may send on.
const FETCHES: usize = 18;
const REDIRECTS: usize = 250;

impl Judge {
    pub fn new(locks: usize) -> Judge {
        let book = Book {
            holds: Vec::new(),
            token: 0,
            tokens: BTreeMap::new(),
            last: Last::Nobody,
            latest: 0,
            places: BTreeMap::new(),
            shaken: 0,
            doubled: 0,
            disturbed: 0,
            unserved: 0,
            stale: BTreeMap::new(),
        };
        Judge {
            books: vec![book; locks],
            found: None,
            waived: BTreeMap::new(),
            looked: BTreeMap::new(),
            fetches: BTreeMap::new(),
            redirects: BTreeMap::new(),
        }
    }

    /// A promise was looked at, and kept; or not.
    pub fn look(
        &mut self,
        check: &'static str,
        kept: bool,
        excused: bool,
        what: impl Fn() -> String,
    ) {
        *self.looked.entry(check).or_default() += 1;
        if kept {
            return;
        }
        if excused {
            *self.waived.entry(check).or_default() += 1;
        } else if self.found.is_none() {
            self.found = Some(format!("{check}: {}", what()));
        }
    }

    /// A client asks a server for a lock; `right` is whether that has it.
    pub fn asked(&mut self, now: Instant, slot: usize, lock: usize, right: bool) {
        let stale = &mut self.books[lock].stale;
        if right {
            stale.remove(&slot);
            return;
        }
        // Who asks for nothing hears nothing; who holds asks each third of its lease.
        let (since, last) = *stale.entry(slot).or_insert((now, now));
        let since = if now - last > 5 * SEC { now } else { since };
        stale.insert(slot, (since, now));
        self.look("lower epoch", now - since <= LATE, false, || {
            format!(
                "c{slot} asks a server for lock {lock} that has it no more, and has done so for {} ms",
                (now - since) / MS
            )
        });
    }

    /// A client fetches a map.
    pub fn fetched(&mut self, now: Instant, slot: usize) {
        let many = within(self.fetches.entry(slot).or_default(), now);
        self.look("fetches", many <= FETCHES, false, || {
            format!("c{slot} fetched {many} maps within a second")
        });
    }

    /// A server sent a client's request on.
    pub fn sent_on(&mut self, now: Instant, slot: usize) {
        let many = within(self.redirects.entry(slot).or_default(), now);
        self.look("redirects", many <= REDIRECTS, false, || {
            format!("{many} requests of c{slot} were sent elsewhere within a second")
        });
    }
}

/// How many there were within a second, with one now.
fn within(times: &mut VecDeque<Instant>, now: Instant) -> usize {
    times.push_back(now);
    while times.front().is_some_and(|at| *at + SEC < now) {
        times.pop_front();
    }
    times.len()
}
