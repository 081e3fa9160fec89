//! A hold.

use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use fencelock_support::{Abandoned, Error, ErrorKind, Result};
use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

use crate::convert::{duration, given};
use crate::mailbox::Mailbox;
use crate::mode;
use crate::operation::{Done, Value, start, started};
use crate::signals;
use crate::watch::{Lost, Watch};

/// A hold with what is watched of it.
pub(crate) struct Held {
    hold: fencelock_support::Hold,
    watch: OnceLock<Arc<Watch>>,
    raise_on_lost: bool,
    /// Not in a user's hands yet: nobody is told when it is collected.
    raw: bool,
    /// Somebody asked for its release.
    released: AtomicBool,
}

impl Held {
    pub(crate) fn new(hold: fencelock_support::Hold, raise_on_lost: bool) -> Arc<Held> {
        Held::made(hold, raise_on_lost, false)
    }

    fn made(hold: fencelock_support::Hold, raise_on_lost: bool, raw: bool) -> Arc<Held> {
        let (watch, released) = (OnceLock::new(), AtomicBool::new(false));
        Arc::new(Held { hold, watch, raise_on_lost, raw, released })
    }

    /// Whether its release has begun.
    pub(crate) fn is_released(&self) -> bool {
        self.released.load(Ordering::Relaxed)
    }

    pub(crate) fn hold(&self) -> &fencelock_support::Hold {
        &self.hold
    }

    /// Releases, waiting for the store if need be. The outer error is a signal handler's.
    pub(crate) fn release(&self, py: Python<'_>) -> PyResult<Result<()>> {
        self.released.store(true, Ordering::Relaxed);
        let begun = self.hold.begin_release();
        if begun.is_ok() {
            self.over();
        }
        match begun {
            Ok(Some(releasing)) => signals::release(py, releasing),
            Ok(None) => Ok(Ok(())),
            Err(error) => Ok(Err(error)),
        }
    }

    /// Nothing is to be told of it any more.
    fn over(&self) {
        if let Some(watch) = self.watch.get() {
            watch.release();
        }
    }

    /// At the end of a `with`. That it was released within the body is no error.
    pub(crate) fn leave(&self, py: Python<'_>, body: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        match self.release(py)? {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotHeld => Ok(()),
            Err(error) => failed(py, &error, body, self.raise_on_lost),
        }
    }

    /// What is collected unreleased is released, as a file is closed: not in silence.
    fn complain(&self) {
        if self.raw || self.is_released() || !self.hold.is_valid() {
            return;
        }
        let text = format!(
            "a hold of the {} {:?} (token {}) was collected without a release, and is released \
             now: keep it, or use `with`",
            if self.hold.mode().permits().is_some() { "semaphore" } else { "lock" },
            self.hold.name(),
            self.hold.token()
        );
        let Ok(text) = CString::new(text) else { return };
        // Not at the interpreter's end.
        Python::try_attach(|py| {
            let raised = PyErr::take(py);
            let kind = py.get_type::<PyResourceWarning>();
            if let Err(refused) = PyErr::warn(py, &kind, &text, 1) {
                refused.write_unraisable(py, None);
            }
            if let Some(raised) = raised {
                raised.restore(py);
            }
        });
    }
}

/// Raises at the end of a `with` what must be known of a release that failed.
pub(crate) fn failed(
    py: Python<'_>,
    error: &Error,
    body: Option<&Bound<'_, PyAny>>,
    raise_on_lost: bool,
) -> PyResult<()> {
    let failed = crate::errors::raised(py, error).into_value(py);
    let leave = py.import("fencelock._leave")?.getattr("leave")?;
    leave.call1((failed, body, raise_on_lost))?;
    Ok(())
}

impl Drop for Held {
    fn drop(&mut self) {
        self.over();
        self.complain();
    }
}

/// What the holds of threads, greenlets and tasks have in common.
#[pyclass(frozen, subclass, weakref, module = "fencelock")]
#[derive(Clone)]
pub(crate) struct BaseHold(pub(crate) Arc<Held>);

impl BaseHold {
    pub(crate) fn new(hold: fencelock_support::Hold) -> BaseHold {
        BaseHold(Held::made(hold, true, true))
    }

    pub(crate) fn watch(&self) -> Arc<Watch> {
        let mut is_new = false;
        let watch = self.0.watch.get_or_init(|| {
            is_new = true;
            Arc::default()
        });
        if is_new {
            let told = Arc::downgrade(watch);
            // Weak: the client keeps the callback as long as the hold.
            self.0.hold.on_lost(move |reason| {
                if let Some(watch) = told.upgrade() {
                    watch.lose(reason);
                }
            });
        }
        watch.clone()
    }
}

#[pymethods]
impl BaseHold {
    #[new]
    fn py_new(hold: &Bound<'_, BaseHold>, raise_on_lost: bool) -> BaseHold {
        BaseHold(Held::new(hold.get().0.hold.clone(), raise_on_lost))
    }

