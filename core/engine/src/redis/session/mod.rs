//! The conversation with one Redis server, without I/O. A host moves the bytes.
//!
//! [`Machine`] says when a connection is made, and when another, and makes it ready by [`Greeting`];
//! [`Asked`] has what is asked on it after that, and [`Hearing`] hears the answers and pushes.

mod asked;
mod attempt;
mod backoff;
mod channels;
mod greeting;
mod hearing;
mod incoming;
mod login;
mod machine;
mod outbox;
mod pack;
mod refusal;
mod resp;

#[cfg(test)]
pub(in crate::redis) mod tests;

pub use asked::{Asked, Awaited};
pub(super) use backoff::Backoff;
pub use greeting::{Greeted, Greeting, Purpose, refuse, time};
pub use hearing::{Guarded, Heard, Hearing};
pub use incoming::Incoming;
pub use login::{Login, Protocol};
pub use machine::{Input, Machine, Note, Output, Server, Session, Terms, Wire};
pub use outbox::Outbox;
pub use pack::{command, words};
pub use refusal::NoSession;
pub use resp::{Frame, Garbage, Parsed, parse};
