//! The client's shell under a model checker: its own sources over loom's primitives.
//!
//! Included from the client: the listener in which completions arrive, and the role at which blocking
//! callers pass on the role of driver. The [`scene`] around them follows the client's driver, with
//! a store that answers when it is driven.

mod sync;

#[allow(dead_code)]
#[path = "../../../core/client/src/listener.rs"]
mod listener;
#[allow(dead_code)]
#[path = "../../../core/client/src/blocking/role.rs"]
mod role;

pub mod explore;
pub mod handover;
pub mod scene;
mod unpark;

pub use explore::explore;
