//! Errors of the client as exceptions of Python.

use fencelock_support::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// The exception of an error: the class that `fencelock.errors` has for its code.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let class = || -> PyResult<Bound<'_, PyType>> {
        let classes = CLASSES.get_or_try_init(py, || {
            let module = py.import("fencelock.errors")?;
            Ok::<_, PyErr>(module.getattr("BY_CODE")?.cast_into::<PyDict>()?.unbind())
        })?;
        let class = classes.bind(py).as_any().get_item(error.kind().code())?;
        Ok(class.cast_into::<PyType>()?)
    };
    match class() {
        Ok(class) => PyErr::from_type(class, (error.message().to_owned(),)),
        Err(failed) => failed,
    }
}

/// The exception for an argument that cannot be used.
pub(crate) fn invalid(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, &Error::new(ErrorKind::InvalidArgument, message.into()))
}

/// Code, name, whether it is retryable, and meaning of every error, for tests and documents.
pub(crate) fn table() -> Vec<(u8, &'static str, bool, &'static str)> {
    fencelock_support::errors::table()
        .map(|row| (row.code, row.name, row.retryable, row.meaning))
        .collect()
}
