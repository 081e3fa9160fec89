//! How many uncontended pairs of acquire and release a second go through the transport.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fencelock_engine::request::{Acquire, Op, Release, Request, RequestId};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, Event, HoldId, Name};

struct Count {
    caller: std::thread::Thread,
    replies: AtomicUsize,
    now: std::sync::atomic::AtomicU64,
}

impl Sink for Count {
    fn deliver(&self, event: Event) {
        if let Event::Reply { result: Ok(reply), .. } = event {
            self.now.store(reply.now, Ordering::Relaxed);
            self.replies.fetch_add(1, Ordering::Release);
            self.caller.unpark();
        }
    }
}

fn main() {
    let sink = Arc::new(Count {
        caller: std::thread::current(),
        replies: AtomicUsize::new(0),
        now: Default::default(),
    });
    let client = ClientId::new(1, "pairs").expect("a label");
    let path = std::env::args().nth(1).expect("the path of a file to make");
    let options = fencelock_sqlite::Options::new(path);
    let transport =
        fencelock_sqlite::open(options, client, Arc::clone(&sink) as _).expect("it opens");
    let lock = Name::new("pairs").expect("a name");
    let send = |op: Op| {
        let before = sink.replies.load(Ordering::Acquire);
        transport.enqueue(Request { id: RequestId(0), op });
        transport.flush();
        while sink.replies.load(Ordering::Acquire) == before {
            std::thread::park();
        }
    };
    send(Op::Time);
    let (start, mut pairs) = (Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_secs(2) {
        pairs += 1;
        let hold = HoldId(u128::from(pairs));
        send(Op::Acquire(Acquire::new(
            lock.clone(),
            hold,
            Duration::from_secs(30),
            sink.now.load(Ordering::Relaxed) + 3_000_000,
        )));
        let lock = lock.clone();
        send(Op::Release(Release::new(lock, hold, 0)));
    }
    let took = start.elapsed();
    assert_eq!(sink.replies.load(Ordering::Relaxed) as u64, 2 * pairs + 1);
    println!("{:.0} pairs a second", pairs as f64 / took.as_secs_f64());
}
