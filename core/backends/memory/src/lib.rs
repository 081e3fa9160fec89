//! The memory store of Fencelock: locks that the clients of one process share.
//!
//! No server, no thread and no file: a request is executed by the thread that flushes it. The
//! rules are [`fencelock_engine::store::Record`], the same that the SQLite store runs.

mod clock;
mod inbox;
mod options;
mod records;
mod store;
mod transport;

#[cfg(test)]
mod tests;

pub use options::Options;
pub use transport::{CAPABILITIES, MemoryTransport, open};
