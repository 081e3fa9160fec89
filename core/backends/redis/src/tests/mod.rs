//! Tests that need no server.

mod connect;
mod encode;
mod resp;
mod url;
