//! A model of ZooKeeper: an ensemble, its sessions and watches, the client library, and in the
//! world whoever uses them.

mod bias;
mod curator;
mod ensemble;
mod fault;
mod heed;
mod judge;
mod library;
mod op;
mod plan;
mod pool;
mod scene;
mod server;
mod site;
mod station;
mod tracker;
mod translate;
mod tree;
mod truth;
mod watch;
mod way;

#[cfg(test)]
mod tests;

pub(crate) use bias::ZkBias;
pub use ensemble::{Config, Ensemble, Env, Event as Inner, Message};
pub use fault::{Mend, ZkFault};
pub use library::{Action, Library, Lost, Told};
pub use op::{Answer, Change, Code, Failure, Fired, Mode, Op, SessionId, Stat, Zxid};
pub use plan::ZkPlan;
pub use server::{ConnId, Entry, Origin, Role, Said, Sent, Server};
pub use tree::{CONTAINER, Change as TreeChange, Effect, Node, Tree};

pub(crate) use site::{Happening, Site};
