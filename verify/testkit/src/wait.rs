//! Waiting for a condition.

use std::io::Write;
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

/// Says that a test cannot run here, and why. It counts as skipped, when the test then returns.
pub fn leave_out(test: &str, why: &dyn std::fmt::Display) {
    let line = format!("{test}: {why}").replace('\n', " ");
    eprintln!("left out: {line}");
    let Some(file) = std::env::var_os("FENCELOCK_SKIPPED") else { return };
    let file = std::fs::File::options().append(true).create(true).open(file);
    // One write, so that lines of tests that run beside each other stay whole.
    if let Err(error) = file.and_then(|mut it| it.write_all(format!("{line}\n").as_bytes())) {
        eprintln!("FENCELOCK_SKIPPED cannot be written: {error}");
    }
}
