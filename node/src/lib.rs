//! The native half of the npm package `fencelock`.
//!
//! It converts types and nothing else. `lib/` in TypeScript gives it the shape that users see; what
//! is exported here is private to that layer.
//!
//! A call has a number, which the TypeScript layer gives it. It either ends at once, and then its
//! outcome is returned, or later, and then the outcome goes through the environment's `Inbox`: from
//! whichever thread drives the connection. That is the event loop itself where it can be (the module
//! `host`), and otherwise the client's own thread, which wakes the event loop.

mod client;
mod environment;
mod host;
mod inbox;
mod info;
mod metrics;
mod options;
mod outcome;
#[cfg(unix)]
mod poll;
mod session;
mod slot;

pub use environment::{ErrorRow, error_table};
