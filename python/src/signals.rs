//! Waiting on a thread of Python: without its lock, and with an ear for Ctrl-C.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use fencelock_support::{Acquiring, Error, ErrorKind, Hold, Releasing, Result};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;

use crate::convert::given;

/// How often a wait on the main thread looks whether a signal has arrived.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

thread_local! {
    static MAIN: Cell<Option<bool>> = const { Cell::new(None) };
}

/// Whether this is the thread that gets Python's signals.
pub(crate) fn on_main_thread(py: Python<'_>) -> bool {
    if let Some(known) = MAIN.get() {
        return known;
    }
    let ask = || -> PyResult<bool> {
        let threading = py.import("threading")?;
        // Not `current_thread`, which makes an object for a thread that Python has not begun.
        let me: u64 = threading.call_method0("get_ident")?.extract()?;
        let main: u64 = threading.call_method0("main_thread")?.getattr("ident")?.extract()?;
        Ok(me == main)
    };
    let answer = ask().unwrap_or(false);
    MAIN.set(Some(answer));
    answer
}

/// Whether this is the interpreter that the process began with.
#[pyfunction]
#[allow(unsafe_code)]
pub(crate) fn in_main_interpreter(_py: Python<'_>) -> bool {
    // SAFETY: the thread is attached to an interpreter, so there is a current one, and its id is
    // only read.
    unsafe { pyo3::ffi::PyInterpreterState_GetID(pyo3::ffi::PyInterpreterState_Get()) == 0 }
}

/// Called in a forked child: the thread that forked is the main one now.
#[pyfunction]
pub(crate) fn after_fork() {
    MAIN.set(None);
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
