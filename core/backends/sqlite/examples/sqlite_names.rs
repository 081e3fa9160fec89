//! What many names leave in the file that are locked and released once: `sqlite_names FILE [NAMES]
//! [RETENTION]`, the retention in seconds.

use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock_engine::reply::{Body, Reply};
use fencelock_engine::request::{Acquire, Op, Release, Request, RequestId};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, Event, HoldId, Name};

/// How many names share a transaction.
const TOGETHER: u64 = 64;

struct Replies(Mutex<Sender<Reply>>);

impl Sink for Replies {
    fn deliver(&self, event: Event) {
        if let Event::Reply { result, .. } = event {
            let sender = self.0.lock().expect("nobody panicked");
            sender.send(result.expect("the file works")).expect("somebody listens");
        }
    }
}

fn bytes(path: &Path) -> (u64, u64) {
    let size = |end: &str| {
        let mut path = path.as_os_str().to_owned();
        path.push(end);
        std::fs::metadata(path).map_or(0, |found| found.len())
    };
    (size(""), size("-wal"))
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("the path of a file to make");
    let names: u64 = args.next().map_or(1_000_000, |names| names.parse().expect("a number"));
    let retention = args.next().map_or(60, |seconds| seconds.parse().expect("seconds"));
    let retention = Duration::from_secs(retention);
    let (sender, replies) = channel();
    let client = ClientId::new(1, "names").expect("a label");
    let options = fencelock_sqlite::Options::new(&path);
    let sink = Arc::new(Replies(Mutex::new(sender)));
    let transport = fencelock_sqlite::open(options, client, sink).expect("it opens");
    let path = Path::new(&path);
    let send = |ops: Vec<Op>| -> Vec<Reply> {
        let count = ops.len();
        for op in ops {
            transport.enqueue(Request { id: RequestId(0), op });
        }
        transport.flush();
        (0..count).map(|_| replies.recv().expect("a reply comes")).collect()
    };
    let mut now = send(vec![Op::Time])[0].now;
    let start = Instant::now();
    let mut told = start;
    let mut most = (0, 0);
    for first in (0..names).step_by(TOGETHER as usize) {
        let asks: Vec<Acquire> = (first..(first + TOGETHER).min(names))
            .map(|at| {
                Acquire::new(
                    Name::new(format!("order-{at:014}")).expect("a name of 20 bytes"),
                    HoldId(u128::from(at) + 1),
                    Duration::from_secs(30),
                    now + 3_000_000,
                )
            })
            .collect();
        let states = send(asks.iter().cloned().map(Op::Acquire).collect());
        let releases = asks.into_iter().zip(states).map(|(ask, reply)| {
            now = reply.now;
            let Body::Acquire(state) = reply.body else { panic!("no state") };
            let (lock, hold, used) = (ask.lock, ask.hold, state.token);
            Op::Release(Release { retention, ..Release::new(lock, hold, used) })
        });
        send(releases.collect());
        let size = bytes(path);
        most = (most.0.max(size.0), most.1.max(size.1));
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("{first} names: {} kB, log {} kB", size.0 / 1_000, size.1 / 1_000);
        }
    }
    let took = start.elapsed();
    println!(
        "{names} names in {took:.0?}, at most {} kB, log {} kB",
        most.0 / 1_000,
        most.1 / 1_000
    );
    let end = Instant::now();
    loop {
        std::thread::sleep(Duration::from_secs(2));
        let Body::List(left) =
            send(vec![Op::List { prefix: String::new(), limit: 1 }])[0].body.clone()
        else {
            panic!("no list")
        };
        let size = bytes(path);
        println!("{:.0?} later: {} kB, log {} kB", end.elapsed(), size.0 / 1_000, size.1 / 1_000);
        if left.is_empty() && size.0 < 2_000_000 {
            return;
        }
    }
}
