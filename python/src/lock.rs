//! A lock.

use std::sync::Arc;

use fencelock_support::{
    Begun, Depth, Entries, EntryKey, Error, ErrorKind, Mode, Owner, OwnerId, Patience, Result,
};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::client::Client;
use crate::convert::{given, maybe_duration, patience, refused, text};
use crate::errors::{invalid, raised};
use crate::hold::{self, Held, Hold};
use crate::mailbox::Mailbox;
use crate::mode;
use crate::named::{self, Kept, Locks, Named};
use crate::operation::{Value, start};
use crate::signals;

/// What the locks of threads, greenlets and tasks have in common.
#[pyclass(frozen, subclass, weakref, module = "fencelock")]
pub(crate) struct BaseLock {
    lock: fencelock_support::Lock,
    /// The owner is the thread, greenlet or task.
    ambient: bool,
    /// Who acquired must release; otherwise anybody may.
    per_owner: bool,
    /// Acquiring again changes nothing but a count.
    counts: bool,
    raise_on_lost: bool,
    named: Named,
}

#[pymethods]
impl BaseLock {
    #[new]
    #[pyo3(signature = (client, name, *, lease=None, max_hold=None, owner=None, reentrant=true, raise_on_lost=true, mode=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn py_new(
        client: &Bound<'_, Client>,
        #[pyo3(from_py_with = text)] name: String,
        lease: Option<&Bound<'_, PyAny>>,
        max_hold: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyString>>,
        reentrant: bool,
        raise_on_lost: bool,
        mode: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<BaseLock> {
        let py = client.py();
        let (mode, adopt) = mode::mode(mode)?;
        let mut lock = given(py, mode::lock_in(&client.get().0, &name, mode, adopt))?;
        let mut ambient = false;
        let by = match (owner, reentrant) {
            (Some(_), false) => {
                return Err(invalid(
                    py,
                    "an explicit owner is re-entrant: leave one of the two out",
                ));
            }
            (Some(owner), true) => {
                let owner = text(owner)?;
                lock = lock.owner(Owner::Explicit(given(py, OwnerId::new(&owner))?));
                named::Owner::Explicit(owner)
            }
            (None, false) => {
                lock = lock.owner(Owner::Fresh);
                named::Owner::Anybody
            }
            (None, true) => {
                ambient = true;
                named::Owner::Ambient
            }
        };
        let mut counts = ambient;
        if let Some(lease) = maybe_duration("lease", lease)? {
            lock = lock.lease(lease);
            counts = false;
        }
        if let Some(ceiling) = maybe_duration("max_hold", max_hold)? {
            lock = lock.max_hold(ceiling);
            counts = false;
        }
        let named = Named { name, owner: by, mode };
        Ok(BaseLock { lock, ambient, per_owner: reentrant, counts, raise_on_lost, named })
    }

    /// The lock's name.
    #[getter]
    pub(crate) fn name(&self) -> &str {
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

    /// How it is taken: `exclusive`, `shared` or `permits`.
    #[doc(hidden)]
    #[getter]
    fn mode(&self) -> &'static str {
        mode::named(self.named.mode)
    }

    /// Whether anybody holds it through this client.
    #[doc(hidden)]
    fn is_held(&self) -> bool {
        self.lock.is_held()
    }

    #[doc(hidden)]
    fn acquire_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        owner: u64,
        blocking: bool,
        timeout: Option<f64>,
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
            "this thread or task does not hold it by `acquire` or `with`"
        } else {
            "it is not held by `acquire` or `with`"
        };
        let side = if self.named.mode == Mode::Shared { "the read side of " } else { "" };
        let text = format!("cannot release {side}the lock {:?}: {why}", self.lock.name());
        Error::new(ErrorKind::NotHeld, text)
    }
}

