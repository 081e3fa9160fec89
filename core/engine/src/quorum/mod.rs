//! A lock kept by most of N servers that know nothing of each other, without I/O.
//!
//! [`Machine`] stands between an [`Engine`](crate::Engine) and as many single servers: it takes the engine's
//! requests and what each server says ([`Input`]), and gives requests to servers and events to the engine
//! ([`Output`]). It knows of no store's dialect: a server is whatever answers the engine's requests by the
//! rules of [`store`](crate::store), and gives no vote while its memory is too young.
//!
//! A hold is a *vote* of each of at least [`Config::quorum`] servers: a hold at that server, under an id of
//! its own. One server, the *arbiter*, has the queue: nobody is granted the lock without its vote.

mod acquire;
mod ask;
mod batch;
mod config;
mod machine;
mod merge;
mod query;
mod refusal;
mod seat;
mod server;
mod stray;
mod vote;
mod wire;

#[cfg(test)]
mod tests;

pub use config::Config;
pub use machine::Machine;
pub use wire::{Input, Output};
