//! The deterministic, I/O-free core of Fencelock.
//!
//! [`Engine`] is one client's state machine: it takes calls and [`Event`]s, each with the caller's
//! clock reading, and gives [`Effect`]s. [`store`] holds the rules that a store applies to one
//! lock, in plain Rust; [`redis`] the same rules as Lua scripts, with their codec; [`zookeeper`] what
//! a client does to keep locks in ZooKeeper, and [`quorum`] what it does to keep them on most of several servers.

#![deny(clippy::unwrap_used, clippy::expect_used)]
// Two bugs that are not planted look like one condition.
#![cfg_attr(not(feature = "plant"), allow(clippy::nonminimal_bool))]

/// Whether a bug is planted here; never, except in the simulator.
#[cfg(feature = "plant")]
macro_rules! planted {
    ($bug:ident) => {
        $crate::plant::on($crate::plant::Bug::$bug)
    };
}
#[cfg(not(feature = "plant"))]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

pub mod error;
pub mod event;
pub mod finding;
pub mod hold;
pub mod id;
pub mod lane;
pub mod name;
pub mod options;
#[cfg(feature = "plant")]
pub mod plant;
pub mod quorum;
pub mod redis;
pub mod reply;
pub mod request;
pub mod secret;
pub mod store;
pub mod text;
pub mod time;
pub mod token;
pub mod transport;
pub mod validity;
pub mod zookeeper;

mod caught;
mod engine;

pub use engine::{Acquired, Ended, Engine};
pub use error::{Error, ErrorKind};
pub use event::{Converted, Effect, Event, Note, Outcome};
pub use hold::{Ask, CallKey, Grant, HoldKey, How, LockKey, LossReason, Owner, Patience};
pub use id::{ClientId, HoldId, OwnerId};
pub use lane::{LaneId, Place};
pub use name::Name;
pub use options::{Keeping, Options};
pub use time::Time;
pub use token::Token;
