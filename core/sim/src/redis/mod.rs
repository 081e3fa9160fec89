//! A model of one Redis server: it runs the shipped Lua scripts over a modelled keyspace.

mod keyspace;
mod lua;
mod model;

pub use keyspace::{Hash, Keyspace, Stored};
pub use model::{ModelRedis, Published};
