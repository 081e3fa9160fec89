use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread;

use fencelock_engine::request::Request;
use fencelock_engine::transport::{Doubt, Transport};

use super::{begin, end, flush};

/// Counts its flushes, and asks for as many more of another from within.
#[derive(Default)]
struct Counts {
    flushes: AtomicUsize,
    leads_to: Option<Arc<dyn Transport>>,
    executes: bool,
}

impl Transport for Counts {
    fn enqueue(&self, _: Request) {}
    fn flush(&self) {
        self.flushes.fetch_add(1, Ordering::SeqCst);
        if let Some(next) = &self.leads_to {
            flush(next);
        }
    }
    fn executes(&self) -> bool {
        self.executes
    }
    fn reconnect(&self, _: Doubt) {}
    fn close(&self) {}
}

fn counts() -> (Arc<Counts>, Arc<dyn Transport>) {
    let counts = Arc::new(Counts::default());
    (counts.clone(), counts)
}

fn seen(counts: &Counts) -> usize {
    counts.flushes.load(Ordering::SeqCst)
}

#[test]
fn outside_a_section_each_flush_is_done_at_once() {
    let (count, transport) = counts();
    flush(&transport);
    flush(&transport);
    assert_eq!(seen(&count), 2);
    end();
    assert_eq!(seen(&count), 2);
}

#[test]
fn a_section_flushes_once_at_its_end() {
    let ((first, one), (second, other)) = (counts(), counts());
    begin();
    begin();
    for _ in 0..3 {
        flush(&one);
        flush(&other);
    }
    assert_eq!((seen(&first), seen(&second)), (0, 0));
    end();
    assert_eq!((seen(&first), seen(&second)), (1, 1));
    flush(&one);
    assert_eq!(seen(&first), 2, "the section is over");
}

#[test]
fn what_a_flush_leads_to_is_flushed_by_the_outermost() {
    let (last, transport) = counts();
    let chain: Arc<dyn Transport> =
        Arc::new(Counts { leads_to: Some(transport), ..Counts::default() });
    flush(&chain);
    assert_eq!(seen(&last), 1);
    begin();
    flush(&chain);
    end();
    assert_eq!(seen(&last), 2);
}

#[test]
fn one_that_executes_is_not_held_back() {
    let (count, held) = counts();
    let memory = Arc::new(Counts { executes: true, leads_to: Some(held), ..Counts::default() });
    let transport: Arc<dyn Transport> = memory.clone();
    begin();
    flush(&transport);
    flush(&transport);
    assert_eq!((seen(&memory), seen(&count)), (2, 0), "what it leads to is held back");
    end();
    assert_eq!((seen(&memory), seen(&count)), (2, 1));
}

#[test]
fn the_stack_stays_flat() {
    /// Asks for one more flush of itself from within each, and says how deep it is.
    #[derive(Default)]
    struct Chain {
        depth: AtomicUsize,
        deepest: AtomicUsize,
        left: AtomicUsize,
        next: OnceLock<Weak<dyn Transport>>,
    }
    impl Transport for Chain {
        fn enqueue(&self, _: Request) {}
        fn flush(&self) {
            let depth = self.depth.fetch_add(1, Ordering::SeqCst) + 1;
            self.deepest.fetch_max(depth, Ordering::SeqCst);
            if self.left.fetch_sub(1, Ordering::SeqCst) > 1 {
                flush(&self.next.get().unwrap().upgrade().unwrap());
            }
            self.depth.fetch_sub(1, Ordering::SeqCst);
        }
        fn executes(&self) -> bool {
            true
        }
        fn reconnect(&self, _: Doubt) {}
        fn close(&self) {}
    }
    let chain = Arc::new(Chain { left: AtomicUsize::new(100), ..Chain::default() });
    let transport: Arc<dyn Transport> = chain.clone();
    assert!(chain.next.set(Arc::downgrade(&transport)).is_ok());
    begin();
    flush(&transport);
    end();
    assert_eq!(chain.left.load(Ordering::SeqCst), 0);
    assert_eq!(chain.deepest.load(Ordering::SeqCst), 1);
}

#[test]
fn other_threads_are_not_held_back() {
    let (count, transport) = counts();
    begin();
    thread::spawn(move || flush(&transport)).join().unwrap();
    assert_eq!(seen(&count), 1);
    end();
}

#[test]
fn a_thread_that_ends_within_a_section_sends() {
    let (count, transport) = counts();
    thread::spawn(move || {
        begin();
        flush(&transport);
    })
    .join()
    .unwrap();
    assert_eq!(seen(&count), 1);
}

#[test]
fn a_blocking_call_ends_the_section() {
    let client = crate::blocking::Client::connect("memory:").unwrap();
    let lock = client.lock("corked").unwrap().non_reentrant();
    begin();
    // It would wait for ever for what was held back.
    let guard = lock.acquire().unwrap();
    begin();
    drop(guard);
    lock.acquire().unwrap().release().unwrap();
    end();
}
