//! Tests that need no server.

mod connect;
mod doubt;
mod encode;
mod resp;
mod secrets;
mod survey;
mod url;
