//! Spans of time, which cross as nanoseconds.

use std::time::Duration;

use crate::failure::{Failure, invalid};

/// A time that was given; 0 for none.
pub(crate) fn span(nanos: i64, what: &str) -> Result<Option<Duration>, Failure> {
    match u64::try_from(nanos) {
        Ok(0) => Ok(None),
        Ok(nanos) => Ok(Some(Duration::from_nanos(nanos))),
        Err(_) => Err(invalid(format!("{what} is negative: {nanos}")).into()),
    }
}

/// A bound; `None` for FENCELOCK_FOREVER.
pub(crate) fn limit(nanos: i64, what: &str) -> Result<Option<Duration>, Failure> {
    match u64::try_from(nanos) {
        Ok(nanos) => Ok(Some(Duration::from_nanos(nanos))),
        Err(_) if nanos == -1 => Ok(None),
        Err(_) => {
            Err(invalid(format!("{what} is {nanos}: -1 waits for ever, others count up from 0"))
                .into())
        }
    }
}

/// A span in nanoseconds, at most what fits.
pub(crate) fn nanos(span: Duration) -> i64 {
    i64::try_from(span.as_nanos()).unwrap_or(i64::MAX)
}
