//! The protected resource: it asks every writer for its token.

use fencelock_engine::plant::{self, Bug};

/// A version counter behind a fencing check. A reader shows its token too, so that a writer never
/// works from what a later holder has changed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    highest: u64,
    version: u64,
    writer: u64,
}

/// What the ledger said to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Written.
    Accepted,
    /// The token is below one that was seen.
    Refused,
    /// Written, over a version that the writer had not seen: an update is lost.
    Clobbered,
}

impl Ledger {
    /// The present version; `None` for a token below the highest seen.
    pub fn read(&mut self, token: u64) -> Option<u64> {
        if token < self.highest {
            return None;
        }
        self.highest = token;
        Some(self.version)
    }

    /// The present version, for a reader beside others: `None` when a writer with a later token has
    /// written. What it saw no earlier writer changes any more.
    pub fn look(&mut self, token: u64) -> Option<u64> {
        if token < self.writer {
            return None;
        }
        self.highest = self.highest.max(token);
        Some(self.version)
    }

    /// The token of the latest writer.
    pub fn writer(&self) -> u64 {
        self.writer
    }

    /// Writes the version after `seen`.
    pub fn write(&mut self, token: u64, seen: u64) -> Entry {
        if token < self.highest && !plant::on(Bug::WriteWithoutToken) {
            return Entry::Refused;
        }
        // Branches of one owner share a token, and do not exclude each other.
        let clobbered = seen != self.version && self.writer != token;
        self.highest = token;
        self.writer = token;
        self.version += 1;
        if clobbered { Entry::Clobbered } else { Entry::Accepted }
    }

    /// The present version, for the holder of `token` that has just written.
    pub fn version(&self) -> u64 {
        self.version
    }
}
