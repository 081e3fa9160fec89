//! The fenced ledgers: whatever happens to exclusion, no update is lost behind the check.

use crate::clock::Instant;
use crate::ledger::{Entry, Ledger};

/// One ledger for each lock.
#[derive(Debug)]
pub(crate) struct Fence {
    ledgers: Vec<Ledger>,
    excused: Vec<bool>,
    pub clobbered: Option<String>,
    /// The same where nothing can be told any more.
    pub forgiven: bool,
}

impl Fence {
    pub fn new(locks: usize) -> Fence {
        Fence {
            ledgers: vec![Ledger::default(); locks],
            excused: vec![false; locks],
            clobbered: None,
            forgiven: false,
        }
    }

    /// Tokens went back by the stated double fault: a ledger can tell nothing any more.
    pub fn excuse(&mut self, lock: usize) {
        self.excused[lock] = true;
    }

    pub fn is_excused(&self, lock: usize) -> bool {
        self.excused[lock]
    }

    pub fn read(&mut self, lock: usize, token: u64) -> Option<u64> {
        self.ledgers[lock].read(token)
    }

    /// A reader's look, beside others.
    pub fn look(&mut self, lock: usize, token: u64) -> Option<u64> {
        self.ledgers[lock].look(token)
    }

    /// Whether the latest write was another's than that of this token.
    pub fn is_anothers(&self, lock: usize, token: u64) -> bool {
        self.ledgers[lock].writer() != token
    }

    pub fn version(&self, lock: usize) -> u64 {
        self.ledgers[lock].version()
    }

    pub fn write(&mut self, at: Instant, lock: usize, token: u64, seen: u64) -> Entry {
        let entry = self.ledgers[lock].write(token, seen);
        self.forgiven |= entry == Entry::Clobbered && self.excused[lock];
        if entry == Entry::Clobbered && !self.excused[lock] {
            self.clobbered = Some(format!(
                "lock {lock}: the ledger took a write of {token} at {at} over a newer version"
            ));
        }
        entry
    }
}
