//! How often the hard cases were met.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! cases {
    ($($case:ident $text:literal,)*) => {
        /// A case that a run must have met to mean anything.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Case { $($case),* }
        const NAMES: &[&str] = &[$($text),*];
    };
}

cases! {
    Pushed "granted by push",
    Polled "granted by poll",
    Local "handed over locally",
    Reentered "re-entered",
    Lost "a holder was told of a loss",
    Abandoned "granted after an abandoned hold",
    CancelledHeld "cancelled while granted at the store",
    CancelledQueued "cancelled while queued",
    StrayExecuted "a request arrived after its connection had gone",
    Late "a request arrived too late",
    PushFirst "a push overtook the reply before it",
    CutAnswered "a reply was lost",
    GaveUp "a connection was given up",
    Unheard "a push reached nobody",
    Wanted "a holder was told that others wait",
    Extended "a hold was extended",
    Downgraded "a writer reads on",
    Upgraded "a reader writes",
    NotUpgraded "a reader may not write",
    Resized "a semaphore was resized",
    Doomed "a wait for more permits than are left ended",
}

/// Counts of each case, over all paths.
#[derive(Debug)]
pub(super) struct Cover(Vec<AtomicU64>);

impl Cover {
    pub fn new() -> Cover {
        Cover(NAMES.iter().map(|_| AtomicU64::new(0)).collect())
    }

    pub fn met(&self, case: Case) {
        self.0[case as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn rows(&self) -> Vec<(&'static str, u64)> {
        NAMES.iter().zip(&self.0).map(|(name, n)| (*name, n.load(Ordering::Relaxed))).collect()
    }
}
