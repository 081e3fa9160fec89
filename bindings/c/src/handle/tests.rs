use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

/// More under Miri would take minutes.
const TURNS: usize = if cfg!(miri) { 60 } else { 4_000 };

#[test]
fn a_handle_names_its_value_until_it_is_freed() {
    let table = Table::new(3);
    let first = table.insert("first".to_owned()).unwrap();
    let second = table.insert("second".to_owned()).unwrap();
    assert_ne!(first, second);
    assert_eq!(*table.pin(first).unwrap(), "first");
    assert_eq!(*table.pin(second).unwrap(), "second");
    assert_eq!(table.live(), 2);
    assert_eq!(*table.take(first).unwrap(), "first");
    assert!(table.pin(first).is_none());
    assert!(table.take(first).is_none());
    assert_eq!(table.live(), 1);
    let third = table.insert("third".to_owned()).unwrap();
    assert_ne!(third, first, "the slot is the same, its generation is not");
    assert!(table.pin(first).is_none());
    assert_eq!(*table.pin(third).unwrap(), "third");
    drop((table.take(second), table.take(third)));
}

#[test]
fn what_is_no_handle_names_nothing() {
    let table = Table::new(3);
    let other: Table<u8> = Table::new(4);
    let handle = table.insert(7_u8).unwrap();
    assert!(other.pin(handle).is_none(), "of another kind");
    other.insert(8).unwrap();
    assert!(other.pin(handle).is_none());
    for made_up in [0, 1, 3, u64::MAX, handle + 16, handle ^ 1 << 32, handle & !15, handle << 1] {
        assert!(table.pin(made_up).is_none(), "{made_up:#x}");
        assert!(table.take(made_up).is_none(), "{made_up:#x}");
    }
    for bit in 0..64 {
        assert!(table.pin(handle ^ 1 << bit).is_none());
    }
    let local = 5_u64;
    assert!(table.pin(ptr::from_ref(&local).addr() as u64).is_none());
    assert_eq!(table.pin(handle).as_deref(), Some(&7));
}

#[test]
fn a_value_in_use_outlives_its_handle() {
    let table = Table::new(1);
    let value = Arc::new(());
    let handle = table.insert(value.clone()).unwrap();
    let used = table.pin(handle).unwrap();
    drop(table.take(handle).unwrap());
    assert_eq!(table.live(), 0);
    assert_eq!(Arc::strong_count(&value), 2);
    assert_eq!(Arc::strong_count(&used), 2);
    drop(used);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn many_handles_need_many_blocks() {
    let table = Table::new(1);
    let count = if cfg!(miri) { 200 } else { 10_000 };
    let handles: Vec<u64> = (0..count).map(|n| table.insert(n).unwrap()).collect();
    assert_eq!(table.live(), count);
    for (n, handle) in handles.iter().enumerate() {
        assert_eq!(*table.pin(*handle).unwrap(), n as u64);
    }
    for handle in &handles {
        table.take(*handle).unwrap();
    }
    assert_eq!(table.live(), 0);
    let used = table.used.load(Ordering::Relaxed);
    let again: Vec<u64> = (0..count).map(|n| table.insert(n).unwrap()).collect();
    assert_eq!(table.used.load(Ordering::Relaxed), used, "slots are used again");
    for handle in again {
        table.take(handle).unwrap();
    }
}

#[test]
fn a_slot_whose_generations_are_used_up_is_not_used_again() {
    let table = Table::new(1);
    let first = table.insert(1).unwrap();
    table.take(first).unwrap();
    table.slot(0).unwrap().state.store(u64::from(u32::MAX) << 32, Ordering::Relaxed);
    let last = table.insert(2).unwrap();
    assert_eq!(last >> 32, u64::from(u32::MAX));
    table.take(last).unwrap();
    let next = table.insert(3).unwrap();
    assert_ne!(next >> 4 & 0xf, last >> 4 & 0xf);
    assert!(table.pin(last).is_none());
    table.take(next).unwrap();
}

/// Of all threads that free a handle, one succeeds; each value is dropped once, and never while it
/// is in use.
#[test]
fn threads_use_and_free_the_same_handles() {
    struct Counted<'a>(&'a AtomicUsize, AtomicU32);
    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            assert_eq!(self.1.load(Ordering::Relaxed), 0, "dropped while in use");
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let dropped = AtomicUsize::new(0);
    let freed = AtomicUsize::new(0);
    let table: Table<Counted<'_>> = Table::new(2);
    let shelf: Vec<AtomicU64> = (0..4).map(|_| AtomicU64::new(0)).collect();
    let mut made = 0;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for seed in 0..4_usize {
            let (table, shelf, dropped, freed) = (&table, &shelf, &dropped, &freed);
            threads.push(scope.spawn(move || {
                let mut made = 0;
                for turn in 0..TURNS {
                    let place = &shelf[(turn * 7 + seed * 13 + turn / 5) % shelf.len()];
                    let handle = place.load(Ordering::Relaxed);
                    match (turn + seed) % 3 {
                        0 => {
                            let new = Counted(dropped, AtomicU32::new(0));
                            place.store(table.insert(new).unwrap(), Ordering::Relaxed);
                            made += 1;
                            // What it replaced is freed by whoever is first.
                            if table.take(handle).is_some() {
                                freed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                        1 => {
                            if let Some(used) = table.pin(handle) {
                                used.1.fetch_add(1, Ordering::Relaxed);
                                thread::yield_now();
                                used.1.fetch_sub(1, Ordering::Relaxed);
                            }
                        }
                        _ => {
                            if table.take(handle).is_some() {
                                freed.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                }
                made
            }));
        }
        for thread in threads {
            made += thread.join().unwrap();
        }
    });
    assert_eq!(dropped.load(Ordering::Relaxed), freed.load(Ordering::Relaxed));
    assert_eq!(freed.load(Ordering::Relaxed) as u64 + table.live(), made);
}
