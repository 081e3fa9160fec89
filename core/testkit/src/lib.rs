//! Real servers and a fault proxy for the tests of Fencelock. Never shipped.
//!
//! Servers are real processes: [`RedisServer`] finds the binary in `REDIS_SERVER` or in the path,
//! and ends with the test process whatever happens to that. [`Proxy`] stands between a client and
//! a server and loses, delays or cuts what passes.

mod acl;
mod certs;
pub mod children;
pub mod desk;
mod folder;
mod port;
mod proxy;
mod redis_builder;
mod redis_server;
mod wait;

#[cfg(test)]
mod tests;

pub use acl::documented_acl;
pub use certs::Certificates;
pub use port::free_port;
pub use proxy::{Counts, Fault, Proxy};
pub use redis_builder::RedisBuilder;
pub use redis_server::RedisServer;
pub use wait::{eventually, skip_servers};
