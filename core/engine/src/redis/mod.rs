//! The Redis dialect: which script, keys and arguments a request becomes, and what a reply means.
//! No I/O: the transport lives in its own crate, and the simulator runs the same scripts.
//!
//! The layout of the keys, the scripts' arguments and replies and the messages are described in
//! `docs/protocol.md`.

mod birth;
pub mod cluster;
mod codec;
mod decode;
mod encode;
mod error;
mod key;
mod layout;
mod list;
mod node;
mod push;
mod script;
pub mod sentinel;
pub mod session;
pub mod sync;
mod value;
mod wide;
mod words;

#[cfg(test)]
mod tests;

pub use birth::{Birth, Charter, run_of};
pub use codec::{Codec, Command, Inbox};
pub use layout::decode_record;
pub use list::{ListStep, Listing};
pub use node::Node;
pub use script::Script;
pub use value::Value;
pub use wide::Wide;
pub use words::Words;
