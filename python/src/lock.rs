//! A lock.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fencelock_support::{Begun, Error, ErrorKind, Owner, OwnerId, Patience, Result};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::client::Client;
use crate::convert::{given, maybe_duration, patience, refused};
use crate::errors::{invalid, raised};
use crate::hold::{self, Held, Hold};
use crate::mailbox::Mailbox;
use crate::operation::{Value, start};
use crate::signals;

/// The key of holds that belong to no thread.
const ANYBODY: u64 = 0;

/// What the locks of threads, greenlets and tasks have in common.
#[pyclass(frozen, subclass, weakref, module = "fencelock")]
pub(crate) struct BaseLock {
    lock: fencelock_support::Lock,
    /// The owner is the thread, greenlet or task.
    ambient: bool,
    /// Who acquired must release; otherwise anybody may.
    per_owner: bool,
    raise_on_lost: bool,
}

#[pymethods]
impl BaseLock {
    #[new]
    #[pyo3(signature = (client, name, *, lease=None, max_hold=None, owner=None, reentrant=true, raise_on_lost=true))]
    fn py_new(
        client: &Bound<'_, Client>,
        name: &str,
        lease: Option<&Bound<'_, PyAny>>,
        max_hold: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyString>>,
        reentrant: bool,
        raise_on_lost: bool,
    ) -> PyResult<BaseLock> {
        let py = client.py();
        let mut lock = given(py, client.get().0.lock(name))?;
        let mut ambient = false;
        match (owner, reentrant) {
            (Some(_), false) => {
                return Err(invalid(
                    py,
                    "an explicit owner is re-entrant: leave one of the two out",
                ));
            }
            (Some(owner), true) => {
                let owner = given(py, OwnerId::new(owner.to_cow()?.as_ref()))?;
                lock = lock.owner(Owner::Explicit(owner));
            }
            (None, false) => lock = lock.owner(Owner::Fresh),
            (None, true) => ambient = true,
        }
        if let Some(lease) = maybe_duration("lease", lease)? {
            lock = lock.lease(lease);
        }
        if let Some(ceiling) = maybe_duration("max_hold", max_hold)? {
            lock = lock.max_hold(ceiling);
        }
        Ok(BaseLock { lock, ambient, per_owner: reentrant, raise_on_lost })
    }

    /// The lock's name.
    #[getter]
    fn name(&self) -> &str {
        self.lock.name()
    }

    #[doc(hidden)]
    #[getter]
    fn per_owner(&self) -> bool {
        self.per_owner
    }

    #[doc(hidden)]
    #[getter]
    fn raise_on_lost(&self) -> bool {
        self.raise_on_lost
    }

    #[doc(hidden)]
    fn acquire_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        owner: u64,
        blocking: bool,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let patience = patience(mailbox.py(), blocking, timeout)?;
        let mut lock = self.lock.clone();
        if self.ambient {
            lock = lock.owner(Owner::Local(owner));
        }
        start(mailbox, |done| {
            Ok(Some(lock.acquire_async(patience, |ended| done.tell(ended.map(Value::Hold)))))
        })
    }

    #[doc(hidden)]
    fn locked_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            Ok(Some(self.lock.is_locked_async(|ended| done.tell(ended.map(Value::Bool)))))
        })
    }

    #[doc(hidden)]
    fn not_held(&self, py: Python<'_>) -> Py<PyAny> {
        raised(py, &self.not_held_error()).into_value(py).into_any()
    }
}

impl BaseLock {
    fn not_held_error(&self) -> Error {
        let why = if self.per_owner {
            "this thread or task does not hold it through this object"
        } else {
            "it is not held through this object"
        };
        let text = format!("cannot release the lock {:?}: {why}", self.lock.name());
        Error::new(ErrorKind::NotHeld, text)
    }
}

