//! What Fencelock costs, each figure beside its raw floor, measured in turn in the same run.
//!
//! A [`Case`] has a side of ours and one or more floors. The program `fencelock-bench` runs them in
//! rounds and prints ratios; the benches of criterion run the same cases.

pub mod bare;
pub mod case;
pub mod compare;
pub mod confirmed;
pub mod cost;
pub mod deployments;
pub mod driver;
pub mod gauge;
pub mod handoff;
pub mod local;
pub mod machine;
pub mod pair;
pub mod peer;
pub mod queue;
pub mod report;
pub mod rivals;
pub mod stats;
pub mod waiters;
pub mod watchdog;
mod weight;
pub mod zookeeper;

pub use case::{Aim, Case, Plan, Side};

/// Whatever went wrong; a benchmark has no more to say about it.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What every step gives.
pub type Result<T, E = Failed> = std::result::Result<T, E>;
