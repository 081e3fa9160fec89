//! An asynchronous call, and what it ends in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fencelock_support::{Error, ErrorKind, LockInfo, Result};
use parking_lot::Mutex;
use pyo3::IntoPyObjectExt;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::convert::given;
use crate::mailbox::{Inbox, Mailbox};
use crate::watch::Watch;
use crate::{client, hold, info};

/// What calls end in.
pub(crate) enum Value {
    Unit,
    Bool(bool),
    Broken(fencelock_support::Broken),
    Names(Vec<String>),
    Number(u32),
    Time(Duration),
    Info(Option<Box<LockInfo>>),
    Hold(fencelock_support::Hold),
    Client(fencelock_support::Client),
    /// Why a hold was lost; nothing when it can no longer be.
    Lost(Option<&'static str>),
}

impl Value {
    pub(crate) fn into_py(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Value::Unit => Ok(py.None().into_bound(py)),
            Value::Bool(value) => value.into_bound_py_any(py),
            Value::Broken(value) => info::Broken::from(value).into_bound_py_any(py),
            Value::Names(value) => value.into_bound_py_any(py),
            Value::Number(value) => value.into_bound_py_any(py),
            Value::Time(value) => value.as_secs_f64().into_bound_py_any(py),
            Value::Info(value) => info::shown(py, value.map(|info| *info))?.into_bound_py_any(py),
            Value::Hold(value) => hold::BaseHold::new(value).into_bound_py_any(py),
            Value::Client(value) => client::Client(value, Arc::default()).into_bound_py_any(py),
            Value::Lost(reason) => reason.into_bound_py_any(py),
        }
    }
}

enum Stage {
    /// The call is being started: an end goes to the starter.
    Starting,
    /// An end goes to the mailbox.
    Away,
    Ended(Option<Result<Value>>),
    /// Nobody waits: an end is dropped.
    Forgotten,
}

struct Slot {
    id: u64,
    inbox: Arc<Inbox>,
    stage: Mutex<Stage>,
}

/// Tells the end of a call, from any thread; when dropped instead, that nothing will come.
pub(crate) struct Done {
    slot: Arc<Slot>,
    unsent: Option<Result<Value>>,
}

impl Done {
    /// A number of its own; later calls have greater ones.
    pub(crate) fn id(&self) -> u64 {
        self.slot.id
    }

    pub(crate) fn tell(mut self, result: Result<Value>) {
        self.unsent = None;
        self.slot.end(result);
    }
}

impl Drop for Done {
    fn drop(&mut self) {
        if let Some(unsent) = self.unsent.take() {
            self.slot.end(unsent);
        }
    }
}

impl Slot {
    fn end(&self, result: Result<Value>) {
        let mut stage = self.stage.lock();
        match &*stage {
            Stage::Starting => *stage = Stage::Ended(Some(result)),
            Stage::Away => {
                *stage = Stage::Ended(None);
                drop(stage);
                self.inbox.post(self.id, result);
            }
            // Dropped when the mutex is free: dropping a hold releases it.
            Stage::Ended(_) | Stage::Forgotten => {
                drop(stage);
                drop(result);
            }
        }
    }
}

/// How a call is left before its end.
#[derive(Clone)]
pub(crate) enum Leave {
    Cancel(fencelock_support::Operation),
    /// The watcher with this number is taken out.
    Unwatch(Arc<Watch>, u64),
}

impl Leave {
    pub(crate) fn leave(&self) {
        match self {
            Leave::Cancel(call) => call.cancel(),
            Leave::Unwatch(watch, id) => watch.forget(*id),
        }
    }
}

/// A call under way.
#[pyclass(frozen, module = "fencelock._native")]
pub(crate) struct Operation {
    slot: Arc<Slot>,
    mailbox: Py<Mailbox>,
    leave: Option<Leave>,
    /// Something was bound to it.
    has_waiter: AtomicBool,
}

/// Starts a call. Gives its result if it has ended at once, or else the [`Operation`].
pub(crate) fn start<'py>(
    mailbox: &Bound<'py, Mailbox>,
    begin: impl FnOnce(Done) -> Result<Option<fencelock_support::Operation>>,
) -> PyResult<Bound<'py, PyAny>> {
    let unsent = Error::new(ErrorKind::Closed, "the call ended without a word; please report this");
    started(mailbox, Err(unsent), |done| Ok(begin(done)?.map(Leave::Cancel)))
}

/// As [`start`], for a call whose end may never come: then it ends in `unsent`.
pub(crate) fn started<'py>(
    mailbox: &Bound<'py, Mailbox>,
    unsent: Result<Value>,
    begin: impl FnOnce(Done) -> Result<Option<Leave>>,
) -> PyResult<Bound<'py, PyAny>> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let py = mailbox.py();
    let slot = Arc::new(Slot {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        inbox: mailbox.get().inbox.clone(),
        stage: Mutex::new(Stage::Starting),
    });
    let begun = begin(Done { slot: slot.clone(), unsent: Some(unsent) });
    let leave = given(py, begun)?;
    let mut stage = slot.stage.lock();
    if let Stage::Ended(result) = &mut *stage
        && let Some(result) = result.take()
    {
        drop(stage);
        return given(py, result)?.into_py(py);
    }
    *stage = Stage::Away;
    drop(stage);
    Operation { slot, mailbox: mailbox.clone().unbind(), leave, has_waiter: AtomicBool::new(false) }
        .into_bound_py_any(py)
}

#[pymethods]
impl Operation {
    /// Name what waits for the end: `Mailbox.take` gives it back with the result.
    fn bind(&self, py: Python<'_>, waits: Py<PyAny>) {
        self.has_waiter.store(true, Ordering::Relaxed);
        self.mailbox.bind(py).get().bind(self.slot.id, waits, self.leave.as_ref());
    }

    /// Cancel the call. It ends all the same: in `AcquireCancelledError`, in None if a loss was watched
    /// for, or as it had ended before.
    fn cancel(&self) {
        self.leave.iter().for_each(Leave::leave);
    }

    /// Whether the call has ended; its result may still lie in the mailbox.
    #[getter]
    fn ended(&self) -> bool {
        matches!(*self.slot.stage.lock(), Stage::Ended(_))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.mailbox)
    }
}

impl Drop for Operation {
    fn drop(&mut self) {
        // Attached already: Python drops it.
        Python::attach(|py| {
            if self.has_waiter.load(Ordering::Relaxed) {
                return;
            }
            let posted = {
                let mut stage = self.slot.stage.lock();
                let posted = matches!(*stage, Stage::Ended(_));
                *stage = Stage::Forgotten;
                posted
            };
            if posted {
                self.mailbox.bind(py).get().forget(self.slot.id);
            }
        });
    }
}