/// A lock: a `threading.RLock` across machines, or a `threading.Lock` with `reentrant=False`.
///
/// From `Client.lock`. One object may be used by many threads, and all objects of one client that
/// have the same name and kind of owner are the same lock: what one acquires another releases, and
/// what was acquired stays held when its object is collected. A side of a `RWLock` is one, too.
///
/// >>> import fencelock
/// >>> client = fencelock.connect("memory:")
/// >>> lock = client.lock("cache/rebuild")
/// >>> with lock as hold:
/// ...     print(lock.locked(), hold.valid)
/// True True
#[pyclass(frozen, extends = BaseLock, subclass, weakref, module = "fencelock")]
pub(crate) struct Lock {
    entries: Arc<Entries<Kept>>,
    locks: Arc<Locks>,
    named: Named,
    client: fencelock_support::Client,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // In a forked child another thread, which is not there, may have the mutex.
        if !self.client.is_closed() {
            self.locks.leave(&self.named, &self.entries);
        }
    }
}

/// What `threading.Condition` keeps of a lock while it waits: how often it was held, and whether by
/// `acquire`.
type Saved = Vec<(u64, bool)>;

#[pymethods]
impl Lock {
    #[new]
    #[pyo3(signature = (client, name, *, lease=None, max_hold=None, owner=None, reentrant=true, raise_on_lost=true, mode=None))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn py_new(
        client: &Bound<'_, Client>,
        #[pyo3(from_py_with = text)] name: String,
        lease: Option<&Bound<'_, PyAny>>,
        max_hold: Option<&Bound<'_, PyAny>>,
        owner: Option<&Bound<'_, PyString>>,
        reentrant: bool,
        raise_on_lost: bool,
        mode: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyClassInitializer<Lock>> {
        let base =
            BaseLock::py_new(client, name, lease, max_hold, owner, reentrant, raise_on_lost, mode)?;
        let client = client.get();
        let lock = Lock {
            entries: client.1.get(&base.named),
            locks: client.1.clone(),
            named: base.named.clone(),
            client: client.0.clone(),
        };
        Ok(PyClassInitializer::from(base).add_subclass(lock))
    }

    /// Acquire the lock; returns whether it was acquired.
    ///
    /// Waits as long as it takes, or for `timeout` seconds, or with `blocking=False` not at all. A
    /// timeout of -1, None or infinity is none.
    /// The wait lets other threads run and ends at once with Ctrl-C. The owner acquires again
    /// without waiting, and releases as often.
    ///
    /// Raises:
    ///     UnavailableError: The store could not be asked within the timeout, or within the request
    ///         timeout with `blocking=False`. Without a timeout an outage is waited out.
    ///     WouldDeadlockError: The owner reads the lock already, and this would wait for it to end.
    ///     InvalidArgumentError: The arguments contradict each other, or the timeout is negative.
    ///     MisconfiguredError, ClosedError: As everywhere.
    #[pyo3(signature = (blocking=true, timeout=Some(-1.0)), text_signature = "($self, /, blocking=True, timeout=-1.0)")]
    fn acquire(slf: &Bound<'_, Self>, blocking: bool, timeout: Option<f64>) -> PyResult<bool> {
        let patience = patience(slf.py(), blocking, timeout)?;
        let (key, entries) = (Lock::key(slf), slf.get().entries());
        let counts = slf.as_super().get().counts;
        if counts && entries.again(key).is_some() {
            return Ok(true);
        }
        match Lock::wait(slf, patience)? {
            Ok(held) => {
                let entered = match counts {
                    true => entries.first(key, Kept(held)),
                    false => entries.apart(key, Kept(held)),
                };
                given(slf.py(), entered.map(|()| true))
            }
            Err(error) if refused(&error) => Ok(false),
            Err(error) => Err(raised(slf.py(), &error)),
        }
    }

    /// Release the latest hold that this thread has of this lock, by `acquire` or `with`.
    ///
    /// Raises:
    ///     NotHeldError: There is none (a `RuntimeError`, as for `threading.RLock`).
    ///     LostError: The hold had ended before: what was done under it may have overlapped.
    ///     UnavailableError: The store did not answer; the release goes on in the background.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let Some(last) = Lock::leave(slf)? else { return Ok(()) };
        let released = last.release(slf.py())?;
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
    #[pyo3(signature = (blocking=true, timeout=Some(-1.0)), text_signature = "($self, /, blocking=True, timeout=-1.0)")]
    fn hold<'py>(
        slf: &Bound<'py, Self>,
        blocking: bool,
        timeout: Option<f64>,
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

    /// The same as `locked`, under the name that it has for tasks.
    fn locked_anywhere(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Lock::locked(slf)
    }

