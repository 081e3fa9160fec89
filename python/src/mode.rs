//! How a lock is taken: for oneself, to read, or so many permits.

use fencelock_support::{Client, Lock, Mode, Result, Semaphore};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};

use crate::convert::text;
use crate::errors::invalid;

/// What Python names `None`, `"shared"`, or the number of permits, how many there are, and whether the
/// number of others counts; that is the second of what this gives.
pub(crate) fn mode(given: Option<&Bound<'_, PyAny>>) -> PyResult<(Mode, bool)> {
    let Some(given) = given else { return Ok((Mode::Exclusive, false)) };
    if let Ok(told) = given.cast::<PyTuple>() {
        let (count, of) = (permits(&told.get_item(0)?)?, permits(&told.get_item(1)?)?);
        return Ok((Mode::Permits { count, of }, told.get_item(2)?.extract()?));
    }
    match text(given)?.as_str() {
        "exclusive" => Ok((Mode::Exclusive, false)),
        "shared" => Ok((Mode::Shared, false)),
        other => Err(invalid(given.py(), format!("a lock has no mode {other:?}"))),
    }
}

/// The lock that is taken so.
pub(crate) fn lock_in(client: &Client, name: &str, mode: Mode, adopt: bool) -> Result<Lock> {
    match mode {
        Mode::Permits { count, of } if adopt => {
            mode.check()?;
            Ok(semaphore(client, name, of, adopt)?.taking(count))
        }
        _ => client.lock_in(name, mode),
    }
}

/// A semaphore of so many permits; with `adopt`, of as many as those say who hold or wait.
pub(crate) fn semaphore(client: &Client, name: &str, of: u32, adopt: bool) -> Result<Semaphore> {
    let semaphore = client.semaphore(name, of)?;
    Ok(if adopt { semaphore.adopting() } else { semaphore })
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
