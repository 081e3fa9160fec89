//! Tests that need no server.

mod encode;
mod resp;
mod url;
