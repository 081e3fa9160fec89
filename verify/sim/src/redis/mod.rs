//! A model of one Redis server: it runs the shipped Lua scripts over a modelled keyspace.

mod keyspace;
mod lua;
mod model;
mod sorted;

pub use keyspace::{Hash, Keyspace, Stored};
pub use model::{ModelRedis, Published};
pub use sorted::Sorted;
