//! Locks in ZooKeeper, in Apache Curator's layout, without I/O.
//!
//! [`Machine`] stands between an [`Engine`](crate::Engine) and a ZooKeeper session: it takes the
//! engine's requests and what ZooKeeper says ([`Input`]), and gives calls and events ([`Output`]).

mod acquire;
mod beat;
mod container;
mod lasting;
mod leave;
mod link;
mod machine;
mod name;
mod next;
mod note;
mod options;
mod owner;
mod permits;
mod place;
mod query;
mod refusal;
mod seek;
mod semaphore;
mod session;
mod simple;
mod stray;
mod taking;
mod turn;
mod verdict;
mod vet;
mod walk;
mod wire;

#[cfg(test)]
mod tests;

pub use machine::Machine;
pub use options::{Options, Recipe};
pub use wire::{
    Call, CallId, Change, Input, NodeKind, Output, Stat, ZkError, ZkOp, ZkReply, ZkWrite,
};

use crate::error::{Error, ErrorKind};
use crate::name::Name;

/// Whether a lock of this name can be kept in ZooKeeper.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] when the name is no path of nodes.
pub fn check_name(name: &Name) -> Result<(), Error> {
    match name::path_of("/x", name) {
        Ok(_) => Ok(()),
        Err(refusal) => Err(Error::new(ErrorKind::InvalidArgument, refusal.message)),
    }
}
