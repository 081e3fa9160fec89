//! Servers that take over from each other, Sentinels that say so, sooner or later, and a client that follows
//! them: the machines that ship, [`fencelock_engine::redis::sentinel`] and the session's, before models of
//! both. What clients lock is not in it; that is the other worlds'.

mod cast;
mod client;
mod world;

pub(crate) use cast::{address, server_at};
pub use world::{Outcome, run};
