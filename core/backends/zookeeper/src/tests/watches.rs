//! Which watches are kept, without a server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use zookeeper_client as zk;

use crate::watches::{Kind, Left, Watch, Watches};

/// Takes one off when it is dropped, as the client crate does.
struct Kept(Arc<AtomicUsize>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The pump's part, and the client crate's.
#[derive(Default)]
struct Bench {
    watches: Watches,
    pumped: FuturesUnordered<Watch>,
    kept: Arc<AtomicUsize>,
    /// Those that are to fire.
    firing: Arc<Mutex<Vec<&'static str>>>,
}

impl Bench {
    fn leave(&mut self, path: &'static str, kind: Kind) {
        self.kept.fetch_add(1, Ordering::Relaxed);
        let (kept, firing) = (Kept(Arc::clone(&self.kept)), Arc::clone(&self.firing));
        let changed = std::future::poll_fn(move |_| {
            let _ = &kept;
            match firing.lock().unwrap().contains(&path) {
                true => Poll::Ready(event(path)),
                false => Poll::Pending,
            }
        });
        self.watches.keep(Left::new(path.to_owned(), kind, changed));
    }

    /// How many fired.
    fn pump(&mut self) -> usize {
        // Anew, so that each is polled.
        let pumped = std::mem::take(&mut self.pumped);
        self.pumped = pumped.into_iter().chain(self.watches.take_new()).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut count = 0;
        while let Poll::Ready(Some(ended)) = self.pumped.poll_next_unpin(&mut context) {
            if let Ok(fired) = ended {
                self.watches.fired(fired.kind, &fired.event.path);
                count += 1;
            }
        }
        count
    }

    fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }
}

fn event(path: &str) -> zk::WatchedEvent {
    zk::WatchedEvent::new(zk::EventType::NodeDeleted, path)
}

#[test]
fn many_abandoned_waits_behind_one_holder_leave_nothing() {
    let mut bench = Bench::default();
    for _ in 0..1_000 {
        bench.leave("/shop/holder", Kind::Node);
        bench.pump();
        assert_eq!(bench.kept(), 1);
        bench.watches.forget("/shop/holder");
    }
    bench.pump();
    assert_eq!(bench.kept(), 0);
}

#[test]
fn a_node_has_one_watch_of_each_kind_however_often_it_is_asked() {
    let mut bench = Bench::default();
    for _ in 0..1_000 {
        bench.leave("/shop", Kind::Node);
        bench.leave("/shop", Kind::Children);
        bench.leave("/shop/holder", Kind::Node);
        bench.pump();
    }
    assert_eq!(bench.kept(), 3);
    bench.firing.lock().unwrap().push("/shop");
    assert_eq!(bench.pump(), 2);
    assert_eq!(bench.kept(), 1);
    // What fired can be watched again.
    bench.firing.lock().unwrap().clear();
    bench.leave("/shop", Kind::Node);
    assert_eq!(bench.kept(), 2);
}

#[test]
fn one_that_is_forgotten_tells_nothing_and_the_next_does() {
    let mut bench = Bench::default();
    bench.leave("/shop/holder", Kind::Node);
    bench.pump();
    bench.watches.forget("/shop/holder");
    bench.leave("/shop/holder", Kind::Node);
    bench.firing.lock().unwrap().push("/shop/holder");
    assert_eq!(bench.pump(), 1);
    assert_eq!(bench.kept(), 0);
}
