//! A client without an engine: it sends requests one by one and keeps what is delivered.
#![allow(missing_docs)] // named after what they send and await

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use fencelock_engine::reply::{
    Body, Broken, Failure, LockInfo, Push, Released, Reply, Standing, State,
};
use fencelock_engine::request::{
    Acquire, Beat, Break, Mode, Op, Release, Request, RequestId, Wait,
};
use fencelock_engine::transport::{Sink, Transport};
use fencelock_engine::{ClientId, Event, HoldId, Name};

/// Nothing here takes so long.
pub const BOUND: Duration = Duration::from_secs(30);
pub const CLAIM: Duration = Duration::from_secs(3);
pub const LEASE: Duration = Duration::from_secs(30);

/// Keeps what is delivered.
#[derive(Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
    arrived: Condvar,
}

impl Sink for Recorder {
    fn deliver(&self, event: Event) {
        self.events.lock().unwrap().push(event);
        self.arrived.notify_all();
    }
}

impl Recorder {
    /// Waits for an event that `pick` wants, and takes it out.
    pub fn wait<T>(&self, bound: Duration, pick: impl Fn(&Event) -> Option<T>) -> Option<T> {
        let until = Instant::now() + bound;
        let mut events = self.events.lock().unwrap();
        loop {
            if let Some(at) = events.iter().position(|event| pick(event).is_some()) {
                return pick(&events.remove(at));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            events = self.arrived.wait_timeout(events, left).unwrap().0;
        }
    }

    pub fn delivered(&self) -> usize {
        self.events.lock().unwrap().len()
    }
}

/// One client.
pub struct Client<T: Transport> {
    pub transport: Arc<T>,
    pub recorder: Arc<Recorder>,
    requests: AtomicU64,
    /// The tokens that were told, to be named by the releases.
    tokens: Mutex<BTreeMap<HoldId, u64>>,
    modes: Mutex<BTreeMap<HoldId, Mode>>,
}

static IDS: AtomicU64 = AtomicU64::new(1);

/// A number that no other call of this machine gives.
pub fn fresh() -> u64 {
    (u64::from(std::process::id()) << 32) | IDS.fetch_add(1, Ordering::Relaxed)
}

pub fn hold() -> HoldId {
    HoldId(u128::from(fresh()) << 64)
}

pub fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl<T: Transport> Client<T> {
    /// Opens, and waits until the connection is up.
    pub fn open(open: impl FnOnce(ClientId, Arc<dyn Sink>) -> Arc<T>) -> Client<T> {
        let recorder = Arc::new(Recorder::default());
        let id = ClientId::new(fresh(), "test's own").unwrap();
        let transport = open(id, Arc::clone(&recorder) as Arc<dyn Sink>);
        let client = Client {
            transport,
            recorder,
            requests: AtomicU64::new(1),
            tokens: Mutex::default(),
            modes: Mutex::default(),
        };
        client.transport.flush();
        client.up();
        client
    }

    pub fn up(&self) -> u64 {
        let up = |event: &Event| match event {
            Event::Up { now } => Some(*now),
            _ => None,
        };
        self.recorder.wait(BOUND, up).expect("the connection comes up")
    }

    pub fn send(&self, op: Op) -> RequestId {
        let id = RequestId(self.requests.fetch_add(1, Ordering::Relaxed));
        self.transport.enqueue(Request { id, op });
        id
    }

    pub fn reply(&self, id: RequestId) -> Result<Reply, Failure> {
        self.recorder
            .wait(BOUND, |event| match event {
                Event::Reply { request, result } if *request == id => Some(result.clone()),
                _ => None,
            })
            .expect("a reply comes")
    }

    pub fn ask(&self, op: Op) -> Result<Reply, Failure> {
        let id = self.send(op);
        self.transport.flush();
        self.reply(id)
    }

    pub fn now(&self) -> u64 {
        self.ask(Op::Time).expect("the store tells its time").now
    }

    pub fn request(&self, lock: &Name, hold: HoldId, wait: bool) -> Acquire {
        Acquire {
            wait: wait.then_some(Wait { ticket: 0, claim: CLAIM, silence: CLAIM }),
            ..Acquire::new(lock.clone(), hold, LEASE, self.now() + 3_000_000)
        }
    }

    /// How the hold shares its lock, or would.
    fn mode(&self, hold: HoldId) -> Mode {
        self.modes.lock().unwrap().get(&hold).copied().unwrap_or_default()
    }

    fn told(&self, hold: HoldId, state: State) -> State {
        if state.token > 0 {
            self.tokens.lock().unwrap().insert(hold, state.token);
        }
        state
    }

    pub fn acquire(&self, ask: Acquire) -> State {
        let hold = ask.hold;
        self.modes.lock().unwrap().insert(hold, ask.mode);
        match self.ask(Op::Acquire(ask)).expect("the acquire is executed").body {
            Body::Acquire(state) => self.told(hold, state),
            other => panic!("not the reply of an acquire: {other:?}"),
        }
    }

    pub fn take(&self, lock: &Name, hold: HoldId) -> State {
        self.acquire(self.request(lock, hold, false))
    }

    pub fn queue(&self, lock: &Name, hold: HoldId) -> State {
        self.acquire(self.request(lock, hold, true))
    }

    pub fn beat(&self, lock: &Name, hold: HoldId) -> State {
        let beat = Beat { mode: self.mode(hold), ..Beat::new(lock.clone(), hold, LEASE) };
        match self.ask(Op::Beat(vec![beat])).expect("the beat is executed").body {
            Body::Beat(states) => self.told(hold, states[0].clone().expect("the lock is served")),
            other => panic!("not the reply of a beat: {other:?}"),
        }
    }

    pub fn release(&self, lock: &Name, hold: HoldId) -> Released {
        let used = self.tokens.lock().unwrap().get(&hold).copied().unwrap_or(0);
        let mode = self.mode(hold);
        let release = Release { mode, ..Release::new(lock.clone(), hold, used) };
        match self.ask(Op::Release(release)).expect("the release is executed").body {
            Body::Release(released) => released,
            other => panic!("not the reply of a release: {other:?}"),
        }
    }

    pub fn inspect(&self, lock: &Name) -> Option<LockInfo> {
        match self.ask(Op::Inspect(lock.clone())).expect("the lock is shown").body {
            Body::Inspect(info) => info,
            other => panic!("not the reply of an inspect: {other:?}"),
        }
    }

    pub fn list(&self, prefix: &str, limit: usize) -> Vec<String> {
        match self.ask(Op::List { prefix: prefix.to_owned(), limit }).expect("names come").body {
            Body::List(names) => names.iter().map(|name| name.as_str().to_owned()).collect(),
            other => panic!("not the reply of a list: {other:?}"),
        }
    }

    /// Breaks the tenure that a token belongs to.
    pub fn break_lock(&self, lock: &Name, token: u64) -> Broken {
        let what = Break { lock: lock.clone(), token, hold: None };
        match self.ask(Op::Break(what)).expect("the lock is broken").body {
            Body::Break(broken) => broken,
            other => panic!("not the reply of a break: {other:?}"),
        }
    }

    pub fn push(&self, bound: Duration, wanted: impl Fn(&Push) -> bool) -> Option<Push> {
        self.recorder.wait(bound, |event| match event {
            Event::Push(push) if wanted(push) => Some(push.clone()),
            _ => None,
        })
    }

    /// The push that grants `hold`; gives its token and end.
    pub fn granted(&self, bound: Duration, wanted: HoldId) -> Option<(u64, u64)> {
        let push =
            self.push(bound, |push| matches!(push, Push::Granted { hold, .. } if *hold == wanted));
        match push {
            Some(Push::Granted { token, end, .. }) => Some((token, end)),
            _ => None,
        }
    }

    /// Takes the lock however long it takes, as an engine would; gives the hold and its token.
    pub fn insist(&self, lock: &Name) -> (HoldId, u64) {
        let until = Instant::now() + BOUND;
        'anew: while Instant::now() < until {
            let id = hold();
            let mut state = self.queue(lock, id);
            loop {
                match state.standing {
                    Standing::Granted => return (id, state.token),
                    Standing::Queued => {}
                    _ => continue 'anew,
                }
                // Granted by push or not: the beat tells, and renews the claim.
                self.granted(CLAIM / 6, id);
                state = self.beat(lock, id);
            }
        }
        panic!("the lock was not granted within {BOUND:?}");
    }
}
