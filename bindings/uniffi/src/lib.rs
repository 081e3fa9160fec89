//! Fencelock for Kotlin, Ruby, Swift and Python, by UniFFI.
//!
//! The generated sources are made by `scripts/uniffi generate`; what is documented here is their
//! documentation. Two rules hold for all of it.
//!
//! *What is asynchronous gives nothing that must be freed.* A generated future whose result is ready
//! and is then dropped, because its caller was cancelled, loses the result, and with it a hold that
//! would be renewed for ever. So waiting and fetching are two steps: [`Acquiring::ended`] waits, and
//! [`Acquiring::hold`] fetches.
//!
//! *The host is called on one thread*, that of [`fencelock_support::Dispatcher`]: whatever it does
//! there, the connection goes on.

// UniFFI's macros export functions.
#![allow(unsafe_code)]

mod acquiring;
mod cancel;
mod client;
mod connect;
mod ending;
mod error;
mod hold;
mod info;
mod listener;
mod lock;
mod modes;
mod wake;

pub use acquiring::Acquiring;
pub use cancel::CancelToken;
pub use client::Client;
pub use connect::{ConnectOptions, Connecting, begin_connect, connect};
pub use error::{ErrorFacts, ErrorKind, FencelockError, error_facts};
pub use hold::{Abandoned, Hold};
pub use info::{Broken, Capabilities, HoldInfo, HoldMode, LockInfo, WaiterInfo};
pub use listener::{LossListener, LossReason, WantedListener};
pub use lock::{Lock, LockOptions, Owner};
pub use modes::{RwLock, Semaphore};
pub use wake::wake_by_pipe;

/// The version of the native library.
#[uniffi::export]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

uniffi::setup_scaffolding!("fencelock");

#[cfg(test)]
mod tests;
