//! Exit codes, as `flock` and `timeout` have them.

use std::ffi::OsString;

/// What was asked is done.
pub const DONE: u8 = 0;
/// A plain no: the lock was not to be had, is not held, or a check failed.
pub const NO: u8 = 1;
/// The arguments make no sense (for `run`: [`OWN`], because 2 may be the command's own).
pub const USAGE: u8 = 2;
/// `break` ended nothing: the lock has changed hands since it was looked at.
pub const CHANGED_HANDS: u8 = 3;
/// The lock was lost, and the command ended for it.
pub const LOST: u8 = 124;
/// Fencelock itself failed: the store, its URL, the machine.
pub const OWN: u8 = 125;
/// The command was found but could not be run.
pub const CANNOT_RUN: u8 = 126;
/// The command was not found.
pub const NOT_FOUND: u8 = 127;
/// Added to the number of the signal that ended the command.
pub const SIGNALLED: u8 = 128;

/// Prints what clap has to say and gives the code to end with.
pub fn for_usage(wrong: &clap::Error) -> u8 {
    // Printing may fail when nobody reads; there is nobody to tell then.
    let _ = wrong.print();
    if !wrong.use_stderr() {
        return DONE;
    }
    if is_run(std::env::args_os().skip(1)) { OWN } else { USAGE }
}

/// Whether the first word that is no option, nor the value of `--store`, is `run`.
fn is_run(mut words: impl Iterator<Item = OsString>) -> bool {
    while let Some(word) = words.next() {
        if word == "--store" {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"-") {
            return word == "run";
        }
    }
    false
}

/// The code of a command that was ended by a signal.
pub fn of_signal(signal: i32) -> u8 {
    SIGNALLED.saturating_add(u8::try_from(signal).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_found_behind_the_options_of_all_commands() {
        let is_run = |line: &str| is_run(line.split(' ').map(OsString::from));
        for line in ["run --bad", "--json run", "--store run run x", "--store=memory: run"] {
            assert!(is_run(line), "{line}");
        }
        for line in ["ls run", "--store run ls", "--store run", "--bad"] {
            assert!(!is_run(line), "{line}");
        }
    }
}
