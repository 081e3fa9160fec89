//! What a caller is told that did not get what it asked for, in the words of its kind.

use crate::error::{Error, ErrorKind};
use crate::request::Mode;

/// How a call asks, with as many permits as its entry was told that there are: it may have adopted them.
pub(super) fn seen(asked: Mode, entry: Mode) -> Mode {
    match (asked, entry) {
        (Mode::Permits { count, .. }, Mode::Permits { of, .. }) => Mode::Permits { count, of },
        _ => asked,
    }
}

/// Others have it, or wait, and the caller did not want to.
pub(super) fn contended(mode: Mode) -> Error {
    let text = match mode {
        Mode::Exclusive => "the lock is held by another, or others wait for it".to_owned(),
        Mode::Shared => "another writes under the lock, or others wait for it: it cannot be read \
                         now"
        .to_owned(),
        Mode::Permits { count: 1, of } => {
            format!("none of the semaphore's {of} permits is free, or others wait for some")
        }
        Mode::Permits { count, of } => {
            format!("fewer than {count} of the semaphore's {of} permits are free, or others wait")
        }
    };
    Error::new(ErrorKind::Contended, text)
}

/// Others had it for too long.
pub(super) fn timed_out(mode: Mode) -> Error {
    let text = match mode {
        Mode::Exclusive => "the lock was not free within the wait's bound".to_owned(),
        Mode::Shared => "the lock could not be read within the wait's bound: another wrote, or \
                         waited before"
            .to_owned(),
        Mode::Permits { count: 1, of } => format!(
            "none of the semaphore's {of} permits was free for this call within the wait's bound"
        ),
        Mode::Permits { count, of } => format!(
            "{count} of the semaphore's {of} permits were not free together within the wait's bound"
        ),
    };
    Error::new(ErrorKind::TimedOut, text)
}

/// The store did what was asked, and may forget it.
pub(super) fn unconfirmed(by: u32, of: u32) -> String {
    let replicas = if of == 1 { "replica" } else { "replicas" };
    format!(
        "the store granted it, but of {of} {replicas} that must have it (sync_replicas) {by} confirmed \
         that in time, so it does not count, and is given back: see which replica is down or lags \
         ('INFO replication' at the master), mend or remove that, or ask for fewer"
    )
}
