//! The listener in which a completion arrives, in every order of its threads.

use fencelock_shell_check::{explore, handover};

#[test]
fn a_waiter_is_woken() {
    explore(None, handover::a_waiter_is_woken);
}

#[test]
fn what_is_ready_is_there() {
    explore(None, handover::what_is_ready_is_there);
}

#[test]
fn the_last_waker_is_woken() {
    explore(None, handover::the_last_waker_is_woken);
}

#[test]
fn promise_11_an_outcome_is_delivered_or_given_back() {
    for polls in 0..3 {
        explore(None, move || handover::delivered_or_given_back(polls));
    }
}

#[test]
fn promise_08_a_callback_hears_of_a_loss_once() {
    explore(None, handover::a_callback_hears_once);
}

#[test]
fn promise_08_a_watcher_hears_of_a_loss() {
    explore(None, handover::a_watcher_is_woken);
}

#[test]
fn wanted_and_lost_are_two_things() {
    explore(None, handover::wanted_and_lost_are_two_things);
}
