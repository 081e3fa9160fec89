//! Which server is the master, as Sentinels say it, without I/O. A host moves the bytes.
//!
//! [`Machine`] keeps a conversation with each Sentinel: it hears of a switch at once where it may
//! subscribe, asks each of them now and then, and all of them when a connection is to be made.

mod line;
mod machine;
mod report;
mod votes;

#[cfg(test)]
mod tests;

pub use machine::{Input, Machine, Output, Terms};