    /// The latest hold that this thread has by `acquire` or `with`; None without one.
    #[getter]
    fn current<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match slf.get().entries().hold(Lock::key(slf)) {
            Ok(kept) => Ok(Some(hold::for_threads(slf.py(), kept.0)?.into_any())),
            Err(_) => Ok(None),
        }
    }

    /// How many holds this thread has by `acquire` or `with`.
    #[getter]
    fn count(slf: &Bound<'_, Self>) -> u64 {
        slf.get().entries().depth(Lock::key(slf))
    }

    #[doc(hidden)]
    fn _is_owned(slf: &Bound<'_, Self>) -> bool {
        Lock::count(slf) > 0
    }

    /// For `threading.Condition`, which gives the lock up altogether while it waits.
    #[doc(hidden)]
    fn _release_save(slf: &Bound<'_, Self>) -> PyResult<Saved> {
        let holds = slf.get().entries().take(Lock::key(slf));
        if holds.is_empty() {
            return Err(raised(slf.py(), &slf.as_super().get().not_held_error()));
        }
        let saved = holds.iter().map(|(_, depth)| (depth.count, depth.shared)).collect();
        let mut failed = None;
        for (kept, _) in holds.into_iter().rev() {
            // One that fails does not keep the others.
            if let Err(error) = kept.0.release(slf.py())? {
                failed = Some(error);
            }
        }
        given(slf.py(), failed.map_or(Ok(saved), Err))
    }

    #[doc(hidden)]
    fn _acquire_restore(slf: &Bound<'_, Self>, saved: Saved) -> PyResult<()> {
        let key = Lock::key(slf);
        for (count, shared) in saved {
            let held = given(slf.py(), Lock::wait(slf, Patience::Forever)?)?;
            let restored = slf.get().entries.restore(key, Kept(held), Depth { count, shared });
            given(slf.py(), restored)?;
        }
        Ok(())
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let held = given(slf.py(), Lock::wait(slf, Patience::Forever)?)?;
        let hold = hold::for_threads(slf.py(), held.clone())?;
        given(slf.py(), slf.get().entries.apart(Lock::key(slf), Kept(held)))?;
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
        let base = slf.as_super().get();
        match Lock::less(slf) {
            Ok(Some(last)) => last.leave(slf.py(), error),
            Ok(None) => Ok(()),
            Err(failed) => hold::failed(slf.py(), &failed, error, base.raise_on_lost),
        }
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let count = slf.get().entries().total();
        let state = if count > 0 { "locked" } else { "unlocked" };
        let kind = slf.get_type().fully_qualified_name()?;
        let base = slf.as_super().get();
        let side = if base.named.mode == Mode::Shared { " to read" } else { "" };
        let (name, at) = (base.lock.name(), slf.as_ptr());
        Ok(format!("<{state} {kind} object {name:?}{side} count={count} at {at:p}>"))
    }
}

impl Lock {
    /// The locks of its client, and the client.
    pub(crate) fn home(&self) -> (&Arc<Locks>, &fencelock_support::Client) {
        (&self.locks, &self.client)
    }

    fn key(slf: &Bound<'_, Self>) -> EntryKey {
        if slf.as_super().get().per_owner { EntryKey::thread() } else { EntryKey::ANYBODY }
    }

    /// Acquires. The outer error is what a signal's handler raised.
    pub(crate) fn wait(slf: &Bound<'_, Self>, patience: Patience) -> PyResult<Result<Arc<Held>>> {
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

    /// Leaves once; gives the hold that is to be released.
    fn leave(slf: &Bound<'_, Self>) -> PyResult<Option<Arc<Held>>> {
        given(slf.py(), Lock::less(slf))
    }

    fn less(slf: &Bound<'_, Self>) -> Result<Option<Arc<Held>>> {
        match slf.get().entries().less(Lock::key(slf)) {
            Ok(last) => Ok(last.map(|kept| kept.0)),
            Err(error) if error.kind() == ErrorKind::NotHeld => {
                Err(slf.as_super().get().not_held_error())
            }
            Err(error) => Err(error),
        }
    }

    /// What is held, without the holds that were released by themselves.
    fn entries(&self) -> &Entries<Kept> {
        self.entries.retain(|kept| !kept.0.is_released());
        &self.entries
    }
}
