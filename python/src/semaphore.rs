//! What is taken of a semaphore and given back: here, so that no signal handler comes between a grant and its keeping.

use std::sync::Arc;

use fencelock_support::{Entries, EntryKey, Error, ErrorKind, Mode, Patience};
use pyo3::prelude::*;

use crate::convert::{given, patience, refused};
use crate::errors::raised;
use crate::hold;
use crate::lock::Lock;
use crate::named::{Kept, Locks, Named, Owner};

/// What the semaphores of threads are made of.
#[pyclass(frozen, subclass, weakref, module = "fencelock")]
pub(crate) struct BaseSemaphore {
    /// Takes one permit.
    one: Py<Lock>,
    /// By `acquire`: all objects of a name share it.
    taken: Arc<Entries<Kept>>,
    /// By `with`.
    entered: Entries<Kept>,
    locks: Arc<Locks>,
    named: Named,
    client: fencelock_support::Client,
}

impl Drop for BaseSemaphore {
    fn drop(&mut self) {
        // As a lock's.
        if !self.client.is_closed() {
            self.locks.leave(&self.named, &self.taken);
        }
    }
}

#[pymethods]
impl BaseSemaphore {
    #[new]
    fn py_new(one: &Bound<'_, Lock>) -> BaseSemaphore {
        let (locks, client) = one.get().home();
        // Whatever their numbers, and however many are taken at a time.
        let mode = Mode::Permits { count: 1, of: 1 };
        let name = one.as_super().get().name().to_owned();
        let named = Named { name, owner: Owner::Anybody, mode };
        BaseSemaphore {
            one: one.clone().unbind(),
            taken: locks.get(&named),
            entered: Entries::new(),
            locks: locks.clone(),
            named,
            client: client.clone(),
        }
    }

    /// The semaphore's name.
    #[getter]
    fn name(&self) -> &str {
        &self.named.name
    }

    #[doc(hidden)]
    #[getter]
    fn _one(&self, py: Python<'_>) -> Py<Lock> {
        self.one.clone_ref(py)
    }

    /// Take permits, all of them at once; returns whether they were taken.
    ///
    /// Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all. A
    /// timeout of -1, None or infinity is none. The wait lets other threads run and ends at once
    /// with Ctrl-C.
    ///
    /// Raises:
    ///     InvalidArgumentError: `permits` is not 1 to the semaphore's number, the arguments
    ///         contradict each other, or the timeout is negative.
    ///     MisconfiguredError: Others hold or wait who named another number of permits, or the name
    ///         is a lock's.
    ///     UnavailableError: As for a lock.
    #[pyo3(signature = (blocking=true, timeout=None, permits=None), text_signature = "($self, /, blocking=True, timeout=None, permits=1)")]
    fn acquire(
        slf: &Bound<'_, Self>,
        blocking: bool,
        timeout: Option<f64>,
        permits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let patience = patience(slf.py(), blocking, timeout)?;
        let lock = match permits {
            None => slf.get().one.bind(slf.py()).clone(),
            Some(count) => slf.call_method1("_taking", (count,))?.cast_into::<Lock>()?,
        };
        match Lock::wait(&lock, patience)? {
            Ok(held) => {
                let kept = slf.get().taken.apart(EntryKey::thread(), Kept(held));
                given(slf.py(), kept.map(|()| true))
            }
            Err(error) if refused(&error) => Ok(false),
            Err(error) => Err(raised(slf.py(), &error)),
        }
    }

    /// Give back what this thread's latest `acquire` took, or else the latest of any thread.
    ///
    /// Raises:
    ///     NotHeldError: Nothing is out by `acquire` (a `RuntimeError`).
    ///     LostError: The permits had come back before: more may have been at work than allowed.
    ///     UnavailableError: The store did not answer; the release goes on in the background.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let taken = &slf.get().taken;
        // Those that were released by themselves are not there to be given back.
        taken.retain(|kept| !kept.0.is_released());
        let Some(last) = taken.latest(EntryKey::thread()) else {
            return Err(slf.get().not_held(slf.py()));
        };
        let released = last.0.release(slf.py())?;
        given(slf.py(), released)
    }

    /// Takes a permit and gives the hold.
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let one = slf.get().one.bind(slf.py());
        let held = given(slf.py(), Lock::wait(one, Patience::Forever)?)?;
        let hold = hold::for_threads(slf.py(), held.clone())?;
        given(slf.py(), slf.get().entered.apart(EntryKey::thread(), Kept(held)))?;
        Ok(hold.into_any())
    }

    /// Gives it back. Raises `LostError` when it was lost and the body raised nothing.
    #[pyo3(signature = (kind, error, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, traceback);
        // A `with` may end in another thread than it began in: then the latest of anybody.
        match slf.get().entered.latest(EntryKey::thread()) {
            Some(last) => last.0.leave(slf.py(), error),
            None => Err(slf.get().not_held(slf.py())),
        }
    }
}

impl BaseSemaphore {
    fn not_held(&self, py: Python<'_>) -> PyErr {
        let name = &self.named.name;
        let text = format!("cannot release the semaphore {name:?}: `acquire` has taken no permits");
        raised(py, &Error::new(ErrorKind::NotHeld, text))
    }
}
