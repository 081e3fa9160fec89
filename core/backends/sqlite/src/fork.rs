//! No fork in the middle of SQLite's work.
//!
//! SQLite keeps what it knows of a file's locks once for the process, and a forked child inherits
//! it. Were the process forked while one of its threads is in a transaction, the child would wait
//! for ever for a writer that is not there. So a fork waits until no thread of ours is in SQLite,
//! and none enters it meanwhile. All of it is atomics: a mutex might be inherited locked.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static FORKING: AtomicU32 = AtomicU32::new(0);
static INSIDE: AtomicU32 = AtomicU32::new(0);

/// How often to look whether the other side is done.
const NAP: Duration = Duration::from_micros(50);

/// For how long a fork waits at the most: for a transaction that another process holds up.
const PATIENCE: Duration = Duration::from_secs(10);

/// This thread is in SQLite. Not to be nested.
pub(crate) struct Inside(());

/// Enters, waiting for a fork that is under way.
pub(crate) fn enter() -> Inside {
    watch();
    loop {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if FORKING.load(Ordering::SeqCst) == 0 {
            return Inside(());
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        std::thread::sleep(NAP);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // In a child it may have been taken back already.
        let less = |inside: u32| inside.checked_sub(1);
        let _ = INSIDE.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
    }
}

#[cfg(unix)]
#[allow(unsafe_code)]
fn watch() {
    extern "C" fn before() {
        FORKING.fetch_add(1, Ordering::SeqCst);
        let began = Instant::now();
        while INSIDE.load(Ordering::SeqCst) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(NAP);
        }
    }
    extern "C" fn in_parent() {
        FORKING.fetch_sub(1, Ordering::SeqCst);
    }
    extern "C" fn in_child() {
        // The threads that were counted are the parent's.
        INSIDE.store(0, Ordering::SeqCst);
        FORKING.store(0, Ordering::SeqCst);
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handlers use atomics, the clock and sleep only, which are safe in a child of
        // a process with threads; they live as long as the process. Failure (no memory) costs the
        // waiting only.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
}

/// There is no fork here.
#[cfg(not(unix))]
fn watch() {}
