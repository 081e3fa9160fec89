//! Tests that need no server.

mod connect;
mod encode;
mod resp;
mod secrets;
mod url;
