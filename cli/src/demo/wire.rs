//! What the demo and its processes tell each other: JSON, one value on a line.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First: what to do.
    Setup(Setup),
    /// The sale is open: begin.
    Begin,
    /// The parked worker may go on.
    GoOn,
}

/// What a process sells, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// Which of the processes this is, from 0.
    pub process: u32,
    /// How many processes there are.
    pub processes: u32,
    /// How many workers each has.
    pub workers: u32,
    /// The shop's file.
    pub shop: PathBuf,
    /// How many people come.
    pub people: u32,
    /// Which customers come in which order, and how long each sale takes.
    pub seed: u64,
    /// The lock; none in the scene without.
    pub lock: Option<LockSetup>,
    /// Whether the ledger refuses tokens that are too old.
    pub checked: bool,
    /// The first worker of all processes that reads so much stock or less stands still there,
    /// inside its critical section.
    pub park_at: Option<i64>,
}

/// Which lock, and how it is held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LockSetup {
    /// The store's URL.
    pub store: String,
    /// The lock's name.
    pub name: String,
    /// The lease, in milliseconds.
    pub lease_ms: u64,
    /// The lease of a hold given by hand-off until its holder is heard from, in milliseconds.
    pub claim_ms: u64,
}

/// What a process tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// Set up, waiting for [`Order::Begin`].
    Ready,
    /// A worker has been through its critical section.
    Visit(Visit),
    /// A worker stands still inside its critical section, until [`Order::GoOn`].
    Parked(Parked),
    /// The parked worker went on and wrote.
    Woke(Woke),
    /// Every worker has seen the end of the sale.
    Finished,
    /// It cannot go on.
    Failed(String),
}

/// One passage through the critical section. Times are microseconds of the machine's clock, which
/// is the same in every process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Which worker of the process.
    pub worker: u32,
    /// The fencing token; none without a lock.
    pub token: Option<u64>,
    /// What the lock said of the holder before.
    pub abandoned: Abandoned,
    /// When the worker asked for the lock.
    pub asked: u64,
    /// When it had the lock.
    pub got: u64,
    /// When it let the lock go.
    pub left: u64,
    /// What came of it.
    pub deed: Deed,
}

/// Whether the previous holder was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abandoned {
    /// It released, or there was none.
    No,
    /// It was lost.
    Yes,
    /// Nobody knows.
    Unknown,
}

/// What came of a visit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A coupon was sold.
    Sold,
    /// The customer has one already.
    HasOne,
    /// Nothing was left, or the window had closed.
    Over,
    /// The ledger had seen a later token.
    Refused,
    /// The lock was lost before the write, and the worker saw it in time.
    Withdrew,
}

/// Where a worker stands still.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    /// Which worker of the process.
    pub worker: u32,
    /// Its token.
    pub token: u64,
    /// The stock that it has read and will write back, less one.
    pub stock: i64,
    /// When it had the lock.
    pub got: u64,
}

/// What the parked worker did afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woke {
    /// Its token.
    pub token: u64,
    /// The guard said that the lock was lost.
    pub lost: bool,
    /// When it wrote.
    pub at: u64,
    /// What the ledger said.
    pub written: Written,
}

/// What the ledger says to a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Written {
    /// It is written; the stock was so much just before, and is so much now.
    Done {
        /// Before.
        was: i64,
        /// Now.
        is: i64,
    },
    /// A later token was there.
    Refused {
        /// The highest token seen.
        highest: u64,
    },
}
