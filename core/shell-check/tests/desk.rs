//! The desk at which blocking callers pass on the role of driver: at most one drives, and nobody
//! sleeps for ever.

use fencelock_shell_check::explore;
use fencelock_shell_check::room::{caller_and_drop, callers, callers_one_of_whom_keeps_the_role};

#[test]
fn two_callers() {
    explore(Some(4), || callers(&[0, 0], false));
}

#[test]
fn two_callers_one_slower() {
    explore(None, || callers(&[0, 1], false));
}

#[test]
fn three_callers() {
    explore(Some(3), || callers(&[0, 1, 0], false));
}

#[test]
fn a_caller_and_the_standby_thread() {
    explore(Some(3), || callers(&[0], true));
}

#[test]
fn two_callers_and_the_standby_thread() {
    explore(Some(2), || callers(&[0, 0], true));
}

#[test]
fn a_caller_beside_a_dropped_guard() {
    explore(None, || caller_and_drop(false));
    explore(Some(2), || caller_and_drop(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_role_that_is_kept_is_found() {
    explore(None, callers_one_of_whom_keeps_the_role);
}
