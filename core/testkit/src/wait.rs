//! Waiting for a condition.

use std::time::{Duration, Instant};

/// Looks at `condition` every few milliseconds until it gives something.
///
/// # Panics
/// After 30 seconds, naming `what` was awaited.
pub fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(30), "waited 30 s in vain for: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether tests that need a server are to be left out: only when `FENCELOCK_SKIP_SERVERS=1` says
/// so. A missing server is otherwise a failure.
pub fn skip_servers() -> bool {
    let skip = std::env::var("FENCELOCK_SKIP_SERVERS").is_ok_and(|value| value == "1");
    if skip {
        eprintln!("left out: FENCELOCK_SKIP_SERVERS=1");
    }
    skip
}
