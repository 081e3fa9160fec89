//! The rules that a store applies to one lock, as plain data and plain functions.
//!
//! The stores that keep rows or maps ([memory and SQLite](crate::transport::Transport)) run this
//! code; the Redis scripts say the same in Lua and are held to it by comparison.

mod acquire;
mod beat;
mod convert;
mod info;
mod keep;
mod mode;
mod queue;
mod record;
mod refusal;
mod release;
mod resize;
mod settle;
mod tokens;
mod wrong;

#[cfg(test)]
mod tests;

pub use keep::Keep;
pub use mode::MAX_HOLDS;
pub(crate) use mode::other_kind;
pub use queue::Queue;
pub use record::{Announce, Caller, Delivery, Record, StoredHold, StoredWaiter};
pub use refusal::revoke_unsupported;
pub(crate) use refusal::{clock_ahead, mode_unsupported};
