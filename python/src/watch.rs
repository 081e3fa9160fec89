//! The loss of a hold, as an event that threads and loops wait for.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencelock_support::LossReason;
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;

use crate::hold::BaseHold;
use crate::mailbox::Mailbox;
use crate::operation::{Done, Leave, Value, started};
use crate::signals::{LOOK, on_main_thread};

/// How often a wait on another thread than the main one looks at its clock again.
const LONG: Duration = Duration::from_secs(3600);

/// What is known of a hold's end.
#[derive(Default)]
pub(crate) struct Watch {
    state: Mutex<State>,
    bell: Condvar,
}

#[derive(Default)]
struct State {
    fate: Fate,
    /// By number, the oldest first.
    watchers: BTreeMap<u64, Done>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Open,
    Lost(&'static str),
    /// Released: it can no longer be lost.
    Over,
}

impl Watch {
    pub(crate) fn lose(&self, reason: LossReason) {
        self.end(Fate::Lost(named(reason)));
    }

    pub(crate) fn release(&self) {
        self.end(Fate::Over);
    }

    fn end(&self, fate: Fate) {
        let watchers = {
            let mut state = self.state.lock();
            if state.fate != Fate::Open {
                return;
            }
            state.fate = fate;
            std::mem::take(&mut state.watchers)
        };
        self.bell.notify_all();
        for watcher in watchers.into_values() {
            watcher.tell(Ok(Value::Lost(fate.reason())));
        }
    }

    pub(crate) fn start<'py>(
        self: Arc<Self>,
        mailbox: &Bound<'py, Mailbox>,
    ) -> PyResult<Bound<'py, PyAny>> {
        started(mailbox, Ok(Value::Lost(None)), |done| {
            let mut state = self.state.lock();
            let fate = state.fate;
            if fate == Fate::Open {
                let id = done.id();
                state.watchers.insert(id, done);
                drop(state);
                return Ok(Some(Leave::Unwatch(self, id)));
            }
            drop(state);
            done.tell(Ok(Value::Lost(fate.reason())));
            Ok(None)
        })
    }

    /// Takes a watcher out, whose wait thereby ends: a hold may last for months, and waits that are
    /// given up would stay as long.
    pub(crate) fn forget(&self, id: u64) {
        let watcher = self.state.lock().watchers.remove(&id);
        // Told only now that the mutex is free.
        drop(watcher);
    }

    fn fate(&self) -> Fate {
        self.state.lock().fate
    }
}

impl Fate {
    fn reason(self) -> Option<&'static str> {
        match self {
            Fate::Lost(reason) => Some(reason),
            Fate::Open | Fate::Over => None,
        }
    }
}

fn named(reason: LossReason) -> &'static str {
    match reason {
        LossReason::Ended => "ended",
        LossReason::NotRenewed => "not_renewed",
        LossReason::Gone => "gone",
        LossReason::Broken => "broken",
        LossReason::Closed => "closed",
    }
}

/// The event that a hold was lost, with the methods of `threading.Event`.
///
/// >>> import fencelock
/// >>> client = fencelock.connect("memory:")
/// >>> hold = client.lock("report", lease=0.1).hold()
/// >>> hold.lost.is_set()
/// False
/// >>> hold.lost.wait(10), hold.lost.reason
/// (True, 'ended')
#[pyclass(frozen, subclass, module = "fencelock")]
pub(crate) struct Lost(Arc<Watch>);

impl Lost {
    pub(crate) fn of(watch: Arc<Watch>) -> Lost {
        Lost(watch)
    }
}

#[pymethods]
impl Lost {
    #[new]
    fn new(hold: &Bound<'_, BaseHold>) -> Lost {
        Lost(hold.get().watch())
    }

    /// Return whether the hold was lost. Once True, always True.
    fn is_set(&self) -> bool {
        self.0.fate().reason().is_some()
    }

    /// Why the hold was lost: `ended`, `not_renewed`, `gone`, `broken` or `closed`; None if it was not.
    ///
    /// `ended`: its lease or `max_hold` is over. `not_renewed`: the store could not be reached in
    /// time. `gone`: the store no longer knows it. `broken`: by an operator. `closed`: by
    /// `Client.close`.
    #[getter]
    fn reason(&self) -> Option<&'static str> {
        self.0.fate().reason()
    }

    /// Wait until the hold is lost.
    ///
    /// Returns False when the timeout (seconds) passed before, or the hold was released.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let until = timeout
            .and_then(|limit| Duration::try_from_secs_f64(limit.max(0.0)).ok())
            .and_then(|limit| Instant::now().checked_add(limit));
        let slice = if on_main_thread(py) { LOOK } else { LONG };
        loop {
            let end = Instant::now() + slice;
            let end = until.map_or(end, |until| until.min(end));
            let fate = py.detach(|| {
                let mut state = self.0.state.lock();
                while state.fate == Fate::Open && Instant::now() < end {
                    self.0.bell.wait_until(&mut state, end);
                }
                state.fate
            });
            if fate != Fate::Open || until.is_some_and(|until| Instant::now() >= until) {
                return Ok(fate.reason().is_some());
            }
            py.check_signals()?;
        }
    }

    #[doc(hidden)]
    fn lost_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        self.0.clone().start(mailbox)
    }

    fn __repr__(&self) -> String {
        match self.0.fate() {
            Fate::Lost(reason) => format!("<fencelock.Lost: {reason}>"),
            Fate::Open => "<fencelock.Lost: not set>".to_owned(),
            Fate::Over => "<fencelock.Lost: not set, the hold was released>".to_owned(),
        }
    }
}
