//! Waiting on a thread of Python: without its lock, and with an ear for Ctrl-C.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fencelock_support::{Acquiring, Error, ErrorKind, Hold, Releasing, Result};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::convert::given;

/// How often a wait on the main thread looks whether a signal has arrived.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// The thread that gets Python's signals, as Python numbers threads.
static MAIN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static MINE: Cell<u64> = const { Cell::new(0) };
}

/// Whether this is the thread that gets Python's signals. Runs no code of Python's.
pub(crate) fn on_main_thread(py: Python<'_>) -> bool {
    static IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if MINE.get() == 0 {
        let ask =
            || -> PyResult<u64> { IDENT.import(py, "_thread", "get_ident")?.call0()?.extract() };
        MINE.set(ask().unwrap_or(u64::MAX));
    }
    MINE.get() == MAIN.load(Ordering::Relaxed)
}

/// Says which thread gets Python's signals; in a forked child it is another one.
#[pyfunction]
pub(crate) fn set_main_thread(ident: u64) {
    MAIN.store(ident, Ordering::Relaxed);
}

/// Whether this is the interpreter that the process began with.
#[pyfunction]
#[allow(unsafe_code)]
pub(crate) fn in_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: the thread is attached to an interpreter, so there is a current one, and its id is
    // only read.
    unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) == 0 }
}

/// Asks for signals; keeps what their handler raised.
fn look(raised: &mut Option<PyErr>) -> bool {
    match Python::attach(|py| py.check_signals()) {
        Ok(()) => false,
        Err(error) => {
            *raised = Some(error);
            true
        }
    }
}

/// Waits for a hold. The outer error is what a signal's handler raised.
pub(crate) fn acquire(py: Python<'_>, waiting: Acquiring) -> PyResult<Result<Hold>> {
    if !on_main_thread(py) {
        return Ok(py.detach(|| waiting.wait()));
    }
    let mut raised = None;
    let ended = py.detach(|| waiting.wait_unless(LOOK, || look(&mut raised)));
    match raised {
        // What was granted at the same moment is given back.
        Some(error) => Err(error),
        None => Ok(ended),
    }
}

/// Waits for the end of a call. On the main thread it is `start` that begins it, in such a way that
/// it can be left; elsewhere `block` does it.
pub(crate) fn call<T: Send + 'static>(
    py: Python<'_>,
    block: impl FnOnce() -> Result<T> + Send,
    start: impl FnOnce(Box<dyn FnOnce(Result<T>) + Send>) -> Result<()> + Send,
) -> PyResult<T> {
    if !on_main_thread(py) {
        let ended = py.detach(block);
        return given(py, ended);
    }
    let mut raised = None;
    let ended = py.detach(|| {
        let slot = Arc::new((Mutex::new(None), Condvar::new()));
        let theirs = slot.clone();
        let done = move |result| {
            *theirs.0.lock() = Some(result);
            theirs.1.notify_one();
        };
        start(Box::new(done))?;
        let mut result = slot.0.lock();
        loop {
            if let Some(result) = result.take() {
                return result;
            }
            if slot.1.wait_for(&mut result, LOOK).timed_out()
                && parking_lot::MutexGuard::unlocked(&mut result, || look(&mut raised))
            {
                return Err(Error::new(ErrorKind::Cancelled, "a signal's handler raised"));
            }
        }
    });
    match raised {
        Some(error) => Err(error),
        None => given(py, ended),
    }
}

/// Waits for a release. The outer error is what a signal's handler raised: the release goes on.
pub(crate) fn release(py: Python<'_>, releasing: Releasing) -> PyResult<Result<()>> {
    if !on_main_thread(py) {
        return Ok(py.detach(|| releasing.wait()));
    }
    let mut raised = None;
    let ended = py.detach(|| releasing.wait_unless(LOOK, || look(&mut raised)));
    match raised {
        Some(error) => Err(error),
        None => Ok(ended),
    }
}
