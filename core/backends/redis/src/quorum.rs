//! Independent servers, each with a session of its own, behind one transport: a lock is held when most of them
//! say so.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use fencelock_engine::event::Event;
use fencelock_engine::quorum::{Config, Input, Machine, Output};
use fencelock_engine::redis::{Charter, Codec, Node};
use fencelock_engine::request::Request;
use fencelock_engine::time::Time;
use fencelock_engine::transport::{Farewell, Sink};
use fencelock_engine::{ClientId, Error};
use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;

use crate::options::{self, Address, Options};
use crate::shared::Shared;
use crate::{clock, session};

/// A timer does not count the time during which the host is suspended: it is looked at so often.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// A server that is asked a last time has so long to answer, and is looked at so often.
const LONGEST_PARTING: Duration = Duration::from_secs(1);
const PARTING_LOOK: Duration = Duration::from_millis(1);

struct State {
    machine: Machine,
    /// For the engine, in order.
    events: Vec<Event>,
    /// Some thread is telling the engine.
    telling: bool,
    /// When the timer looks by itself.
    armed: Time,
    /// The engine hears nothing any more. What it asked for still goes to all servers.
    closed: bool,
}

/// What the callers' threads, the sessions and the timer share.
struct Inner {
    inbox: Mutex<Vec<Request>>,
    state: Mutex<State>,
    sink: Arc<dyn Sink>,
    /// In the order of the machine's list. Set once, before anything can happen.
    servers: OnceLock<Vec<Arc<Shared>>>,
    timer: Notify,
}

/// One of the servers, as its session sees the engine.
struct Voter {
    inner: Weak<Inner>,
    server: usize,
}

impl Sink for Voter {
    fn deliver(&self, event: Event) {
        self.deliver_all(&mut vec![event]);
    }

    fn deliver_all(&self, events: &mut Vec<Event>) {
        match self.inner.upgrade() {
            Some(inner) => inner.hear(self.server, events),
            None => events.clear(),
        }
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn servers(&self) -> &[Arc<Shared>] {
        self.servers.get().map(Vec::as_slice).unwrap_or_default()
    }

    fn enqueue(&self, request: Request) {
        lock(&self.inbox).push(request);
    }

    /// Sends what was enqueued, from the caller's own thread.
    fn flush(&self) {
        let state = self.state();
        // Taken under the machine's lock, or two threads could pass each other.
        let requests = mem::take(&mut *lock(&self.inbox));
        if requests.is_empty() {
            return;
        }
        self.change(state, |machine, now| {
            requests.into_iter().for_each(|request| machine.request(now, request));
        });
    }

    /// What a server's session says.
    fn hear(&self, server: usize, events: &mut Vec<Event>) {
        self.change(self.state(), |machine, now| {
            for event in events.drain(..) {
                let input = match event {
                    Event::Up { now } => Input::Up { now, wait: self.wait(server, now) },
                    event => Input::Event(event),
                };
                machine.handle(now, server, input);
            }
        });
        events.clear();
    }

    /// For how long from now on a server gives no votes.
    fn wait(&self, server: usize, now: u64) -> Duration {
        let birth = self.servers().get(server).and_then(|server| server.birth());
        let votes_from = birth.map_or(u64::MAX, |birth| birth.votes_from);
        Duration::from_micros(votes_from.saturating_sub(now))
    }

    /// One change of the machine, and what it leads to.
    fn change(&self, mut state: MutexGuard<'_, State>, act: impl FnOnce(&mut Machine, Time)) {
        act(&mut state.machine, clock::now());
        let mut asked = BTreeSet::new();
        while let Some(output) = state.machine.poll_output() {
            match output {
                Output::Send(server, request) => {
                    if let Some(shared) = self.servers().get(server) {
                        asked.insert(server);
                        shared.enqueue(request);
                    }
                }
                Output::Reconnect(server, doubt) => {
                    if let Some(shared) = self.servers().get(server) {
                        shared.doubt(doubt);
                    }
                }
                Output::Event(event) => state.events.push(event),
            }
        }
        let early = state.machine.next_wake().is_some_and(|at| at < state.armed);
        drop(state);
        if early {
            self.timer.notify_one();
        }
        for server in asked {
            self.servers()[server].flush();
        }
        self.tell();
    }

    /// Does what is due; gives how long the timer may sleep.
    fn wake(&self) -> Duration {
        self.change(self.state(), Machine::wake);
        let mut state = self.state();
        let now = clock::now();
        let due = state.machine.next_wake().map_or(LONGEST_SLEEP, |at| at.since(now));
        let sleep = due.min(LONGEST_SLEEP);
        state.armed = now + sleep;
        sleep
    }

    /// Tells the engine what has gathered, in its order: one thread at a time, and what a thread adds while
    /// another tells is told by that one.
    fn tell(&self) {
        // A sink that panics must not silence the client for good.
        let mut reset = Reset { inner: self, armed: false };
        let mut state = self.state();
        if state.telling || state.closed {
            return;
        }
        state.telling = true;
        reset.armed = true;
        while !state.events.is_empty() && !state.closed {
            let mut events = mem::take(&mut state.events);
            drop(state);
            self.sink.deliver_all(&mut events);
            state = self.state();
        }
        state.telling = false;
        reset.armed = false;
    }
}

/// Ends the telling of a thread that unwinds out of it.
struct Reset<'a> {
    inner: &'a Inner,
    armed: bool,
}

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.inner.state().telling = false;
        }
    }
}

