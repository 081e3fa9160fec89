//! Real servers and a fault proxy for the tests of Fencelock. Never shipped.
//!
//! Servers are real processes: [`RedisServer`] finds the binary in `REDIS_SERVER` or in the path,
//! [`RedisSentinels`] runs a master, replicas and Sentinels by it, [`RedisCluster`] a cluster of six,
//! [`RedisQuorum`] servers that know nothing of each other,
//! and [`ZooKeeper`] runs the jars of Debian's package or of `ZOOKEEPER_CLASSPATH`; both end with
//! the test process whatever happens to that. [`Proxy`] stands between a client and a server and
//! loses, delays or cuts what passes; [`Network`] is a network of its own, whose cables can be cut.

mod acl;
mod certs;
pub mod children;
mod curator;
pub mod driver;
mod folder;
mod fork;
mod four_letters;
pub mod modes;
mod netns;
mod orders;
mod port;
mod proxy;
pub mod recorder;
mod redis_builder;
mod redis_cluster;
mod redis_quorum;
mod redis_sentinels;
mod redis_server;
mod wait;
mod zookeeper;
mod zookeeper_builder;

#[cfg(test)]
mod tests;

pub use acl::{documented_acl, team_acl};
pub use certs::Certificates;
pub use curator::{curator, lasting_curator};
pub use driver::Driver;
pub use fork::in_child;
pub use four_letters::Role;
pub use netns::{Host, Network};
pub use orders::orders;
pub use port::free_port;
pub use proxy::{Counts, Fault, Proxy};
pub use redis_builder::RedisBuilder;
pub use redis_cluster::{ClusterBuilder, RedisCluster};
pub use redis_quorum::{QuorumBuilder, RedisQuorum};
pub use redis_sentinels::{RedisSentinels, SentinelsBuilder};
pub use redis_server::RedisServer;
pub use wait::{eventually, leave_out, skip_servers};
pub use zookeeper::ZooKeeper;
pub use zookeeper_builder::{Place, ZooKeeperBuilder};