/// A lock: a `threading.RLock` across machines, or a `threading.Lock` with `reentrant=False`.
///
/// From `Client.lock`. One object may be used by many threads. A hold that is still in it when it
/// is garbage-collected is released.
///
/// >>> import fencelock
/// >>> client = fencelock.connect("memory:")
/// >>> lock = client.lock("cache/rebuild")
/// >>> with lock as hold:
/// ...     print(lock.locked(), hold.valid)
/// True True
#[pyclass(frozen, extends = BaseLock, subclass, weakref, module = "fencelock")]
pub(crate) struct Lock {
    /// What each thread holds, the latest last.
    holds: Mutex<Vec<(u64, Arc<Held>)>>,
}

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (client, name, *, lease=None, max_hold=None, owner=None, reentrant=true, raise_on_lost=true))]
    fn py_new(
        client: &Bound<'_, Client>,
        name: &str,
        lease: Option<&Bound<'_, PyAny>>,
        max_hold: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyString>>,
        reentrant: bool,
        raise_on_lost: bool,
    ) -> PyResult<PyClassInitializer<Lock>> {
        let base =
            BaseLock::py_new(client, name, lease, max_hold, owner, reentrant, raise_on_lost)?;
        Ok(PyClassInitializer::from(base).add_subclass(Lock { holds: Mutex::default() }))
    }

    /// Acquire the lock; returns whether it was acquired.
    ///
    /// Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all.
    /// The wait lets other threads run and ends at once with Ctrl-C. The owner acquires again
    /// without waiting, and releases as often.
    ///
    /// Raises:
    ///     UnavailableError: The store could not be asked within the timeout, or within the request
    ///         timeout with `blocking=False`. Without a timeout an outage is waited out.
    ///     InvalidArgumentError: The arguments contradict each other.
    ///     MisconfiguredError, ClosedError: As everywhere.
    #[pyo3(signature = (blocking=true, timeout=-1.0), text_signature = "($self, /, blocking=True, timeout=-1.0)")]
    fn acquire(slf: &Bound<'_, Self>, blocking: bool, timeout: f64) -> PyResult<bool> {
        let patience = patience(slf.py(), blocking, timeout)?;
        match Lock::wait(slf, patience)? {
            Ok(held) => {
                Lock::push(slf, held);
                Ok(true)
            }
            Err(error) if refused(&error) => Ok(false),
            Err(error) => Err(raised(slf.py(), &error)),
        }
    }

    /// Release the latest hold that this thread has through this object.
    ///
    /// Raises:
    ///     NotHeldError: There is none (a `RuntimeError`, as for `threading.RLock`).
    ///     LostError: The hold had ended before: what was done under it may have overlapped.
    ///     UnavailableError: The store did not answer; the release goes on in the background.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let released = Lock::pop(slf)?.release(slf.py())?;
        given(slf.py(), released)
    }

    /// Acquire the lock and return the hold, which a `with` releases.
    ///
    /// >>> import fencelock
    /// >>> client = fencelock.connect("memory:")
    /// >>> with client.lock("nightly").hold(timeout=5) as hold:
    /// ...     hold.previous_abandoned is True
    /// False
    ///
    /// Raises:
    ///     ContendedError: With `blocking=False`, when another has the lock.
    ///     TimedOutError: Others had it for `timeout` seconds.
    ///     UnavailableError, ...: As `acquire`.
    #[pyo3(signature = (blocking=true, timeout=-1.0), text_signature = "($self, /, blocking=True, timeout=-1.0)")]
    fn hold<'py>(
        slf: &Bound<'py, Self>,
        blocking: bool,
        timeout: f64,
    ) -> PyResult<Bound<'py, Hold>> {
        let patience = patience(slf.py(), blocking, timeout)?;
        let held = given(slf.py(), Lock::wait(slf, patience)?)?;
        hold::for_threads(slf.py(), held)
    }

    /// Return whether anybody, on any machine, holds the lock, by the store's word.
    ///
    /// Good for display, never for a decision: it may have changed when the answer arrives.
    fn locked(slf: &Bound<'_, Self>) -> PyResult<bool> {
        let lock = &slf.as_super().get().lock;
        let theirs = lock.clone();
        signals::call(
            slf.py(),
            || lock.is_locked(),
            move |done| {
                theirs.is_locked_async(done);
                Ok(())
            },
        )
    }

    /// The latest hold that this thread has through this object; None without one.
    #[getter]
    fn current<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let key = Lock::key(slf);
        let held = {
            let holds = slf.get().holds.lock();
            holds.iter().rev().find(|(owner, _)| *owner == key).map(|(_, held)| held.clone())
        };
        match held {
            Some(held) => Ok(Some(hold::for_threads(slf.py(), held)?.into_any())),
            None => Ok(None),
        }
    }

    /// How many holds this thread has through this object.
    #[getter]
    fn count(slf: &Bound<'_, Self>) -> usize {
        let key = Lock::key(slf);
        slf.get().holds.lock().iter().filter(|(owner, _)| *owner == key).count()
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let held = given(slf.py(), Lock::wait(slf, Patience::Forever)?)?;
        let hold = hold::for_threads(slf.py(), held.clone())?;
        Lock::push(slf, held);
        Ok(hold.into_any())
    }

    #[pyo3(signature = (kind, error, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, traceback);
        Lock::pop(slf)?.leave(slf.py(), error)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let count = slf.get().holds.lock().len();
        let state = if count > 0 { "locked" } else { "unlocked" };
        let kind = slf.get_type().fully_qualified_name()?;
        let name = slf.as_super().get().lock.name();
        Ok(format!("<{state} {kind} object {name:?} count={count} at {:p}>", slf.as_ptr()))
    }
}

impl Lock {
    fn key(slf: &Bound<'_, Self>) -> u64 {
        if slf.as_super().get().per_owner { thread() } else { ANYBODY }
    }

    /// Acquires. The outer error is what a signal's handler raised.
    fn wait(slf: &Bound<'_, Self>, patience: Patience) -> PyResult<Result<Arc<Held>>> {
        let base = slf.as_super().get();
        let hold = match base.lock.begin(patience) {
            Ok(Begun::Granted(hold)) => hold,
            Ok(Begun::Waiting(waiting)) => match signals::acquire(slf.py(), waiting)? {
                Ok(hold) => hold,
                Err(error) => return Ok(Err(error)),
            },
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(Held::new(hold, base.raise_on_lost)))
    }

    fn push(slf: &Bound<'_, Self>, held: Arc<Held>) {
        let key = Lock::key(slf);
        slf.get().holds.lock().push((key, held));
    }

    fn pop(slf: &Bound<'_, Self>) -> PyResult<Arc<Held>> {
        let key = Lock::key(slf);
        let mut holds = slf.get().holds.lock();
        match holds.iter().rposition(|(owner, _)| *owner == key) {
            Some(latest) => Ok(holds.remove(latest).1),
            None => {
                drop(holds);
                Err(raised(slf.py(), &slf.as_super().get().not_held_error()))
            }
        }
    }
}

/// A number of this thread's own.
fn thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(ANYBODY + 1);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(ANYBODY) };
    }
    NUMBER.with(|number| {
        if number.get() == ANYBODY {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
