//! Fencelock's C ABI. `include/fencelock.h` is generated from this crate, and is its documentation.
//!
//! Conventions, kept throughout: a function returns a [`fencelock_status`]; what it gives goes
//! through out parameters; its last parameter takes the error as an object. A handle is looked up in
//! a table (`handle`) and never read through; every body runs inside `boundary`, which no panic
//! leaves; a structure begins with its size, so that it can grow.

// What pointers must be is said once, in the header.
#![allow(unsafe_code, clippy::missing_safety_doc)]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a handle has 64 bits, and travels as a pointer");

// In the order in which the header has them; blank lines keep it.
mod boundary;
mod error_object;
mod failure;
mod handle;
mod hold_object;
mod kinds;
mod sized;
mod span;
mod status;

mod version;

mod error;

mod string;

mod text;

mod connect;

mod client;

mod lock;

mod acquire;

mod rwlock;

mod semaphore;

mod hold;

mod convert;

mod enter;

mod cancel;

mod admin;
mod names;

mod inspection;

mod completion;

mod callback;
mod operation;

pub use acquire::*;
pub use admin::*;
pub use callback::*;
pub use cancel::*;
pub use client::*;
pub use completion::*;
pub use connect::*;
pub use convert::*;
pub use enter::*;
pub use error::*;
pub use hold::*;
pub use inspection::*;
pub use kinds::*;
pub use lock::*;
pub use names::*;
pub use operation::*;
pub use rwlock::*;
pub use semaphore::*;
pub use status::*;
pub use string::*;
pub use text::*;
pub use version::*;
