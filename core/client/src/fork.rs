//! Knowing that the process is a forked child.

use std::sync::atomic::{AtomicU32, Ordering};

static GENERATION: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between the first process and this one, counted from the first call. A
/// client remembers it; what finds another number is a child, where the client's connection, mutex
/// and threads are the parent's and must not be touched.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Begins to count. Called before the first client is made.
#[cfg(unix)]
#[allow(unsafe_code)]
pub(crate) fn watch() {
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
}

/// There is no fork here.
#[cfg(not(unix))]
pub(crate) fn watch() {}
