//! How a lock is taken: for oneself, to read, or so many permits.

use fencelock_support::Mode;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::convert::text;
use crate::errors::invalid;

/// What Python names `None`, `"shared"`, or the number of permits and how many there are.
pub(crate) fn mode(given: Option<&Bound<'_, PyAny>>) -> PyResult<Mode> {
    let Some(given) = given else { return Ok(Mode::Exclusive) };
    if let Ok(numbers) = given.cast::<PyTuple>() {
        let (count, of) = (permits(&numbers.get_item(0)?)?, permits(&numbers.get_item(1)?)?);
        return Ok(Mode::Permits { count, of });
    }
    match text(given)?.as_str() {
        "exclusive" => Ok(Mode::Exclusive),
        "shared" => Ok(Mode::Shared),
        other => Err(invalid(given.py(), format!("a lock has no mode {other:?}"))),
    }
}

/// A number of permits.
pub(crate) fn permits(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    let number = given.cast::<PyInt>()?;
    number.extract().map_err(|_| {
        invalid(
            given.py(),
            format!("a number of permits is a whole number from 1 on, not {number}"),
        )
    })
}

/// The mode's name.
pub(crate) fn named(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "exclusive",
        Mode::Shared => "shared",
        Mode::Permits { .. } => "permits",
    }
}
