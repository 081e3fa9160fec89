//! What was found in a history.

/// What a history that keeps its promises has in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Acquisitions that were asked for.
    pub asked: usize,
    /// Those that were granted.
    pub grants: usize,
    /// Holds whose holder was told that they are lost.
    pub lost: usize,
    /// Holds that ended with their process.
    pub killed: usize,
    /// Grants that said that the previous holder was lost.
    pub abandoned: usize,
    /// Pairs of holds of different owners that were in together, as readers and permits may.
    pub together: usize,
    /// Conversions of holds, from a reader to a writer or the other way.
    pub converted: usize,
    /// Pairs of holds that a fault beyond the promise let overlap, as it may.
    pub excused: usize,
    /// Pairs of tokens that the double fault put out of order, as it may.
    pub doubled: usize,
    /// Writes and reads that the ledger refused.
    pub refused_writes: usize,
    /// How late, in microseconds after the end of its trust, a process that ran was told at worst.
    pub latest_word: u64,
}
