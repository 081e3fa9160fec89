//! The simulator of Fencelock: the real engine over model stores, in one seeded world.

mod check;
mod client;
mod clock;
mod cover;
mod dice;
mod drive;
mod event;
pub mod exhaust;
mod fault;
mod ledger;
mod network;
mod plan;
pub mod planted;
mod queue;
pub mod redis;
mod runner;
mod server;
mod settle;
mod store;
mod trace;
mod turn;
mod world;

pub use check::Violation;
pub use cover::{Cover, Coverage};
pub use fault::{Fault, Memory, Refusing};
pub use plan::{Habits, Hazards, Plan, Profile, StoreKind};
pub use runner::{Runner, Tally};
pub use store::{Reach, RecordStore, RedisStore, Store};
pub use trace::Trace;
pub use world::{Run, World};
