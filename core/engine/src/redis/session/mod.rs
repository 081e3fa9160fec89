//! The conversation with one Redis server, without I/O: what is said first, and what it answers. A
//! host moves the bytes.

mod greeting;
mod incoming;
mod login;
mod pack;
mod refusal;
mod resp;

#[cfg(test)]
mod tests;

pub use greeting::{Greeted, Greeting, Purpose, refuse, time};
pub use incoming::Incoming;
pub use login::{Login, Protocol};
pub use pack::{command, words};
pub use refusal::{NoSession, classify};
pub use resp::{Frame, Garbage, Parsed, parse};
