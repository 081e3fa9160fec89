//! Grants that replicas confirm, without I/O: what is asked on a connection of its own, since WAIT holds up
//! whatever comes behind it, and what becomes of the answers.
//!
//! [`Terms`] say how many replicas are to confirm; [`Confirming`] gathers requests while a WAIT is out, and
//! asks them together, with one WAIT behind them.

mod batch;
mod confirming;
mod terms;
mod topology;

#[cfg(test)]
mod tests;

pub use batch::{grants, judge};
pub use confirming::Confirming;
pub use terms::{Naming, Replicas, Terms};
pub use topology::{Question, named_in_cluster, named_in_role};
