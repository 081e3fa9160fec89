//! A re-entry costs no allocation and no waiting.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = COUNT.get();
    run();
    COUNT.get() - before
}

#[tokio::test]
async fn a_re_entry_is_ready_at_once_and_allocates_nothing() {
    let client = fencelock::Client::connect("memory:allocations").await.unwrap();
    let lock = client.lock("nested").unwrap();
    let outer = lock.acquire().await.unwrap();
    let reenter = || {
        let acquire = pin!(lock.acquire());
        match acquire.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(guard) => assert!(guard.unwrap().is_reentry()),
            Poll::Pending => panic!("a re-entry waited"),
        }
    };
    // Tables grow at first.
    (0..100).for_each(|_| reenter());
    let count = allocations(|| (0..1000).for_each(|_| reenter()));
    assert_eq!(count, 0, "allocations for 1000 re-entries");
    drop(outer);
}

#[test]
fn a_blocking_re_entry_allocates_nothing() {
    let client = fencelock::blocking::Client::connect("memory:allocations2").unwrap();
    let lock = client.lock("nested").unwrap();
    let outer = lock.acquire().unwrap();
    let reenter = || lock.acquire().unwrap().release().unwrap();
    (0..100).for_each(|_| reenter());
    let count = allocations(|| (0..1000).for_each(|_| reenter()));
    assert_eq!(count, 0, "allocations for 1000 re-entries");
    outer.release().unwrap();
}
