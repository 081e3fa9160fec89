//! What a call gives its caller, read from how the engine ended it.

use std::time::Duration;

use fencelock_engine::{Name, Outcome};

use crate::errors::unexpected;
use crate::{Broken, Error, ErrorKind, LockInfo, Result};

pub(crate) fn extended(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Extended => Ok(()),
        other => Err(failed(other)),
    }
}

pub(crate) fn released(outcome: Outcome) -> Result<()> {
    match outcome {
        Outcome::Released => Ok(()),
        other => Err(failed(other)),
    }
}

pub(crate) fn inspected(outcome: Outcome) -> Result<Option<LockInfo>> {
    match outcome {
        Outcome::Inspected(info) => Ok(info.map(|info| *info)),
        other => Err(failed(other)),
    }
}

pub(crate) fn listed(outcome: Outcome) -> Result<Vec<Name>> {
    match outcome {
        Outcome::Listed(names) => Ok(names),
        other => Err(failed(other)),
    }
}

pub(crate) fn broken(outcome: Outcome) -> Result<Broken> {
    match outcome {
        Outcome::Broken(broken) => Ok(broken),
        other => Err(failed(other)),
    }
}

pub(crate) fn resized(outcome: Outcome) -> Result<bool> {
    match outcome {
        Outcome::Resized(used) => Ok(used),
        other => Err(failed(other)),
    }
}

pub(crate) fn revoked(outcome: Outcome) -> Result<bool> {
    match outcome {
        Outcome::Revoked(told) => Ok(told),
        other => Err(failed(other)),
    }
}

pub(crate) fn pinged(outcome: Outcome) -> Result<Duration> {
    match outcome {
        Outcome::Time(micros) => Ok(Duration::from_micros(micros)),
        other => Err(failed(other)),
    }
}

/// Refuses to list nothing, which is nobody's wish.
pub(crate) fn some(limit: usize) -> Result<()> {
    if limit == 0 {
        let wrong = "the limit of a list must be 1 or more, and is 0";
        return Err(Error::new(ErrorKind::InvalidArgument, wrong));
    }
    Ok(())
}

/// The error in an outcome that is not the wanted one.
pub(crate) fn failed(outcome: Outcome) -> Error {
    match outcome {
        Outcome::Failed(error) => error,
        other => unexpected(&other),
    }
}
