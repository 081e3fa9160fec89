//! A Redis Cluster, without I/O: which slot a name is in, which server has the slot, and what follows when
//! a server says that another one has it. A host asks the servers, connects to them and moves the bytes.

mod fetching;
mod machine;
mod map;
mod redirect;
mod slot;
mod topology;

#[cfg(test)]
mod tests;

pub use machine::{Input, Machine, Output, Terms};
pub use redirect::{Redirect, Redirected, is_suspect};
pub use slot::{SLOTS, place};
pub use topology::{QUESTIONS, Range, Topology};
