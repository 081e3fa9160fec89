//! The ZooKeeper store of Fencelock: one session to an ensemble, in Apache Curator's layout.
//!
//! [`open`] gives a [`ZooKeeperTransport`]; [`Options`] says where the servers are and how to log
//! in. What is asked of ZooKeeper is decided elsewhere, in [`fencelock_engine::zookeeper`]; this
//! crate carries it over the `zookeeper-client` crate.

mod backoff;
mod calls;
mod clock;
mod connect;
mod doubts;
mod fork;
mod options;
mod pump;
mod session;
mod shared;
mod survey;
mod survey_findings;
mod survey_server;
#[cfg(feature = "tls")]
mod tls;
mod transport;
mod url;
mod watches;

#[cfg(test)]
mod tests;

pub use fencelock_engine::zookeeper::{Recipe, check_name};
pub use options::{Acl, Auth, Login, Options, Tls};
pub use survey::{Finding, Server, Severity, Survey, Word, survey};
pub use transport::{CAPABILITIES, ZooKeeperTransport, open};
