//! What a heartbeat costs when many wait for one lock: `sqlite_waiters FILE [WAITERS…]`. Each
//! waiter stands for a process; their heartbeats are sent one by one.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fencelock_engine::reply::{Body, Reply, Standing};
use fencelock_engine::request::{Acquire, Beat, Op, Request, RequestId, Wait};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, Event, HoldId, Name};

struct Replies(Mutex<Sender<Reply>>);

impl Sink for Replies {
    fn deliver(&self, event: Event) {
        if let Event::Reply { result, .. } = event {
            let sender = self.0.lock().expect("nobody panicked");
            sender.send(result.expect("the file works")).expect("somebody listens");
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("the path of a file to make");
    let counts: Vec<u64> = args.map(|count| count.parse().expect("a number")).collect();
    let counts = if counts.is_empty() { vec![1, 100, 1_000] } else { counts };
    let (sender, replies) = channel();
    let client = ClientId::new(1, "waiters").expect("a label");
    let options = fencelock_sqlite::Options::new(&path);
    let sink = Arc::new(Replies(Mutex::new(sender)));
    let transport = fencelock_sqlite::open(options, client, sink).expect("it opens");
    let send = |op: Op| -> Reply {
        transport.enqueue(Request { id: RequestId(0), op });
        transport.flush();
        replies.recv().expect("a reply comes")
    };
    let silence = Duration::from_secs(600);
    for count in counts {
        let lock = Name::new(format!("queue of {count}")).expect("a name");
        let acquire = |hold: u64, now: u64| Acquire {
            wait: Some(Wait { ticket: 0, claim: Duration::from_secs(3), silence }),
            ..Acquire::new(
                lock.clone(),
                HoldId(u128::from(hold)),
                Duration::from_secs(3_600),
                now + 3_000_000,
            )
        };
        let mut now = send(Op::Time).now;
        for hold in 0..=count {
            now = send(Op::Acquire(acquire(hold + 1, now))).now;
        }
        let (start, mut beats) = (Instant::now(), 0_u64);
        while start.elapsed() < Duration::from_secs(2) {
            let hold = HoldId(u128::from(beats % count + 2));
            let beat = Beat::new(lock.clone(), hold, silence);
            let Body::Beat(states) = send(Op::Beat(vec![beat])).body else { panic!("no state") };
            assert!(matches!(&states[0], Ok(state) if state.standing == Standing::Queued));
            beats += 1;
        }
        let each = start.elapsed() / u32::try_from(beats).expect("not so many");
        println!("{count} waiting: {each:.0?} for a heartbeat");
    }
}