async fn keep_time(inner: Arc<Inner>) {
    loop {
        let sleep = inner.wake();
        // Whoever wants to be woken earlier says so.
        let _ = tokio::time::timeout(sleep, inner.timer.notified()).await;
    }
}

/// Who released is told so by most servers: the others must hear of it, too, or they keep the lock until its lease
/// ends. Whoever does not answer for so long is left alone.
async fn part(inner: Arc<Inner>, patience: Duration) {
    let heard = async {
        while inner.servers().iter().any(|server| server.is_owed()) {
            tokio::time::sleep(PARTING_LOOK).await;
        }
    };
    let _ = tokio::time::timeout(patience, heard).await;
    for server in inner.servers() {
        server.close();
    }
}

/// Connections to all servers of a quorum.
pub(crate) struct Quorum {
    inner: Arc<Inner>,
    runtime: Handle,
    patience: Duration,
    tasks: Mutex<Vec<AbortHandle>>,
    /// Closed when the last word is said.
    parted: (Mutex<Option<watch::Sender<()>>>, watch::Receiver<()>),
}

impl Quorum {
    pub(crate) fn open(
        options: Options,
        client: ClientId,
        sink: Arc<dyn Sink>,
        runtime: &Handle,
    ) -> Result<Quorum, Error> {
        let Address::Quorum(quorum) = &options.address else {
            return Err(options::invalid("no address of a quorum"));
        };
        let names = quorum.sorted();
        if names.len().is_multiple_of(2) {
            let (all, needed) = (names.len(), quorum.majority());
            tracing::warn!(
                all,
                needed,
                "an even number of servers: one less forgives as many failures"
            );
        }
        let mut counts = options.client.clone();
        counts.max_lease = quorum.max_lease;
        let mut seed = [0; 32];
        fastrand::fill(&mut seed);
        let config = Config::new(names.iter().map(Node::to_string).collect(), &counts);
        let machine = Machine::new(config, seed)?;
        let state =
            State { machine, events: Vec::new(), telling: false, armed: Time::MAX, closed: false };
        let inner = Arc::new(Inner {
            inbox: Mutex::default(),
            state: Mutex::new(state),
            sink,
            servers: OnceLock::new(),
            timer: Notify::new(),
        });
        let charter = Charter::new(&names, quorum.max_lease, &options.prefix);
        let mut servers = Vec::new();
        for server in 0..names.len() {
            let codec = Codec::new(client.clone(), &options.prefix)?;
            let voter = Arc::new(Voter { inner: Arc::downgrade(&inner), server });
            servers.push(Arc::new(Shared::in_quorum(codec, voter, charter.clone())));
        }
        let mut tasks = Vec::new();
        for (node, shared) in names.iter().zip(&servers) {
            let options = options.of_server(quorum.reached(node), quorum.tls);
            let run = session::run(options, client.clone(), Arc::clone(shared));
            tasks.push(run);
        }
        // Nobody sets them before.
        let _ = inner.servers.set(servers);
        let mut tasks: Vec<_> =
            tasks.into_iter().map(|run| runtime.spawn(run).abort_handle()).collect();
        tasks.push(runtime.spawn(keep_time(Arc::clone(&inner))).abort_handle());
        let (parting, parted) = watch::channel(());
        Ok(Quorum {
            inner,
            runtime: runtime.clone(),
            patience: counts.request_timeout.min(LONGEST_PARTING),
            tasks: Mutex::new(tasks),
            parted: (Mutex::new(Some(parting)), parted),
        })
    }

    pub(crate) fn enqueue(&self, request: Request) {
        self.inner.enqueue(request);
    }

    pub(crate) fn flush(&self) {
        self.inner.flush();
    }

    /// The engine hears nothing any more; what it asked for is told to all servers first.
    pub(crate) fn close(&self) {
        self.inner.state().closed = true;
        let tasks = mem::take(&mut *lock(&self.tasks));
        let Some(parting) = lock(&self.parted.0).take() else { return };
        let last = part(Arc::clone(&self.inner), self.patience);
        self.runtime.spawn(async move {
            last.await;
            tasks.iter().for_each(AbortHandle::abort);
            drop(parting);
        });
    }

    pub(crate) fn farewell(&self) -> Farewell {
        let mut parted = self.parted.1.clone();
        Box::pin(async move { while parted.changed().await.is_ok() {} })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
