//! A transport whose events are collected.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock_engine::event::Event;
use fencelock_engine::reply::{Body, Failure, Push, RefusalKind, Released, Reply, Standing, State};
use fencelock_engine::request::{Acquire, Beat, Op, Release, Request, RequestId, Wait};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, Error, HoldId, Name};
use fencelock_redis::{Options, RedisTransport, open};
use fencelock_testkit::{RedisServer, eventually};
use tokio::runtime::Runtime;

/// Keeps what is delivered.
#[derive(Default)]
pub struct Collector {
    events: Mutex<Vec<Event>>,
}

impl Sink for Collector {
    fn deliver(&self, event: Event) {
        self.events.lock().unwrap().push(event);
    }
}

impl Collector {
    pub fn all(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }

    /// Takes the first event that `pick` wants out of what has come or will come.
    pub fn find<T>(&self, what: &str, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        let seen = Seen(self);
        let found = eventually(what, || {
            let mut events = self.events.lock().unwrap();
            let (at, found) =
                events.iter().enumerate().find_map(|(at, event)| Some((at, pick(event)?)))?;
            events.remove(at);
            Some(found)
        });
        std::mem::forget(seen);
        found
    }
}

/// Shows what came instead, when a wait was in vain.
struct Seen<'a>(&'a Collector);

impl Drop for Seen<'_> {
    fn drop(&mut self) {
        let events = self.0.all();
        eprintln!("came instead: {:?}", &events[..events.len().min(5)]);
    }
}

/// A transport on a runtime of its own.
pub struct Client {
    pub transport: Arc<RedisTransport>,
    pub sink: Arc<Collector>,
    pub id: ClientId,
    next: AtomicU64,
    runtime: Option<Runtime>,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.transport.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Client {
    /// Opens and does not wait.
    pub fn open(options: Options) -> Client {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let sink = Arc::new(Collector::default());
        let random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let id = ClientId::new(random.rotate_left(17) ^ hold().0 as u64, "a test").unwrap();
        let transport = open(options, id.clone(), sink.clone(), runtime.handle()).unwrap();
        Client { transport, sink, id, next: AtomicU64::new(1), runtime: Some(runtime) }
    }

    /// Opens and waits until it is up.
    pub fn up(options: Options) -> Client {
        let client = Client::open(options);
        client.await_up();
        client
    }

    pub fn to(server: &RedisServer) -> Client {
        Client::up(Options::from_url(&server.url()).unwrap())
    }

    pub fn await_up(&self) -> u64 {
        self.sink.find("the connection is up", |event| match event {
            Event::Up { now } => Some(*now),
            _ => None,
        })
    }

    pub fn await_down(&self) -> String {
        self.sink.find("the connection is down", |event| match event {
            Event::Down { reason } => Some(reason.clone()),
            _ => None,
        })
    }

    pub fn await_misconfigured(&self) -> Error {
        self.sink.find("it is misconfigured", |event| match event {
            Event::Misconfigured(error) => Some(error.clone()),
            _ => None,
        })
    }

    /// Enqueues and flushes.
    pub fn send(&self, op: Op) -> RequestId {
        let id = self.enqueue(op);
        self.transport.flush();
        id
    }

    pub fn enqueue(&self, op: Op) -> RequestId {
        let id = RequestId(self.next.fetch_add(1, Ordering::SeqCst));
        self.transport.enqueue(Request { id, op });
        id
    }

    pub fn answer(&self, id: RequestId) -> Result<Reply, Failure> {
        self.sink.find(&format!("the answer to {id:?}"), |event| match event {
            Event::Reply { request, result } if *request == id => Some(result.clone()),
            _ => None,
        })
    }

    pub fn call(&self, op: Op) -> Result<Reply, Failure> {
        self.answer(self.send(op))
    }

    pub fn await_push(&self) -> Push {
        self.sink.find("a push", |event| match event {
            Event::Push(push) => Some(push.clone()),
            _ => None,
        })
    }

    /// Acquires without waiting, and expects a grant.
    pub fn grant(&self, name: &str) -> HoldId {
        let hold = hold();
        let state = self.acquire(name, hold, false).unwrap();
        assert_eq!(state.standing, Standing::Granted, "{name}: {state:?}");
        hold
    }

    pub fn acquire(&self, name: &str, hold: HoldId, wait: bool) -> Result<State, Failure> {
        match self.call(acquire(name, hold, wait))?.body {
            Body::Acquire(state) => Ok(state),
            body => panic!("not the answer to an acquire: {body:?}"),
        }
    }

    pub fn release(&self, name: &str, hold: HoldId) -> Result<Released, Failure> {
        match self.call(release(name, hold))?.body {
            Body::Release(released) => Ok(released),
            body => panic!("not the answer to a release: {body:?}"),
        }
    }
}

pub fn name(name: &str) -> Name {
    Name::new(name).unwrap()
}

/// A fresh hold id.
pub fn hold() -> HoldId {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    // As an engine's, they differ in the first half, which is what the scripts keep.
    HoldId((nanos + u128::from(NEXT.fetch_add(1, Ordering::SeqCst))) << 64)
}

pub fn micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64
}

pub fn acquire(lock: &str, hold: HoldId, wait: bool) -> Op {
    let claim = Duration::from_secs(3);
    Op::Acquire(Acquire {
        wait: wait.then_some(Wait { ticket: 0, claim, silence: claim }),
        ..Acquire::new(name(lock), hold, Duration::from_secs(30), micros() + 3_000_000)
    })
}

pub fn release(lock: &str, hold: HoldId) -> Op {
    Op::Release(Release::new(name(lock), hold, 0))
}

pub fn beat(locks: &[(&str, HoldId)]) -> Op {
    let beat = |&(lock, hold)| Beat {
        silence: Duration::from_secs(3),
        ..Beat::new(name(lock), hold, Duration::from_secs(30))
    };
    Op::Beat(locks.iter().map(beat).collect())
}

/// The refusal's kind and words.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Failure>) -> (RefusalKind, String) {
    match result {
        Err(Failure::Refused(refusal)) => (refusal.kind, refusal.message),
        other => panic!("not refused: {other:?}"),
    }
}
