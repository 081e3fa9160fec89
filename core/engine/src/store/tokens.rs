//! Token blocks: reserved with a grant, topped up by renewals, given back by a release.

use crate::options::TOKEN_BLOCK;
use crate::store::record::Record;

impl Record {
    /// The first token of the next tenure.
    ///
    /// An absent counter may have been lost with tokens given out: then a whole block is left out,
    /// since the clock passed everything but what was reserved last.
    pub(super) fn first_token(&self, now: u64, floor: u64) -> u64 {
        if let Some(first) = self.planted_token(now) {
            first
        } else if self.last == 0 {
            now.max(floor) + TOKEN_BLOCK
        } else {
            (self.last + 1).max(now).max(floor + 1)
        }
    }

    /// Only with a bug that was planted.
    fn planted_token(&self, now: u64) -> Option<u64> {
        let absent = self.last == 0;
        if planted!(TokenOnlyCounts) {
            return Some(self.last.max(now / 4) + 1);
        }
        if absent && planted!(CounterStartsAgain) {
            return Some(1);
        }
        if absent && planted!(BlocksOutrunClock) {
            return Some(now);
        }
        (!absent && planted!(BlockNotReserved)).then_some(self.last + 1)
    }

    /// Starts a tenure at `first`, with its block.
    pub(super) fn reserve(&mut self, first: u64) {
        self.token = first;
        self.last = if planted!(BlockNotReserved) { first } else { first + TOKEN_BLOCK - 1 };
    }

    /// Makes room for a block above what was used; never lowers the end that was told before.
    pub(super) fn top_up(&mut self, now: u64, used: u64) {
        if planted!(BlockNotReserved) {
            self.last = self.last.max(used);
            return;
        }
        let before = if planted!(BlockEndLowered) { 0 } else { self.last };
        self.last = before.max(now).max(used + TOKEN_BLOCK);
    }

    /// Ends a tenure that used tokens up to `used`.
    pub(super) fn give_back(&mut self, used: u64) {
        if !planted!(BlocksOutrunClock) {
            self.last = self.token.max(used);
            self.token = self.last;
        }
    }
}
