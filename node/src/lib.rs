//! The native half of the npm package `fencelock`.
//!
//! It converts types and nothing else. `lib/` in TypeScript gives it the shape that users see; what
//! is exported here is private to that layer.
//!
//! A call has a number, which the TypeScript layer gives it. It either ends at once, and then its
//! `Outcome` is returned, or later on the client's own thread, which puts the outcome into the
//! environment's `Inbox` and wakes the event loop.

mod client;
mod environment;
mod inbox;
mod info;
mod metrics;
mod options;
mod outcome;
mod session;
mod slot;

pub use environment::{ErrorRow, error_table};
