//! Where the ends of asynchronous calls arrive, until the caller's loop takes them.
//!
//! The client's threads post without the interpreter's lock. The first post after the loop has
//! looked wakes it, by a byte on a socket pair; those that follow cost it nothing more.
//!
//! The loop's own code, in Python (`fencelock._ends`), hands the ends to what waits: at the
//! interpreter's end a daemon thread is ended wherever it runs Python code, and a frame of Rust
//! below it would take the process along.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use fencelock_support::Result;
use parking_lot::{Condvar, Mutex};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::errors::raised;
use crate::operation::{Leave, Value};

type Post = (u64, Result<Value>);

/// The half that the client's threads know.
#[derive(Default)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    bell: Condvar,
    pipe: OnceLock<(UnixStream, UnixStream)>,
}

#[derive(Default)]
struct State {
    posts: Vec<Post>,
    /// The loop was woken and has not looked yet.
    rung: bool,
    closed: bool,
}

impl Inbox {
    /// Leaves a post. What arrives after the loop is gone is dropped, a hold thereby released.
    pub(crate) fn post(&self, id: u64, result: Result<Value>) {
        let ring = {
            let mut state = self.state.lock();
            if state.closed {
                drop(state);
                drop(result);
                return;
            }
            state.posts.push((id, result));
            !std::mem::replace(&mut state.rung, true)
        };
        if ring {
            self.ring();
        }
    }

    fn ring(&self) {
        self.bell.notify_all();
        if let Some((_, write)) = self.pipe.get() {
            // A full pipe wakes as well.
            let _ = (&mut &*write).write(&[1]);
        }
    }

    /// From here on the loop is about to look: a post need not wake it. Gives whether it was so
    /// before.
    pub(crate) fn hush(&self) -> bool {
        std::mem::replace(&mut self.state.lock().rung, true)
    }

    /// What has arrived; nothing, and a post wakes the loop again.
    fn take(&self) -> Vec<Post> {
        let mut state = self.state.lock();
        state.rung = !state.posts.is_empty();
        std::mem::take(&mut state.posts)
    }

    /// Takes the bytes that have woken the loop.
    fn silence(&self) {
        if let Some((read, _)) = self.pipe.get() {
            // One for each time that it was rung; any others are taken with the next look.
            let _ = (&mut &*read).read(&mut [0; 64]);
        }
    }
}

/// Collects the ends of operations for one loop.
///
/// What waits for an operation is bound to it (`Operation.bind`).
#[pyclass(frozen, module = "fencelock._native", weakref)]
pub(crate) struct Mailbox {
    pub(crate) inbox: Arc<Inbox>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    bound: HashMap<u64, Bond>,
    /// What ended before something was bound to it.
    early: HashMap<u64, Result<Value>>,
    /// Those to which nothing will be bound, and whose end is among the posts.
    forgotten: HashSet<u64>,
}

/// What waits for an operation, and how the operation is left when the loop is gone.
struct Bond {
    waits: Py<PyAny>,
    leave: Option<Leave>,
}

/// What waits, the result, and the error instead of it.
type End = (Py<PyAny>, Option<Py<PyAny>>, Option<Py<PyAny>>);

#[pymethods]
impl Mailbox {
    #[new]
    fn new() -> Mailbox {
        Mailbox { inbox: Arc::default(), table: Mutex::default() }
    }

    /// The file descriptor that becomes readable when there is something to drain.
    fn fileno(&self) -> PyResult<i32> {
        if self.inbox.pipe.get().is_none() {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            write.set_nonblocking(true)?;
            let _ = self.inbox.pipe.set((read, write));
            // What was posted before there was a pipe.
            if self.inbox.state.lock().rung {
                self.inbox.ring();
            }
        }
        Ok(self.inbox.pipe.get().map_or(-1, |(read, _)| read.as_raw_fd()))
    }

