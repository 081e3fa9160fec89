//! What every binding of Fencelock to another language needs once.
//!
//! A binding converts types and nothing else: it has no retry, no renewal, no timeout. What it
//! needs besides the client itself is here: one [`Client`] for blocking and asynchronous calls,
//! [`Operation`] to run an asynchronous call without a runtime and to cancel it, [`CancelToken`] for
//! calls that block, [`Dispatcher`] for hosts that have no loop of their own to deliver to, [`cork`]
//! and `HostLoop` for hosts that have one, [`ConnectOptions`] by name, and the table of [`errors`].
//!
//! ```
//! use std::sync::mpsc;
//! use fencelock_support::{Client, ConnectOptions, Owner, Patience};
//!
//! let client = Client::connect("memory:", ConnectOptions::default())?;
//! let lock = client.lock("stock/coupon-7")?.owner(Owner::Local(7));
//! let (told, ended) = mpsc::channel();
//! lock.acquire_async(Patience::Forever, move |hold| told.send(hold).unwrap());
//! let hold = ended.recv().unwrap()?;
//! assert!(hold.is_valid());
//! hold.release()?;
//! # Ok::<(), fencelock_support::Error>(())
//! ```

mod broken;
mod cancel;
mod client;
mod dispatcher;
mod entries;
pub mod errors;
mod hold;
mod lock;
mod operation;
mod options;
mod rw_lock;
mod semaphore;

pub use broken::Broken;
pub use cancel::CancelToken;
pub use client::Client;
pub use dispatcher::Dispatcher;
pub use entries::{Depth, Entries, EntryKey};
pub use fencelock::blocking::Releasing;
#[cfg(unix)]
pub use fencelock::blocking::{HostLoop, Hosted};
pub use fencelock::{
    Abandoned, Capabilities, Error, ErrorKind, HoldInfo, LockInfo, LossReason, Metrics, Mode,
    OwnerId, Result, WaiterInfo,
};
pub use fencelock::{cork, fork};
pub use hold::Hold;
pub use lock::{Acquiring, Begun, Lock, Owner, Patience};
pub use operation::Operation;
pub use options::{ConnectOptions, OptionValue};
pub use rw_lock::RwLock;
pub use semaphore::Semaphore;

#[cfg(test)]
mod tests;
