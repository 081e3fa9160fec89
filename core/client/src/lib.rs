//! Distributed locks with fencing tokens, fair hand-off and watchdogs.
//!
//! A [`Client`] talks to one store: a Redis server, a ZooKeeper ensemble, a SQLite file that the
//! processes of one machine share, or this process's memory. A [`Lock`] is a name on that store. Acquiring it gives a
//! [`Guard`], which renews itself until it is released or dropped, and which tells its holder at
//! once when it is lost.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), fencelock::Error> {
//! use fencelock::Client;
//!
//! let client = Client::connect("memory:").await?;
//! let lock = client.lock("stock/coupon-7")?;
//!
//! let guard = lock.acquire().await?;
//! // Send the token along with every write; let the resource refuse a smaller one than it has seen.
//! println!("held under token {}", guard.token());
//! guard.release().await?;
//!
//! client.close().await;
//! # Ok(()) }
//! ```
//!
//! # Stores
//! | URL | store | feature |
//! | --- | --- | --- |
//! | `memory:` or `memory:name` | this process | `memory` |
//! | `sqlite:path/to/file` | the processes of one machine | `sqlite` |
//! | `redis://`, `rediss://`, `redis+unix://` (also `valkey…`) | a Redis server | `redis` |
//! | `zk://host1,host2/chroot`, `zks://` | a ZooKeeper ensemble, in Apache Curator's layout | `zookeeper`, for TLS `zookeeper-tls` |
//!
//! # Owners and re-entry
//! A lock is re-entrant for its owner: by default the task (async), outside a task the thread, and
//! in [`blocking`] the thread. Branches of one task (`join!`, `select!`) are one owner and do not
//! exclude each other: give each an owner of its own with [`Lock::non_reentrant`]. An explicit
//! owner ([`Lock::owner`]) re-enters from any task, process or language.
//!
//! # Readers and permits
//! A [`RwLock`] is held by many readers or by one writer, a [`Semaphore`] by as many as it has permits.
//! Both give the same [`Guard`], and wait in the same fair queue. Readers re-enter as above; permits have no
//! owner. On ZooKeeper there are no semaphores yet ([`Capabilities::permits`]).
//!
//! # Runtimes
//! The async API needs a tokio runtime with I/O and time enabled; the client's background work
//! lives on the runtime in which it was connected. When that ends the client is closed: its calls, from
//! whichever runtime, end with [`ErrorKind::Closed`], and its holds are lost; at the store they last for
//! the rest of their lease. So each `#[tokio::test]`, which has a runtime of its own, connects a client of
//! its own. [`blocking`] brings its own runtime. A guard may be dropped anywhere, also outside a runtime.
//!
//! # Fork
//! A child made by `fork` has none of its parent's holds. There, the parent's clients answer
//! [`ErrorKind::Closed`], its guards are not valid, and neither touches the parent's connection:
//! connect again in the child. The parent's own holds are not disturbed. As with every library that
//! has threads, fork while no other thread is in the middle of a call.

#[cfg(not(any(feature = "memory", feature = "sqlite", feature = "redis", feature = "zookeeper")))]
compile_error!(
    "fencelock needs a store: turn on one of the features memory, sqlite, redis, zookeeper"
);

mod alarm;
mod begun;
mod bell;
mod builder;
mod cancel;
mod client;
mod clock;
mod connect;
mod converting;
mod effects;
mod errors;
pub mod fork;
mod guard;
mod handle;
mod hold_events;
mod listener;
mod lock;
mod lock_ref;
mod metrics;
mod open;
mod outcome;
mod owner;
mod owner_holds;
mod reentry;
mod releasing;
mod rw_lock;
mod semaphore;
mod shared;
mod sigterm;
mod survey;
mod sync;
mod terms;
mod ticket;
mod uncancelled;
mod url;
mod wait;

pub mod blocking;
pub mod cork;

/// What only the Redis store has: its own options, logins, and a survey of a server for operators.
#[cfg(feature = "redis")]
pub mod redis {
    pub use fencelock_redis::{
        Address, Cluster, Credentials, CredentialsFuture, Finding, Login, Node, Options, Protocol,
        Quorum, QuorumStatus, Replica, Replicas, Sentinel, SentinelSurvey, Severity, Standing,
        Survey, Tls, Voter, survey,
    };

    pub use crate::survey::{quorum_init, quorum_status};
}

/// What only the ZooKeeper store has: its own options.
#[cfg(feature = "zookeeper")]
pub mod zookeeper {
    pub use fencelock_zookeeper::{Acl, Login, Options, Recipe, Tls};
}

pub use builder::Builder;
pub use cancel::CancelToken;
pub use client::Client;
pub use fencelock_engine::finding::{Finding, Severity};
pub use fencelock_engine::hold::LossReason;
pub use fencelock_engine::reply::{Abandoned, Broken, HoldInfo, LockInfo, WaiterInfo};
pub use fencelock_engine::request::Mode;
pub use fencelock_engine::text;
pub use fencelock_engine::transport::Capabilities;
pub use fencelock_engine::{Error, ErrorKind, HoldId, Name, OwnerId, Token};
pub use guard::Guard;
pub use hold_events::{Lost, Wanted};
pub use lock::Lock;
pub use metrics::{Bucket, Histogram, Metrics, ServerMetrics};
pub use rw_lock::RwLock;
pub use semaphore::Semaphore;
pub use survey::survey;
pub use ticket::Ticket;
pub use url::StoreUrl;

/// What every fallible call gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;
