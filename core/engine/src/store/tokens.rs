//! Token blocks: reserved with a grant, topped up by renewals, given back by a release.

use crate::options::TOKEN_BLOCK;
use crate::store::record::Record;

impl Record {
    /// The first token of the next tenure.
    ///
    /// An absent counter may have been lost with tokens given out: then a whole block is left out,
    /// since the clock passed everything but what was reserved last.
    pub(super) fn first_token(&self, now: u64, floor: u64) -> u64 {
        if self.last == 0 {
            now.max(floor) + TOKEN_BLOCK
        } else {
            (self.last + 1).max(now).max(floor + 1)
        }
    }

    /// Starts a tenure at `first`, with its block.
    pub(super) fn reserve(&mut self, first: u64) {
        self.token = first;
        self.last = first + TOKEN_BLOCK - 1;
    }

    /// Makes room for a block above what was used; never lowers the end that was told before.
    pub(super) fn top_up(&mut self, now: u64, used: u64) {
        self.last = self.last.max(now).max(used + TOKEN_BLOCK);
    }

    /// Ends a tenure that used tokens up to `used`.
    pub(super) fn give_back(&mut self, used: u64) {
        self.last = self.token.max(used);
    }
}
