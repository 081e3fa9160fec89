//! The role at which blocking callers pass on the role of driver: at most one drives, and nobody
//! sleeps for ever.

use fencelock_shell_check::explore;
use fencelock_shell_check::scene::{
    busy_host_loop, caller_and_drop, caller_in_slices, callers, callers_one_of_whom_keeps_the_role,
    idle_host_loop,
};

#[test]
fn two_callers() {
    explore(Some(4), || callers(&[0, 0], false));
}

#[test]
fn two_callers_one_slower() {
    explore(Some(4), || callers(&[0, 1], false));
}

#[test]
fn three_callers() {
    explore(Some(2), || callers(&[0, 1, 0], false));
}

#[test]
fn a_caller_and_the_standby_thread() {
    explore(Some(2), || callers(&[0], true));
}

#[test]
fn two_callers_and_the_standby_thread() {
    explore(Some(1), || callers(&[0, 0], true));
}

#[test]
fn a_caller_who_gives_the_role_up_now_and_then() {
    explore(Some(4), || caller_in_slices(0, false));
    explore(Some(3), || caller_in_slices(1, false));
    explore(Some(1), || caller_in_slices(1, true));
}

#[test]
fn a_caller_beside_a_dropped_guard() {
    explore(None, || caller_and_drop(false));
    explore(Some(1), || caller_and_drop(true));
}

#[test]
fn a_host_loop_and_the_standby_thread() {
    explore(Some(2), || idle_host_loop(0, false, true));
    explore(Some(1), || idle_host_loop(1, false, true));
}

#[test]
fn a_busy_host_loop_is_served_by_the_standby_thread() {
    explore(Some(2), busy_host_loop);
}

/// The caller may drive when the loop comes: only the bell tells it to come again.
#[test]
fn a_host_loop_beside_a_caller() {
    explore(None, || idle_host_loop(0, true, false));
    explore(Some(1), || idle_host_loop(0, true, true));
}

/// In a process of its own: loom's word that all threads wait for ever may end it.
#[test]
fn a_role_that_is_kept_is_found() {
    const CHILD: &str = "FENCELOCK_SHELL_CHECK_CHILD";
    if std::env::var_os(CHILD).is_some() {
        explore(None, callers_one_of_whom_keeps_the_role);
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let child = std::process::Command::new(program)
        .args(["--exact", "a_role_that_is_kept_is_found", "--nocapture"])
        .env(CHILD, "1")
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("this program again");
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success() && told.contains("deadlock"), "not found: {told}");
}
