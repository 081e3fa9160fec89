//! Ports that nobody uses.

use std::io;
use std::net::TcpListener;

/// A port that was free a moment ago.
///
/// # Errors
/// When the system gives none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
