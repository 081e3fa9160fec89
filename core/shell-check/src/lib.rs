//! The client's shell under a model checker: its own sources over loom's primitives.
//!
//! Included from the client: the cell in which completions arrive, and the desk at which blocking
//! callers pass on the role of driver. The [`room`] around them follows the client's driver, with
//! a store that answers when it is driven.

mod sync;

#[allow(dead_code)]
#[path = "../../client/src/cell.rs"]
mod cell;
#[allow(dead_code)]
#[path = "../../client/src/blocking/desk.rs"]
mod desk;

pub mod explore;
pub mod handover;
pub mod room;
mod unpark;

pub use explore::explore;