    /// The name of the lock.
    #[getter]
    fn name(&self) -> &str {
        self.0.hold.name()
    }

    /// The fencing token: greater than that of every earlier hold of this lock.
    ///
    /// Send it with every write, and let the resource refuse a smaller one than it has seen. One that
    /// reads has a token above every earlier writer's; that of permits fences nothing. `downgrade` and
    /// `try_upgrade` change it.
    #[getter]
    fn token(&self) -> u64 {
        self.0.hold.token()
    }

    /// How the hold shares the lock now: `exclusive`, `shared` or `permits`.
    #[getter]
    fn mode(&self) -> &'static str {
        mode::named(self.0.hold.mode())
    }

    /// Whether the hold can be trusted at this moment. Asks the store nothing.
    #[getter]
    fn valid(&self) -> bool {
        self.0.hold.is_valid()
    }

    /// For how many seconds the hold can be trusted if it is not renewed; 0.0 when it has ended.
    #[getter]
    fn remaining(&self) -> f64 {
        self.0.hold.remaining().as_secs_f64()
    }

    /// Return the token if the hold can be trusted at this moment.
    ///
    /// Raises:
    ///     LostError: The hold has ended.
    fn check(&self, py: Python<'_>) -> PyResult<u64> {
        given(py, self.0.hold.check())
    }

    /// Whether the owner had the lock already when this hold was granted.
    #[getter]
    fn reentry(&self) -> bool {
        self.0.hold.is_reentry()
    }

    /// Whether the previous holder was lost instead of releasing; None when nobody knows.
    ///
    /// If True, what the lock protects may be half done.
    #[getter]
    fn previous_abandoned(&self) -> Option<bool> {
        match self.0.hold.previous_abandoned() {
            Abandoned::Yes => Some(true),
            Abandoned::No => Some(false),
            Abandoned::Unknown => None,
        }
    }

    /// Whether another client waits for the lock, as far as is known.
    #[getter]
    fn wanted(&self) -> bool {
        self.0.hold.is_wanted()
    }

    /// Return a short text with which another thread, process or language goes on with this hold.
    ///
    /// See `Client.attach`. It is no secret, but whoever has it can join the hold.
    ///
    /// Raises:
    ///     InvalidArgumentError: The lock was acquired without an explicit owner.
    fn ticket(&self, py: Python<'_>) -> PyResult<String> {
        given(py, self.0.hold.ticket())
    }

    /// Release in the background, if it is not released yet; never fails.
    fn abandon(&self) {
        self.0.released.store(true, Ordering::Relaxed);
        self.0.over();
        self.0.hold.release_async(|_| {});
    }

    #[doc(hidden)]
    fn release_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        self.0.released.store(true, Ordering::Relaxed);
        self.0.over();
        start(mailbox, |done| {
            Ok(Some(self.0.hold.release_async(|result| done.tell(result.map(|()| Value::Unit)))))
        })
    }

    #[doc(hidden)]
    fn extend_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        lease: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let lease = duration("lease", lease)?;
        start(mailbox, |done| {
            let done = |result: Result<()>| done.tell(result.map(|()| Value::Unit));
            Ok(Some(self.0.hold.extend_async(lease, done)))
        })
    }

    #[doc(hidden)]
    fn downgrade_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |result: Result<()>| done.tell(result.map(|()| Value::Unit));
            Ok(Some(self.0.hold.downgrade_async(done)))
        })
    }

    #[doc(hidden)]
    fn try_upgrade_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |result: Result<()>| done.tell(result.map(|()| Value::Unit));
            Ok(Some(self.0.hold.try_upgrade_async(done)))
        })
    }

    #[doc(hidden)]
    fn lost_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        self.watch().start(mailbox)
    }

    #[doc(hidden)]
    fn wanted_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        started(mailbox, Ok(Value::Lost(None)), |done: Done| {
            self.0.hold.on_wanted(move || done.tell(Ok(Value::Lost(Some("wanted")))));
            Ok(None)
        })
    }

    #[doc(hidden)]
    #[getter]
    fn raise_on_lost(&self) -> bool {
        self.0.raise_on_lost
    }

    #[doc(hidden)]
    #[getter]
    fn released(&self) -> bool {
        self.0.is_released()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let hold = &slf.get().0.hold;
        let valid = if hold.is_valid() { "valid" } else { "ended" };
        let kind = slf.get_type().fully_qualified_name()?;
        Ok(format!("<{kind} of {:?}, token {}, {valid}>", hold.name(), hold.token()))
    }
}

/// A held lock. Leaving its `with` releases it, and so does its garbage collection.
///
/// >>> import fencelock
/// >>> client = fencelock.connect("memory:")
/// >>> with client.lock("account/17").hold(timeout=5) as hold:
/// ...     hold.check() == hold.token
/// True
#[pyclass(frozen, extends = BaseHold, subclass, weakref, module = "fencelock")]
pub(crate) struct Hold;

