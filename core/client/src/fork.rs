//! Knowing that the process is a forked child, which has none of its parent's threads.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first process and this one, counted from the first [`watch`]. May be
/// asked in a signal handler.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins to count, and gives the count: for what is made in this process and is of no use in a child.
/// Unlike the process' number it is never given twice.
#[cfg(unix)]
#[allow(unsafe_code)]
pub fn watch() -> u32 {
    use std::sync::Once;
    static ONCE: Once = Once::new();
    extern "C" fn in_child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
    }
    ONCE.call_once(|| {
        // SAFETY: the handler only adds to an atomic, which is safe in a child of a process with
        // threads; it lives as long as the process. Failure (no memory) costs the check only.
        unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
        }
    });
    generation()
}

/// There is no fork here.
#[cfg(not(unix))]
pub fn watch() -> u32 {
    generation()
}
