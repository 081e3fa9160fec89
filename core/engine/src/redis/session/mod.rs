//! The conversation with one Redis server, without I/O. A host moves the bytes.
//!
//! [`Greeting`] says the first words on a connection; [`Asked`] has what is asked after them, and
//! [`Hearing`] hears the answers and pushes.

mod asked;
mod greeting;
mod hearing;
mod incoming;
mod login;
mod outbox;
mod pack;
mod refusal;
mod resp;

#[cfg(test)]
mod tests;

pub use asked::{Asked, Awaited};
pub use greeting::{Greeted, Greeting, Purpose, refuse, time};
pub use hearing::{Guarded, Heard, Hearing};
pub use incoming::Incoming;
pub use login::{Login, Protocol};
pub use outbox::Outbox;
pub use pack::{command, words};
pub use refusal::{NoSession, classify};
pub use resp::{Frame, Garbage, Parsed, parse};