/// A hold for threads.
pub(crate) fn for_threads(py: Python<'_>, held: Arc<Held>) -> PyResult<Bound<'_, Hold>> {
    Bound::new(py, PyClassInitializer::from(BaseHold(held)).add_subclass(Hold))
}

#[pymethods]
impl Hold {
    #[new]
    fn py_new(hold: &Bound<'_, BaseHold>, raise_on_lost: bool) -> PyClassInitializer<Hold> {
        PyClassInitializer::from(BaseHold::py_new(hold, raise_on_lost)).add_subclass(Hold)
    }

    /// Release the lock, and wait until the store or the next local holder has it.
    ///
    /// Raises:
    ///     LostError: The hold had ended before.
    ///     NotHeldError: It was released before.
    ///     UnavailableError: The store did not answer; the release goes on in the background.
    fn release(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let released = slf.as_super().get().0.release(py)?;
        given(py, released)
    }

    /// Set the hold's lease to `lease` (seconds or `timedelta`) from now on; never shortens it.
    ///
    /// Raises:
    ///     LostError: The hold has ended.
    ///     InvalidArgumentError: The lease lies outside 0.1 s to 7 days.
    ///     UnavailableError: The store did not answer; the lease may or may not be longer.
    ///
    /// >>> import fencelock
    /// >>> client = fencelock.connect("memory:")
    /// >>> with client.lock("slow", lease=1) as hold:
    /// ...     hold.extend(60)
    /// ...     hold.remaining > 50
    /// True
    fn extend(slf: &Bound<'_, Self>, lease: &Bound<'_, PyAny>) -> PyResult<()> {
        let lease = duration("lease", lease)?;
        let hold = slf.as_super().get().0.hold.clone();
        let theirs = hold.clone();
        signals::call(
            slf.py(),
            move || hold.extend(lease),
            move |done| {
                theirs.extend_async(lease, done);
                Ok(())
            },
        )
    }

    /// Read from now on instead of writing, without letting a writer come between.
    ///
    /// Other readers are let in at once, and the token becomes a reader's. The holder must not write any
    /// more once it has called this, whatever comes of it. Nothing changes when it reads already.
    ///
    /// Raises:
    ///     ContendedError: The owner has the lock to write by another hold or level, too.
    ///     LostError, NotHeldError: The hold has ended, or was released.
    ///     InvalidArgumentError: It is permits.
    ///     UnsupportedError: On ZooKeeper, when the hold is of a plain lock.
    ///     UnavailableError: The store did not answer; it is told in the background.
    ///
    /// >>> import fencelock
    /// >>> prices = fencelock.connect("memory:").rwlock("prices")
    /// >>> with prices.writer_lock as hold:
    /// ...     hold.downgrade()
    /// ...     hold.mode
    /// 'shared'
    fn downgrade(slf: &Bound<'_, Self>) -> PyResult<()> {
        let hold = slf.as_super().get().0.hold.clone();
        let theirs = hold.clone();
        signals::call(
            slf.py(),
            move || hold.downgrade(),
            move |done| {
                theirs.downgrade_async(done);
                Ok(())
            },
        )
    }

    /// Write from now on instead of reading, if nobody else holds the lock; past whoever waits for it.
    ///
    /// The token becomes a writer's. It does not wait: two readers that did would wait for each other.
    /// Nothing changes when it writes already.
    ///
    /// Raises:
    ///     ContendedError: Others read, or the owner has the lock by another hold or level, too.
    ///     LostError, NotHeldError: The hold has ended, or was released.
    ///     InvalidArgumentError: It is permits.
    ///     UnsupportedError: On ZooKeeper.
    ///     UnavailableError: The store did not answer; the hold goes on reading.
    ///
    /// >>> import fencelock
    /// >>> prices = fencelock.connect("memory:").rwlock("prices")
    /// >>> with prices.reader_lock as hold:
    /// ...     hold.try_upgrade()
    /// ...     hold.mode
    /// 'exclusive'
    fn try_upgrade(slf: &Bound<'_, Self>) -> PyResult<()> {
        let hold = slf.as_super().get().0.hold.clone();
        let theirs = hold.clone();
        signals::call(
            slf.py(),
            move || hold.try_upgrade(),
            move |done| {
                theirs.try_upgrade_async(done);
                Ok(())
            },
        )
    }

    /// The event that the hold was lost.
    #[getter]
    fn lost<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Ok(Bound::new(slf.py(), Lost::of(slf.as_super().get().watch()))?.into_any())
    }

    fn __enter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    #[pyo3(signature = (kind, error, traceback))]
    fn __exit__(
        slf: &Bound<'_, Self>,
        kind: Option<&Bound<'_, PyAny>>,
        error: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (kind, traceback);
        slf.as_super().get().0.leave(slf.py(), error)
    }
}
