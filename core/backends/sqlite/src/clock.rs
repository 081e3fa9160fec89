//! The machine's time, and which boot of it this is.
//!
//! The store's time is the boot clock plus a number kept in the file. Within one boot it is the
//! same for all processes, counts suspension and ignores steps of the wall clock; at the first
//! opening after a boot the number is chosen so that the time is the wall clock's, but never below
//! a token that the file knows.
//!
//! Another boot id stands for a restart, or for another machine or sandbox on the same file; only
//! the wall clock, which both have, can tell when the holds of the other one are over.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::fault::Fault;

/// What stands for the boot id on a system that has none: the store's time is then the wall clock.
const NO_BOOT: &str = "wall";
/// Where Linux tells the boot id.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A clock, and the name of the span in which it runs without a step.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    boot: String,
}

impl Clock {
    /// This machine's clock. Linux has a boot id; elsewhere it is the wall clock, and a step of it
    /// ends holds early (forward) or is waited out for a lease at most (backward).
    pub(crate) fn of_machine() -> Result<Clock, Fault> {
        if !cfg!(target_os = "linux") {
            return Ok(Clock::of_boot(NO_BOOT));
        }
        Clock::of_boot_in(Path::new(BOOT_ID))
    }

    /// The clock of the boot whose id this file has.
    pub(crate) fn of_boot_in(file: &Path) -> Result<Clock, Fault> {
        match std::fs::read_to_string(file) {
            Ok(boot) if !boot.trim().is_empty() => Ok(Clock::of_boot(boot.trim())),
            Ok(_) => Err(unknown(file, "it is empty")),
            Err(error) => Err(unknown(file, &error.to_string())),
        }
    }

    /// The clock of this boot.
    pub(crate) fn of_boot(boot: &str) -> Clock {
        Clock { boot: boot.to_owned() }
    }

    /// The boot id.
    pub(crate) fn boot(&self) -> &str {
        &self.boot
    }

    /// Microseconds of the clock itself, without the file's number.
    pub(crate) fn micros(&self) -> i64 {
        if self.boot == NO_BOOT { wall() } else { since_boot() }
    }

    /// The number to keep in the file so that the time is the wall clock's, and above `floor`.
    pub(crate) fn ahead(&self, floor: i64) -> i64 {
        if self.boot == NO_BOOT {
            return 0;
        }
        wall().max(floor.saturating_add(1)).saturating_sub(self.micros())
    }
}

/// Without the boot id it cannot be told whether the holds in a file are live.
fn unknown(file: &Path, why: &str) -> Fault {
    Fault::Misconfigured(format!(
        "'{}' cannot be read ({why}), which says in which boot of the machine a SQLite store's \
         deadlines count; mount /proc into this container or sandbox, or use a server",
        file.display()
    ))
}

/// Microseconds of the wall clock.
pub(crate) fn wall() -> i64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(wall.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(target_os = "linux")]
fn since_boot() -> i64 {
    let read = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    read.tv_sec * 1_000_000 + read.tv_nsec / 1_000
}

#[cfg(not(target_os = "linux"))]
fn since_boot() -> i64 {
    wall()
}
