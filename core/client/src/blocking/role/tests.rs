use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::thread;
use std::time::Duration;

use crate::blocking::role::{LOOKS, Parked, Role, Seen, Then, Watch};
use crate::sync::{Arc, Ordering};

fn parked() -> Arc<Parked> {
    Parked::new(thread::current())
}

#[test]
fn the_role_is_one() {
    let role = Role::new();
    assert!(role.take());
    assert!(!role.take());
    assert_eq!(role.request(&parked()), Then::Park);
}

#[test]
fn a_leaving_driver_hands_over_to_a_seat() {
    let role = Role::new();
    assert!(role.take());
    let (first, second) = (parked(), parked());
    role.request(&first);
    role.request(&second);
    assert!(!role.leave());
    assert!(second.is_offered() && !first.is_offered());
    assert!(!role.take(), "handed over, never free");
    assert!(!role.withdraw(&second));
    assert!(first.is_offered());
    assert!(!role.withdraw(&first));
    assert!(role.take());
}

#[test]
fn the_standby_drives_only_when_callers_are_away_and_yields() {
    let role = Role::new();
    let mut seen = Seen::default();
    assert!(role.take());
    assert!(!role.leave());
    assert_eq!(role.watch(&mut seen), Watch::Look, "somebody was here lately");
    assert_eq!(role.watch(&mut seen), Watch::Drive);
    let caller = parked();
    assert_eq!(role.request(&caller), Then::Ask);
    assert!(!role.leave());
    assert!(caller.is_offered());
    let mut last = Watch::Look;
    for _ in 0..=LOOKS {
        last = role.watch(&mut seen);
    }
    assert_eq!(last, Watch::Sleep, "the same caller drives on");
    assert!(!role.withdraw(&caller));
    assert_eq!(role.watch(&mut seen), Watch::Drive);
}

#[test]
fn a_host_loop_takes_turns_and_the_standby_only_in_its_place() {
    let role = Role::new();
    let mut seen = Seen::default();
    assert!(!role.expect_host(), "nobody to ask");
    for _ in 0..3 * LOOKS {
        assert!(role.take_turn());
        assert!(!role.leave());
        assert_eq!(role.watch(&mut seen), Watch::Look, "the loop turned lately");
    }
    for _ in 0..LOOKS {
        assert_eq!(role.watch(&mut seen), Watch::Turn, "the loop may be busy");
        assert!(!role.leave());
    }
    assert_eq!(role.watch(&mut seen), Watch::Drive, "the loop has nothing to wait for");
    assert!(role.expect_host());
    assert!(!role.expect_host(), "it was asked already");
    assert!(!role.leave());
    assert_eq!(role.watch(&mut seen), Watch::Turn);
    assert!(!role.leave());
    role.forget_host();
    assert_eq!(role.watch(&mut seen), Watch::Drive);
}

#[test]
fn a_host_loop_that_came_in_vain_is_told_when_the_role_is_free() {
    let role = Role::new();
    assert!(role.take());
    assert!(!role.take_turn());
    let caller = parked();
    assert_eq!(role.request(&caller), Then::Park);
    assert!(!role.leave(), "handed to the caller");
    assert!(role.withdraw(&caller), "now it is free");
    assert!(role.take_turn());
    assert!(!role.leave(), "told once");
    assert!(role.take());
    assert!(!role.take_turn());
    role.forget_host();
    assert!(!role.leave(), "it has gone");
}

/// Callers come and go; each needs one event, and events are delivered only by a driver.
#[test]
fn nobody_is_forgotten() {
    const CALLERS: usize = 8;
    const ROUNDS: u32 = 300;
    let role = Arc::new(Role::new());
    let inside = Arc::new(AtomicUsize::new(0));
    let events: Arc<Vec<AtomicU32>> = Arc::new((0..CALLERS).map(|_| AtomicU32::new(0)).collect());
    let threads: Vec<_> = (0..CALLERS)
        .map(|me| {
            let (role, inside, events) = (role.clone(), inside.clone(), events.clone());
            thread::spawn(move || {
                let drive = |until: &dyn Fn() -> bool| {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two drivers");
                    while !until() {
                        for event in &*events {
                            event.fetch_add(1, Ordering::SeqCst);
                        }
                        thread::yield_now();
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                    assert!(!role.leave());
                };
                for _ in 0..ROUNDS {
                    let begin = events[me].load(Ordering::SeqCst);
                    let done = || events[me].load(Ordering::SeqCst) != begin;
                    let parked = Parked::new(thread::current());
                    if role.request(&parked) == Then::Drive {
                        drive(&done);
                        continue;
                    }
                    loop {
                        if done() {
                            assert!(!role.withdraw(&parked));
                            break;
                        }
                        if parked.is_offered() {
                            drive(&done);
                            break;
                        }
                        // The events here unpark nobody, hence the bound.
                        thread::park_timeout(Duration::from_millis(1));
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert!(role.take(), "the role is free at the end");
}
