//! Several servers that know nothing of each other, and clients that keep locks on most of them: the engine
//! and the machine that ship, [`fencelock_engine::quorum`], before models of the servers.

mod client;
mod faults;
mod net;
mod server;
mod truth;
mod world;

pub use world::{Outcome, run};
