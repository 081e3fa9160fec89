//! A Redis Cluster and its clients: what ships of it, the engine with a lane for each server, the keeper of
//! the map ([`fencelock_engine::redis::cluster`]) and the machines of each connection, before servers that run
//! the shipped scripts, each with its own clock, and that answer as real ones do while slots move and replicas
//! take over.

mod caller;
mod client;
mod fault;
mod judge;
mod lane;
mod node;
mod scene;
mod shape;
mod table;
mod wire;
mod world;

pub use scene::Scene;
pub use table::table;
pub use world::{Outcome, run};