    /// Take what has arrived: triples of what waits, the result, and the error if there is one.
    ///
    /// With `woken` it also takes the byte that has woken the loop.
    fn take(&self, py: Python<'_>, woken: bool) -> Vec<End> {
        if woken {
            self.inbox.silence();
        }
        let mut ends = Vec::new();
        // Who gets none looks no more: by then a post must wake the loop again.
        while ends.is_empty() {
            let posts = self.inbox.take();
            if posts.is_empty() {
                break;
            }
            // Dropped when the mutex is free: dropping a hold releases it.
            let mut unwanted = Vec::new();
            let mut table = self.table.lock();
            for (id, result) in posts {
                match table.bound.remove(&id) {
                    Some(bond) => ends.push((bond.waits, result)),
                    None if table.forgotten.remove(&id) => unwanted.push(result),
                    None => {
                        table.early.insert(id, result);
                    }
                }
            }
            drop(table);
            drop(unwanted);
        }
        ends.into_iter()
            .map(|(waits, result)| {
                let made = match result {
                    Ok(value) => value.into_py(py).map(Bound::unbind),
                    Err(error) => Err(raised(py, &error)),
                };
                match made {
                    Ok(value) => (waits, Some(value), None),
                    Err(error) => (waits, None, Some(error.into_value(py).into_any())),
                }
            })
            .collect()
    }

    /// From here on the loop is about to look: a post need not wake it. Gives whether it was so
    /// before.
    fn hush(&self) -> bool {
        self.inbox.hush()
    }

    /// Wait until there is something to take; False when the timeout (seconds) passed before.
    #[pyo3(signature = (timeout))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let until = timeout
            .map(|limit| Duration::try_from_secs_f64(limit.max(0.0)).unwrap_or(Duration::MAX))
            .and_then(|limit| Instant::now().checked_add(limit));
        let main = crate::signals::on_main_thread(py);
        loop {
            let inbox = self.inbox.clone();
            let there = py.detach(move || {
                let mut state = inbox.state.lock();
                let mut slice = Instant::now() + Duration::from_secs(3600);
                if main {
                    slice = Instant::now() + crate::signals::LOOK;
                }
                let end = until.map_or(slice, |until| until.min(slice));
                while !state.rung && Instant::now() < end {
                    inbox.bell.wait_until(&mut state, end);
                }
                state.rung
            });
            if there {
                return Ok(true);
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                return Ok(false);
            }
            py.check_signals()?;
        }
    }

    /// Make `wait` return and the descriptor readable once.
    fn wake(&self) {
        self.inbox.state.lock().rung = true;
        self.inbox.ring();
    }

    /// Take no more: what waits is cancelled, and what arrives from now on is dropped, a hold
    /// thereby released.
    fn close(&self) {
        let posts = {
            let mut state = self.inbox.state.lock();
            state.closed = true;
            std::mem::take(&mut state.posts)
        };
        drop(posts);
        let table = std::mem::take(&mut *self.table.lock());
        for bond in table.bound.values() {
            bond.leave.iter().for_each(Leave::leave);
        }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Some(table) = self.table.try_lock() {
            for bond in table.bound.values() {
                visit.call(&bond.waits)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        self.close();
    }
}

impl Mailbox {
    /// Binds what waits to an operation, which may have ended already.
    pub(crate) fn bind(&self, id: u64, waits: Py<PyAny>, leave: Option<&Leave>) {
        let early = {
            let mut table = self.table.lock();
            table.bound.insert(id, Bond { waits, leave: leave.cloned() });
            table.early.remove(&id)
        };
        if let Some(result) = early {
            self.inbox.post(id, result);
        }
        // Looked at last: whoever closes looks at the table after that.
        if self.inbox.state.lock().closed {
            self.close();
        }
    }

    /// Nothing will be bound to this operation any more, which has posted its end.
    pub(crate) fn forget(&self, id: u64) {
        let mut table = self.table.lock();
        let early = table.early.remove(&id);
        if early.is_none() {
            table.forgotten.insert(id);
        }
        drop(table);
        drop(early);
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
    }
}
