//! Arguments of Python as the client wants them.

use std::time::Duration;

use fencelock_support::{ConnectOptions, Error, ErrorKind, OptionValue, Patience};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};

use crate::errors::{invalid, raised};

/// The longest timeout in seconds, as `threading.TIMEOUT_MAX` has one.
const TIMEOUT_MAX: f64 = 9_223_372_036.0;

/// A text of a caller: a name, a prefix, a ticket.
pub(crate) fn text(given: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = given.cast::<PyString>()?;
    match text.to_cow() {
        Ok(text) => Ok(text.into_owned()),
        // Half of a pair, which no UTF-8 has.
        Err(_) => Err(invalid(given.py(), format!("{} has a lone surrogate", text.repr()?))),
    }
}

/// How many at the most.
pub(crate) fn limit(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    match given.cast::<PyInt>()?.extract::<usize>() {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(invalid(given.py(), "the limit must be a whole number of 1 or more")),
    }
}

/// The token of a hold that was seen.
pub(crate) fn token(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    let token = given.cast::<PyInt>()?.extract();
    token.map_err(|_| invalid(given.py(), "a token is a whole number of 0 or more"))
}

/// A time: seconds or a `timedelta`.
pub(crate) fn duration(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let py = value.py();
    if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
        return Duration::try_from_secs_f64(value.extract()?)
            .map_err(|_| invalid(py, format!("{what} must be a finite time of 0 s or more")));
    }
    match value.getattr("total_seconds") {
        Ok(total) => duration(what, &total.call0()?),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{what} must be seconds or a datetime.timedelta, not {}",
            value.get_type().name()?
        ))),
    }
}

/// The same, where it may be left out.
pub(crate) fn maybe_duration(
    what: &str,
    value: Option<&Bound<'_, PyAny>>,
) -> PyResult<Option<Duration>> {
    value.map(|value| duration(what, value)).transpose()
}

/// How long to wait, by the arguments of `threading.Lock.acquire`, which waits for ever with -1.
pub(crate) fn patience(py: Python<'_>, blocking: bool, timeout: Option<f64>) -> PyResult<Patience> {
    // The default is recognised as what it is.
    #[allow(clippy::float_cmp)]
    let bound = timeout.filter(|timeout| *timeout != -1.0);
    match (blocking, bound) {
        (false, Some(_)) => Err(invalid(py, "a try takes no timeout: leave one of the two out")),
        (false, None) => Ok(Patience::Try),
        (true, None | Some(f64::INFINITY)) => Ok(Patience::Forever),
        (true, Some(timeout)) if timeout > TIMEOUT_MAX => {
            Err(PyOverflowError::new_err("the timeout is too long; leave it out to wait for ever"))
        }
        (true, Some(timeout)) => match Duration::try_from_secs_f64(timeout) {
            Ok(Duration::ZERO) => Ok(Patience::Try),
            Ok(limit) => Ok(Patience::For(limit)),
            Err(_) => Err(invalid(py, "the timeout must be 0 s or more, or -1 to wait for ever")),
        },
    }
}

/// How long to drain: as a time, but it may be infinite.
pub(crate) fn drain(value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    match value.cast::<PyFloat>() {
        Ok(number) if number.value() == f64::INFINITY => Ok(Duration::MAX),
        _ => duration("drain", value),
    }
}

/// The options of a client by their names.
pub(crate) fn options(given: &Bound<'_, PyDict>) -> PyResult<ConnectOptions> {
    let py = given.py();
    let mut options = ConnectOptions::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        let number = || {
            value.extract::<u64>().map_err(|_| {
                invalid(py, format!("the option {name} is a whole number of 0 or more"))
            })
        };
        let set = match name.as_str() {
            "label" | "key_prefix" if value.is_instance_of::<PyString>() => {
                OptionValue::Text(text(&value)?)
            }
            "label" | "key_prefix" => {
                return Err(PyTypeError::new_err(format!("{name} must be a str")));
            }
            "local_run_grants" | "max_waiters" => OptionValue::Number(number()?),
            // An unknown name is refused below, whatever its value is.
            known if !ConnectOptions::NAMES.contains(&known) => OptionValue::Number(0),
            _ => OptionValue::Duration(duration(&name, &value)?),
        };
        options.set(&name, set).map_err(|error| raised(py, &error))?;
    }
    Ok(options)
}

/// The result of a call, as Python has it.
pub(crate) fn given<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    result.map_err(|error| raised(py, &error))
}

/// Whether an acquire ended because others have the lock.
pub(crate) fn refused(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Contended | ErrorKind::TimedOut)
}
