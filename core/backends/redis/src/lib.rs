//! The Redis store of Fencelock: one connection to one server, made anew by itself when it breaks, or
//! when Sentinels say that another server is the master; of a cluster, one to each of its masters; of a
//! quorum, one to each server.
//!
//! [`open`] gives a [`RedisTransport`]; [`Options`] says where the server is and how to log in;
//! [`survey`] tells an operator what a server is like and what to mend. What is said over the
//! connection is decided elsewhere, in [`fencelock_engine::redis`].

mod clock;
mod cluster;
mod cluster_findings;
mod connect;
mod conversation;
mod credentials;
mod handshake;
mod link;
mod listing;
mod lookup;
mod options;
mod pump;
mod quiet;
mod quorum;
mod quorum_findings;
mod quorum_status;
mod sentinel_findings;
mod sentinel_url;
mod sentinels;
mod servers_url;
mod session;
mod shared;
mod survey;
mod survey_cluster;
mod survey_findings;
mod survey_sentinels;
mod sync;
mod takeover_findings;
mod tls;
mod transport;
mod url;
mod word;

#[cfg(test)]
mod tests;

pub use credentials::{Credentials, CredentialsFuture};
pub use fencelock_engine::redis::Node;
pub use fencelock_engine::redis::session::{Login, Protocol};
pub use fencelock_engine::redis::sync::Replicas;
pub use options::{Address, Cluster, Options, Quorum, Sentinel, Tls};
pub use quorum_findings::findings;
pub use quorum_status::{QuorumStatus, Standing, Voter, quorum_init, quorum_status};
pub use survey::{Finding, Severity, Survey, survey};
pub use survey_cluster::{ClusterSurvey, Member};
pub use survey_sentinels::{Replica, SentinelSurvey};
pub use transport::{CAPABILITIES, RedisTransport, capabilities, longest_lease, open, places};
