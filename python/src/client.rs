//! The client of a store.

use std::sync::Arc;

use fencelock_support::Result;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::{self, given, limit, options, text, token};
use crate::hold::{self, Held, Hold};
use crate::info::{Broken, Capabilities, LockInfo, shown};
use crate::mailbox::Mailbox;
use crate::mode::{permits, semaphore};
use crate::named::Locks;
use crate::operation::{Value, start};
use crate::signals;

/// A connection to a store; what users touch are `fencelock.Client` and `fencelock.aio.Client`.
#[pyclass(frozen, weakref, module = "fencelock._native")]
pub(crate) struct Client(pub(crate) fencelock_support::Client, pub(crate) Arc<Locks>);

/// Connect, waiting for the store's answer.
#[pyfunction]
pub(crate) fn connect(
    #[pyo3(from_py_with = text)] url: String,
    given: &Bound<'_, PyDict>,
) -> PyResult<Client> {
    let options = options(given)?;
    let (theirs, copy) = (url.clone(), options.clone());
    let client = signals::call(
        given.py(),
        move || fencelock_support::Client::connect(&url, options),
        move |done| fencelock_support::Client::connect_async(theirs, copy, done),
    )?;
    Ok(Client(client, Arc::default()))
}

/// Begin to connect.
#[pyfunction]
pub(crate) fn connect_start<'py>(
    mailbox: &Bound<'py, Mailbox>,
    #[pyo3(from_py_with = text)] url: String,
    given: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let options = options(given)?;
    start(mailbox, |done| {
        let done = |ended: Result<_>| done.tell(ended.map(Value::Client));
        fencelock_support::Client::connect_async(url, options, done).map(|()| None)
    })
}

