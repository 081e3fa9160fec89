//! How fast the transport is, beside the bare `redis` crate with the same scripts in the same run:
//! acquire and release pairs a second, one after the other and 64 at a time.
//!
//! `cargo run --release --example pairs [seconds]`, or under `taskset -c 0` to take idle-CPU wake-ups out of
//! the figures. It starts a server of its own.

use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fencelock_engine::event::Event;
use fencelock_engine::redis::{Codec, Command};
use fencelock_engine::reply::{Body, Reply, Standing};
use fencelock_engine::request::{Acquire, Op, Release, Request, RequestId};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, HoldId, Name};
use fencelock_redis::{Options, RedisTransport, open};
use fencelock_testkit::RedisServer;

type Failed = Box<dyn std::error::Error>;

const KEYS: usize = 64;

#[derive(Default)]
struct Inbox {
    state: Mutex<(Vec<Event>, Option<Waker>)>,
}

impl Sink for Inbox {
    fn deliver(&self, event: Event) {
        self.deliver_all(&mut vec![event]);
    }

    fn deliver_all(&self, events: &mut Vec<Event>) {
        let waker = match self.state.lock() {
            Ok(mut state) => {
                state.0.append(events);
                state.1.take()
            }
            Err(_) => None,
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Inbox {
    async fn next(&self, into: &mut Vec<Event>) {
        std::future::poll_fn(|cx| match self.state.lock() {
            Ok(mut state) if state.0.is_empty() => {
                state.1 = Some(cx.waker().clone());
                Poll::Pending
            }
            Ok(mut state) => {
                into.append(&mut state.0);
                Poll::Ready(())
            }
            Err(_) => Poll::Ready(()),
        })
        .await;
    }
}

fn pair(name: &Name, hold: HoldId, now: u64) -> (Op, Op) {
    let acquire = Acquire::new(name.clone(), hold, Duration::from_secs(30), now + 3_000_000);
    let release = Release::new(name.clone(), hold, 0);
    (Op::Acquire(acquire), Op::Release(release))
}

fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

struct Driven {
    runtime: tokio::runtime::Runtime,
    transport: Arc<RedisTransport>,
    inbox: Arc<Inbox>,
    next: u64,
    events: Vec<Event>,
}

impl Driven {
    fn open(url: &str) -> Result<Driven, Failed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let inbox = Arc::new(Inbox::default());
        let options = Options::from_url(url)?;
        let client = ClientId::new(1, "pairs")?;
        let transport = open(options, client, inbox.clone(), runtime.handle())?;
        let mut driven = Driven { runtime, transport, inbox, next: 0, events: Vec::new() };
        let up = driven.wait(1);
        assert!(matches!(up[..], [Event::Up { .. }]), "{up:?}");
        Ok(driven)
    }

    fn wait(&mut self, count: usize) -> Vec<Event> {
        let Driven { runtime, inbox, events, .. } = self;
        runtime.block_on(async {
            while events.len() < count {
                inbox.next(events).await;
            }
        });
        std::mem::take(events)
    }

    fn send(&mut self, ops: impl IntoIterator<Item = Op>) -> usize {
        let before = self.next;
        for op in ops {
            self.next += 1;
            self.transport.enqueue(Request { id: RequestId(self.next), op });
        }
        self.transport.flush();
        (self.next - before) as usize
    }

    fn round(&mut self, ops: impl IntoIterator<Item = Op>) {
        let count = self.send(ops);
        for event in self.wait(count) {
            match event {
                Event::Reply { result: Ok(reply), .. } => check(&reply),
                other => panic!("{other:?}"),
            }
        }
    }
}

fn check(reply: &Reply) {
    match &reply.body {
        Body::Acquire(state) => assert_eq!(state.standing, Standing::Granted),
        Body::Release(_) => {}
        other => panic!("{other:?}"),
    }
}

fn packed(codec: &Codec, op: &Op) -> redis::Cmd {
    let Command::Script { script, keys, args } = codec.encode(op) else { panic!("no script") };
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.sha).arg(keys.len());
    for part in keys.iter().chain(args.iter()) {
        command.arg(part);
    }
    command
}

fn rate(seconds: f64, mut pairs: impl FnMut() -> Result<usize, Failed>) -> Result<f64, Failed> {
    let start = Instant::now();
    let mut count = 0;
    while start.elapsed().as_secs_f64() < seconds {
        count += pairs()?;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64())
}

fn main() -> Result<(), Failed> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(10.0), |text| text.parse())?;
    let server = RedisServer::start()?;
    let mut driven = Driven::open(&server.url())?;
    let mut bare = redis::Client::open(server.url())?.get_connection()?;
    let codec = Codec::new(ClientId::new(2, "pairs")?, "fl:")?;
    let names: Vec<Name> =
        (0..KEYS).map(|n| Name::new(format!("lock/{n}"))).collect::<Result<_, _>>()?;
    let mut holds = (micros() as u128) << 64;
    let mut hold = || {
        holds += 1 << 64;
        HoldId(holds)
    };

    // Short turns one after the other, and the best of each: other work on the machine slows some.
    const TURN: f64 = 0.05;
    let mut best = [[0.0_f64; 2]; 2];
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        let plain = rate(TURN, || {
            let (acquire, release) = pair(&names[0], hold(), micros());
            packed(&codec, &acquire).query::<redis::Value>(&mut bare)?;
            packed(&codec, &release).query::<redis::Value>(&mut bare)?;
            Ok(1)
        })?;
        let ours = rate(TURN, || {
            let (acquire, release) = pair(&names[0], hold(), micros());
            driven.round([acquire]);
            driven.round([release]);
            Ok(1)
        })?;
        best[0] = [best[0][0].max(plain), best[0][1].max(ours)];

        let plain = rate(TURN, || {
            let pairs: Vec<_> = names.iter().map(|name| pair(name, hold(), micros())).collect();
            for second in [false, true] {
                let mut pipe = redis::pipe();
                for (acquire, release) in &pairs {
                    pipe.add_command(packed(&codec, if second { release } else { acquire }));
                }
                pipe.query::<Vec<redis::Value>>(&mut bare)?;
            }
            Ok(KEYS)
        })?;
        let ours = rate(TURN, || {
            let pairs = names.iter().map(|name| pair(name, hold(), micros()));
            let (acquires, releases): (Vec<_>, Vec<_>) = pairs.unzip();
            driven.round(acquires);
            driven.round(releases);
            Ok(KEYS)
        })?;
        best[1] = [best[1][0].max(plain), best[1][1].max(ours)];
    }
    println!("{:>8} {:>12} {:>12} {:>7}", "keys", "bare/s", "transport/s", "time");
    for (keys, [plain, ours]) in [(1, best[0]), (KEYS, best[1])] {
        println!("{keys:>8} {plain:>12.0} {ours:>12.0} {:>7.3}", plain / ours);
    }
    Ok(())
}
