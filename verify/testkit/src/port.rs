//! Ports that nobody uses.

use std::io;
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// A port that was free a moment ago.
///
/// # Errors
/// When the system gives none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// So many different ports that were free a moment ago, and that the system gives to nobody by
/// itself: a server that is started again finds its own still free, and a client that tries a dead
/// server's port again and again never meets itself there.
///
/// # Errors
/// When there are not so many.
pub(crate) fn steady_ports(count: usize) -> io::Result<Vec<u16>> {
    const FIRST: u32 = 10_000;
    const SPAN: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(97);
    let mut open = Vec::new();
    for _ in 0..SPAN {
        let at = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % SPAN;
        let port = u16::try_from(FIRST + at).map_err(io::Error::other)?;
        open.extend(TcpListener::bind(("127.0.0.1", port)).ok());
        if open.len() == count {
            return open.iter().map(|it| Ok(it.local_addr()?.port())).collect();
        }
    }
    Err(io::Error::other(format!("there are no {count} free ports below {}", FIRST + SPAN)))
}
