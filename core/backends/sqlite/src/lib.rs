//! The SQLite store of Fencelock: locks that the processes of one machine share through a file.
//!
//! No server. Each client has one thread, which owns a connection, executes the client's requests
//! in short transactions, and watches the file while the client waits or holds. The rules are
//! [`fencelock_engine::store::Record`], the same that the memory store runs.

mod batch;
mod clock;
mod culprit;
mod fault;
mod file;
mod fork;
mod news;
mod options;
mod peers;
mod queue;
mod rows;
mod schema;
mod store;
mod sweep;
mod transport;
mod watch;
mod worker;

#[cfg(test)]
mod tests;

pub use options::{Options, Synchronous};
pub use transport::{CAPABILITIES, SqliteTransport, open};