#[pymethods]
impl Client {
    fn attach<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = text)] ticket: String,
    ) -> PyResult<Bound<'py, Hold>> {
        let (client, theirs, copy) = (self.0.clone(), self.0.clone(), ticket.clone());
        let hold = signals::call(
            py,
            move || client.attach(&ticket),
            move |done| {
                theirs.attach_async(copy, done);
                Ok(())
            },
        )?;
        hold::for_threads(py, Held::new(hold, true))
    }

    fn attach_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] ticket: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            Ok(Some(self.0.attach_async(ticket, |ended| done.tell(ended.map(Value::Hold)))))
        })
    }

    fn inspect(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] name: String,
    ) -> PyResult<Option<LockInfo>> {
        let (client, theirs, copy) = (self.0.clone(), self.0.clone(), name.clone());
        let info = signals::call(
            py,
            move || client.inspect(&name),
            move |done| {
                theirs.inspect_async(copy, done);
                Ok(())
            },
        )?;
        shown(py, info)
    }

    fn inspect_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] name: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| {
                done.tell(ended.map(|info| Value::Info(Option::map(info, Box::new))))
            };
            Ok(Some(self.0.inspect_async(name, done)))
        })
    }

    /// How many of so many permits a semaphore has free.
    fn available_permits(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = permits)] of: u32,
        adopt: bool,
    ) -> PyResult<u32> {
        let semaphore = given(py, semaphore(&self.0, &name, of, adopt))?;
        let theirs = semaphore.clone();
        signals::call(
            py,
            move || semaphore.available_permits(),
            move |done| {
                theirs.available_permits_async(done);
                Ok(())
            },
        )
    }

    fn available_permits_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = permits)] of: u32,
        adopt: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| done.tell(ended.map(Value::Number));
            Ok(Some(semaphore(&self.0, &name, of, adopt)?.available_permits_async(done)))
        })
    }

    /// Gives a semaphore so many permits.
    fn resize(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = permits)] of: u32,
    ) -> PyResult<bool> {
        let semaphore = given(py, self.0.semaphore(&name, of))?;
        let theirs = semaphore.clone();
        signals::call(
            py,
            move || semaphore.resize(of),
            move |done| {
                theirs.resize_async(of, done);
                Ok(())
            },
        )
    }

    fn resize_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = permits)] of: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| done.tell(ended.map(Value::Bool));
            Ok(Some(self.0.semaphore(&name, of)?.resize_async(of, done)))
        })
    }

    fn list(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] prefix: String,
        #[pyo3(from_py_with = limit)] limit: usize,
    ) -> PyResult<Vec<String>> {
        let (client, theirs, copy) = (self.0.clone(), self.0.clone(), prefix.clone());
        signals::call(
            py,
            move || client.list(&prefix, limit),
            move |done| {
                theirs.list_async(copy, limit, done);
                Ok(())
            },
        )
    }

    fn list_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] prefix: String,
        #[pyo3(from_py_with = limit)] limit: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| done.tell(ended.map(Value::Names));
            Ok(Some(self.0.list_async(prefix, limit, done)))
        })
    }

    fn break_lock(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = token)] token: u64,
    ) -> PyResult<Broken> {
        let (client, theirs, copy) = (self.0.clone(), self.0.clone(), name.clone());
        let broken = signals::call(
            py,
            move || client.break_lock(&name, token),
            move |done| {
                theirs.break_lock_async(copy, token, done);
                Ok(())
            },
        )?;
        Ok(broken.into())
    }

    fn break_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = token)] token: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| done.tell(ended.map(Value::Broken));
            Ok(Some(self.0.break_lock_async(name, token, done)))
        })
    }

    fn break_hold(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = token)] token: u64,
        #[pyo3(from_py_with = text)] hold: String,
    ) -> PyResult<Broken> {
        let (client, theirs) = (self.0.clone(), self.0.clone());
        let (copy, same) = (name.clone(), hold.clone());
        let broken = signals::call(
            py,
            move || client.break_hold(&name, token, &hold),
            move |done| {
                theirs.break_hold_async(copy, token, &same, done)?;
                Ok(())
            },
        )?;
        Ok(broken.into())
    }

    fn break_hold_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        #[pyo3(from_py_with = text)] name: String,
        #[pyo3(from_py_with = token)] token: u64,
        #[pyo3(from_py_with = text)] hold: String,
    ) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            let done = |ended: Result<_>| done.tell(ended.map(Value::Broken));
            Ok(Some(self.0.break_hold_async(name, token, &hold, done)?))
        })
    }

    fn ping(&self, py: Python<'_>) -> PyResult<f64> {
        let (client, theirs) = (self.0.clone(), self.0.clone());
        let time = signals::call(
            py,
            move || client.ping(),
            move |done| {
                theirs.ping_async(done);
                Ok(())
            },
        )?;
        Ok(time.as_secs_f64())
    }

    fn ping_start<'py>(&self, mailbox: &Bound<'py, Mailbox>) -> PyResult<Bound<'py, PyAny>> {
        start(mailbox, |done| {
            Ok(Some(self.0.ping_async(|ended| done.tell(ended.map(Value::Time)))))
        })
    }

    #[pyo3(signature = (drain=None))]
    fn close(&self, py: Python<'_>, drain: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let (client, theirs) = (self.0.clone(), self.0.clone());
        match drain {
            Some(limit) => {
                let limit = convert::drain(limit)?;
                signals::call(
                    py,
                    move || Ok(client.drain(limit)),
                    move |done| theirs.drain_async(limit, |drained| done(Ok(drained))),
                )
            }
            None => signals::call(
                py,
                move || Ok(client.close()),
                move |done| {
                    theirs.close_async(done);
                    Ok(())
                },
            ),
        }
    }

    #[pyo3(signature = (mailbox, drain=None))]
    fn close_start<'py>(
        &self,
        mailbox: &Bound<'py, Mailbox>,
        drain: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let limit = drain.map(convert::drain).transpose()?;
        start(mailbox, |done| match limit {
            Some(limit) => {
                let done = |drained| done.tell(Ok(Value::Bool(drained)));
                self.0.drain_async(limit, done).map(|()| None)
            }
            None => {
                let done = |closed: Result<bool>| done.tell(closed.map(Value::Bool));
                Ok(Some(self.0.close_async(done)))
            }
        })
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    #[getter]
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities().into()
    }

    fn metrics(&self) -> String {
        self.0.metrics().to_prometheus()
    }
}
