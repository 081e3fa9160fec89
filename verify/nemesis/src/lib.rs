//! Real processes, real servers, real faults: the promises of Fencelock put to the test.
//!
//! An [`Actor`] is a client in a process of its own, which can be killed, stopped and lied to about
//! the time. What all actors say, and what is done to them, goes into one [`History`], which
//! [`fencelock_history::check`] judges. The tests stage one fault each; the `nemesis` command mixes them by a seed.

mod actor;
mod clock;
mod dice;
mod history;
mod ledger;
mod role;
pub mod run;
mod shim;
pub mod timeline;

pub use actor::Actor;
pub use clock::{boot, monotonic, wall};
pub use dice::Dice;
pub use fencelock_history::{Record, check};
pub use history::{History, LIMIT};
pub use ledger::Ledger;
pub use role::Role;
pub use shim::{Shim, WrongClock};
