use std::sync::atomic::{AtomicU32, AtomicUsize};
use std::thread;
use std::time::Duration;

use crate::blocking::desk::{Desk, LOOKS, Sat, Seat, Seen, Watch};
use crate::sync::{Arc, Ordering};

fn seat() -> Arc<Seat> {
    Seat::new(thread::current())
}

#[test]
fn the_role_is_one() {
    let desk = Desk::new();
    assert!(desk.take());
    assert!(!desk.take());
    assert_eq!(desk.sit(&seat()), Sat::Park);
}

#[test]
fn a_leaving_driver_hands_over_to_a_seat() {
    let desk = Desk::new();
    assert!(desk.take());
    let (first, second) = (seat(), seat());
    desk.sit(&first);
    desk.sit(&second);
    assert!(!desk.leave());
    assert!(second.is_offered() && !first.is_offered());
    assert!(!desk.take(), "handed over, never free");
    assert!(!desk.rise(&second));
    assert!(first.is_offered());
    assert!(!desk.rise(&first));
    assert!(desk.take());
}

#[test]
fn the_standby_drives_only_when_callers_are_away_and_yields() {
    let desk = Desk::new();
    let mut seen = Seen::default();
    assert!(desk.take());
    assert!(!desk.leave());
    assert_eq!(desk.watch(&mut seen), Watch::Look, "somebody was here lately");
    assert_eq!(desk.watch(&mut seen), Watch::Drive);
    let caller = seat();
    assert_eq!(desk.sit(&caller), Sat::Ask);
    assert!(!desk.leave());
    assert!(caller.is_offered());
    let mut last = Watch::Look;
    for _ in 0..=LOOKS {
        last = desk.watch(&mut seen);
    }
    assert_eq!(last, Watch::Sleep, "the same caller drives on");
    assert!(!desk.rise(&caller));
    assert_eq!(desk.watch(&mut seen), Watch::Drive);
}

#[test]
fn a_host_loop_takes_turns_and_the_standby_only_in_its_place() {
    let desk = Desk::new();
    let mut seen = Seen::default();
    assert!(!desk.expect_host(), "nobody to ask");
    for _ in 0..3 * LOOKS {
        assert!(desk.take_turn());
        assert!(!desk.leave());
        assert_eq!(desk.watch(&mut seen), Watch::Look, "the loop turned lately");
    }
    for _ in 0..LOOKS {
        assert_eq!(desk.watch(&mut seen), Watch::Turn, "the loop may be busy");
        assert!(!desk.leave());
    }
    assert_eq!(desk.watch(&mut seen), Watch::Drive, "the loop has nothing to wait for");
    assert!(desk.expect_host());
    assert!(!desk.expect_host(), "it was asked already");
    assert!(!desk.leave());
    assert_eq!(desk.watch(&mut seen), Watch::Turn);
    assert!(!desk.leave());
    desk.forget_host();
    assert_eq!(desk.watch(&mut seen), Watch::Drive);
}

#[test]
fn a_host_loop_that_came_in_vain_is_told_when_the_role_is_free() {
    let desk = Desk::new();
    assert!(desk.take());
    assert!(!desk.take_turn());
    let caller = seat();
    assert_eq!(desk.sit(&caller), Sat::Park);
    assert!(!desk.leave(), "handed to the caller");
    assert!(desk.rise(&caller), "now it is free");
    assert!(desk.take_turn());
    assert!(!desk.leave(), "told once");
    assert!(desk.take());
    assert!(!desk.take_turn());
    desk.forget_host();
    assert!(!desk.leave(), "it has gone");
}

/// Callers come and go; each needs one event, and events are delivered only by a driver.
#[test]
fn nobody_is_forgotten() {
    const CALLERS: usize = 8;
    const ROUNDS: u32 = 300;
    let desk = Arc::new(Desk::new());
    let inside = Arc::new(AtomicUsize::new(0));
    let events: Arc<Vec<AtomicU32>> = Arc::new((0..CALLERS).map(|_| AtomicU32::new(0)).collect());
    let threads: Vec<_> = (0..CALLERS)
        .map(|me| {
            let (desk, inside, events) = (desk.clone(), inside.clone(), events.clone());
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
                    assert!(!desk.leave());
                };
                for _ in 0..ROUNDS {
                    let begin = events[me].load(Ordering::SeqCst);
                    let done = || events[me].load(Ordering::SeqCst) != begin;
                    let seat = Seat::new(thread::current());
                    if desk.sit(&seat) == Sat::Drive {
                        drive(&done);
                        continue;
                    }
                    loop {
                        if done() {
                            assert!(!desk.rise(&seat));
                            break;
                        }
                        if seat.is_offered() {
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
    assert!(desk.take(), "the role is free at the end");
}
