//! The same locks for threads, without async.
//!
//! A caller that waits for a store drives the connection from its own thread when nobody else
//! does, so that a lone caller pays no thread switch; a background thread takes over when callers
//! are away, for renewals and hand-offs. The owner of a hold is the thread.
//!
//! These calls block: do not use them in async code. A caller inside a runtime is served all the
//! same, but it holds up the runtime's thread.
//!
//! ```
//! use fencelock::blocking::Client;
//!
//! let client = Client::connect("memory:")?;
//! let lock = client.lock("stock/coupon-7")?;
//! {
//!     let guard = lock.acquire()?;
//!     println!("held under token {}", guard.token());
//! } // released
//! client.close();
//! # Ok::<(), fencelock::Error>(())
//! ```

mod begun;
mod client;
mod role;
// Declared here, since the role's own source is compiled elsewhere as well.
mod driver;
mod guard;
#[cfg(unix)]
mod host_loop;
mod lock;
mod park;
mod releasing;
#[cfg(test)]
#[path = "role/tests.rs"]
mod role_tests;
mod rw_lock;
mod semaphore;
mod sigpipe;

pub use begun::{Acquiring, Begun};
pub use client::Client;
pub use guard::Guard;
#[cfg(unix)]
pub use host_loop::{HostLoop, Hosted};
pub use lock::Lock;
pub use releasing::Releasing;
pub use rw_lock::RwLock;
pub use semaphore::Semaphore;

pub use crate::owner::thread_number;

pub(crate) use driver::Driver;
pub(crate) use park::Interrupt;
