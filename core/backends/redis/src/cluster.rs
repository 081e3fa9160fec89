//! A cluster's servers, each with a connection of its own, behind one transport.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use fencelock_engine::event::Event;
use fencelock_engine::redis::cluster::{Input, Machine, Output, Redirected, Terms};
use fencelock_engine::redis::session::NoSession;
use fencelock_engine::redis::{Codec, Node};
use fencelock_engine::reply::{Failure, Refusal, RefusalKind, Reply};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::time::Time;
use fencelock_engine::transport::{Doubt, Sink};
use fencelock_engine::{ClientId, Error, LaneId};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::Instant;

use crate::options::{self, Address, Options};
use crate::shared::Shared;
use crate::word::Word;
use crate::{listing, lookup, session, sync};

/// A server may take so long to say which slots are whose, and no longer than a connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// One server, as the callers' threads see it.
struct Lane {
    /// Where it is.
    node: Node,
    shared: Arc<Shared>,
    /// Something was enqueued since it was flushed last.
    unsent: AtomicBool,
}

/// What the callers' threads and the keeper of the map share.
struct Inner {
    sink: Arc<dyn Sink>,
    /// [`LaneId::FIRST`] is no server, and not among them. A lane is never taken away: it may be named by
    /// requests as long as the engine lives.
    lanes: RwLock<Vec<Arc<Lane>>>,
    words: UnboundedSender<Word>,
    closed: AtomicBool,
}

impl Inner {
    fn lane(&self, lane: LaneId) -> Option<Arc<Lane>> {
        let at = usize::from(lane.0).checked_sub(1)?;
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).get(at).cloned()
    }

    fn all(&self) -> Vec<Arc<Lane>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn deliver(&self, event: Event) {
        if !self.closed.load(Ordering::Acquire) {
            self.sink.deliver_on(LaneId::FIRST, &mut vec![event]);
        }
    }
}

/// Connections to all servers of a cluster that have slots.
pub(crate) struct Cluster {
    inner: Arc<Inner>,
    task: AbortHandle,
}

impl Cluster {
    pub(crate) fn open(
        options: Options,
        client: ClientId,
        sink: Arc<dyn Sink>,
        runtime: &Handle,
    ) -> Result<Cluster, Error> {
        Codec::new(client.clone(), &options.prefix)?;
        let Address::Cluster(address) = &options.address else {
            return Err(options::invalid("no address of a cluster"));
        };
        let terms = Terms {
            seeds: address.nodes.clone(),
            map: address.map.clone(),
            limit: options.connect_timeout.min(PATIENCE),
        };
        let (words, said) = unbounded_channel();
        let closed = AtomicBool::new(false);
        let inner = Arc::new(Inner { sink, lanes: RwLock::default(), words, closed });
        let mut seed = [0; 32];
        fastrand::fill(&mut seed);
        let keeper = Keeper {
            options: Arc::new(options),
            client,
            inner: Arc::clone(&inner),
            machine: Machine::new(Time::ZERO, terms, seed),
            since: Instant::now(),
            said,
            sessions: BTreeMap::new(),
            errands: JoinSet::new(),
        };
        let task = runtime.spawn(keeper.run()).abort_handle();
        Ok(Cluster { inner, task })
    }

    pub(crate) fn enqueue(&self, request: Request) {
        match self.inner.lane(request.id.lane()) {
            Some(lane) => {
                lane.shared.enqueue(request);
                // After it: another thread may take this word and flush at any moment.
                lane.unsent.store(true, Ordering::Release);
            }
            // The keeper is gone only when all is closed.
            None => drop(self.inner.words.send(Word::Asked(request))),
        }
    }

    pub(crate) fn flush(&self) {
        for lane in self.inner.all() {
            if lane.unsent.swap(false, Ordering::AcqRel) {
                lane.shared.flush();
            }
        }
    }

    /// What the server of a lane is called.
    pub(crate) fn server(&self, lane: LaneId) -> Option<String> {
        self.inner.lane(lane).map(|lane| lane.node.to_string())
    }

    pub(crate) fn doubt(&self, doubt: Doubt) {
        let lane = doubt.owed.lane();
        if let Some(silent) = self.inner.lane(lane) {
            silent.shared.doubt(doubt);
            let _ = self.inner.words.send(Word::Suspect(lane));
        }
    }

    pub(crate) fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        for lane in self.inner.all() {
            lane.shared.close();
        }
        self.task.abort();
    }
}

/// A task that ends with its keeper.
struct Running(JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps the map: does what the engine's machine wants. All changes of the map reach the engine from here,
/// one after the other.
struct Keeper {
    options: Arc<Options>,
    client: ClientId,
    inner: Arc<Inner>,
    machine: Machine,
    since: Instant,
    said: UnboundedReceiver<Word>,
    sessions: BTreeMap<LaneId, Running>,
    /// What was sent out to ask.
    errands: JoinSet<()>,
}

impl Keeper {
    fn now(&self) -> Time {
        Time::ZERO + self.since.elapsed()
    }

    async fn run(mut self) {
        while !self.inner.closed.load(Ordering::Acquire) {
            self.obey().await;
            let pause = self.machine.next_wake().since(self.now());
            match tokio::time::timeout(pause, self.said.recv()).await {
                Ok(Some(word)) => self.take(word).await,
                Ok(None) => return,
                Err(_) => {
                    let at = self.machine.next_wake();
                    self.machine.wake(self.now().max(at));
                }
            }
            while self.errands.try_join_next().is_some() {}
        }
    }

    /// Tells the machine.
    async fn take(&mut self, word: Word) {
        let now = self.now();
        let input = match word {
            Word::Up(lane, store) => Input::Up(lane, store),
            Word::Down(lane, reason) => Input::Down(lane, reason),
            Word::Misconfigured(lane, error) => Input::Misconfigured(lane, error),
            Word::Suspect(lane) => Input::Suspect(lane),
            Word::Fetched(node, answer) => {
                if let Err(why) = &answer {
                    tracing::debug!(%node, ?why, "no map of the slots");
                }
                Input::Fetched { node, answer, silent: self.silent() }
            }
            Word::Redirected(lane, redirected) => {
                return self.redirect(now, lane, redirected).await;
            }
            Word::Asked(request) => return self.ask(request),
        };
        self.machine.handle(now, input);
    }

    /// The lanes on which nothing is answered.
    fn silent(&self) -> BTreeSet<LaneId> {
        let lanes = (1..).map(LaneId).zip(self.inner.all());
        lanes.filter(|(_, lane)| lane.shared.is_doubted()).map(|(id, _)| id).collect()
    }

    /// The engine hears where a lock is before it asks again.
    async fn redirect(&mut self, now: Time, lane: LaneId, redirected: Redirected) {
        let (request, to) = (redirected.request, redirected.to.clone());
        tracing::debug!(lane = lane.0, ?to, "redirected");
        self.machine.handle(now, Input::Redirected(lane, redirected));
        self.obey().await;
        let message = format!("slot {} is at {}:{}", to.slot, to.host.unwrap_or_default(), to.port);
        let result = Err(Failure::Refused(Refusal { kind: RefusalKind::Again, message }));
        if let Some(lane) = self.inner.lane(lane) {
            lane.shared.deliver(&mut vec![Event::Reply { request, result }]);
        }
    }

    /// A request that is no server's: a listing is all servers', and the others are about slots that
    /// nobody serves.
    fn ask(&mut self, request: Request) {
        let Request { id, op } = request;
        if !matches!(op, Op::List { .. }) {
            let message = "no server of the cluster serves this now".to_owned();
            let refusal = Refusal { kind: RefusalKind::Retry, message };
            return self.answer(id, Err(Failure::Refused(refusal)));
        }
        let Ok(codec) = Codec::new(self.client.clone(), &self.options.prefix) else {
            return self.answer(id, Err(Failure::NotSent));
        };
        let (options, inner) = (Arc::clone(&self.options), Arc::clone(&self.inner));
        let nodes = self.machine.masters();
        self.errands.spawn(async move {
            let result = listing::of_all(options, codec, op, nodes).await;
            inner.deliver(Event::Reply { request: id, result });
        });
    }

    fn answer(&self, request: RequestId, result: Result<Reply, Failure>) {
        self.inner.deliver(Event::Reply { request, result });
    }

    /// Does what the machine wants.
    async fn obey(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Fetch(node) => self.fetch(node),
                Output::Open(lane, node) => self.open(lane, node),
                Output::Close(lane, reason) => self.close(lane, reason).await,
                Output::Asking(lane, locks) => {
                    if let Some(lane) = self.inner.lane(lane) {
                        lane.shared.asking(locks);
                    }
                }
                Output::Settled(lane) => {
                    if let Some(lane) = self.inner.lane(lane) {
                        lane.shared.settled();
                    }
                }
                Output::Event(event) => {
                    if let Event::Map(changes) = &event {
                        tracing::info!(changes = changes.len(), "the map of the slots changed");
                    }
                    self.inner.deliver(event);
                }
            }
        }
    }

    fn fetch(&mut self, node: Node) {
        let (options, words) = (Arc::clone(&self.options), self.inner.words.clone());
        self.errands.spawn(async move {
            // As long as an attempt to connect: others are asked meanwhile, and a map may come late.
            let limit = options.connect_timeout.saturating_mul(4);
            let answer = tokio::time::timeout(limit, lookup::topology(options, node.clone())).await;
            let late = |_| Err(NoSession::Later(format!("{node} does not answer")));
            let answer = answer.unwrap_or_else(late);
            let _ = words.send(Word::Fetched(node, answer));
        });
    }

    /// Connects a lane that is new, or was closed.
    fn open(&mut self, lane: LaneId, node: Node) {
        let shared = match self.inner.lane(lane) {
            Some(lane) => Arc::clone(&lane.shared),
            None => match self.add(lane, &node) {
                Some(shared) => shared,
                None => return,
            },
        };
        tracing::debug!(lane = lane.0, %node, "a server of the cluster");
        let mut options = Options::clone(&self.options);
        let Node { host, port } = node;
        options.address = match options.address.is_tls() {
            true => Address::Tls { host, port },
            false => Address::Tcp { host, port },
        };
        let task = tokio::spawn(session::run(options, self.client.clone(), shared));
        self.sessions.insert(lane, Running(task));
    }

    /// Lanes are numbered as they come.
    fn add(&self, lane: LaneId, node: &Node) -> Option<Arc<Shared>> {
        let codec = Codec::new(self.client.clone(), &self.options.prefix).ok()?.in_cluster();
        let (sink, words) = (Arc::clone(&self.inner.sink), self.inner.words.clone());
        let shared = Shared::in_cluster(codec, sink, lane, words);
        let terms = sync::terms(&self.options, &self.client).ok()?;
        let terms = terms.map(|(terms, codec)| (terms, codec.in_cluster()));
        let shared = Arc::new(shared.confirmed(terms));
        let mut lanes = self.inner.lanes.write().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() + 1 != usize::from(lane.0) {
            return None;
        }
        let (node, unsent) = (node.clone(), AtomicBool::new(false));
        lanes.push(Arc::new(Lane { node, shared: Arc::clone(&shared), unsent }));
        if self.inner.closed.load(Ordering::Acquire) {
            shared.close();
        }
        Some(shared)
    }

    /// Its task has ended before what is under way is answered for.
    async fn close(&mut self, lane: LaneId, reason: String) {
        let Some(mut running) = self.sessions.remove(&lane) else { return };
        running.0.abort();
        let _ = (&mut running.0).await;
        tracing::info!(lane = lane.0, %reason, "connection closed");
        if let Some(lane) = self.inner.lane(lane) {
            lane.shared.abandon(reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use fencelock_engine::Name;

    use super::*;

    /// Counts answers.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Sink for Count {
        fn deliver(&self, event: Event) {
            if matches!(event, Event::Reply { .. }) {
                self.0.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    #[test]
    fn what_is_enqueued_while_another_thread_flushes_is_flushed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let count = Arc::new(Count::default());
        let client = ClientId::new(1, "").unwrap();
        let (words, _said) = unbounded_channel();
        let (sink, id) = (Arc::clone(&count), LaneId(1));
        let codec = Codec::new(client, "fl:").unwrap();
        // It has no connection: what is flushed is answered as not sent.
        let shared = Arc::new(Shared::in_cluster(codec, sink, id, words.clone()));
        let node = Node { host: "h".to_owned(), port: 1 };
        let lane = Arc::new(Lane { node, shared, unsent: AtomicBool::new(false) });
        let closed = AtomicBool::new(false);
        let lanes = RwLock::new(vec![lane]);
        let inner = Arc::new(Inner { sink: Arc::clone(&count) as _, lanes, words, closed });
        let task = runtime.spawn(std::future::pending::<()>()).abort_handle();
        let cluster = Cluster { inner, task };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    cluster.flush();
                }
            });
            for asked in 1..=20_000 {
                let op = Op::Inspect(Name::new("a").unwrap());
                cluster.enqueue(Request { id: RequestId((1 << 48) | asked as u64), op });
                cluster.flush();
                let begun = std::time::Instant::now();
                while count.0.load(Ordering::Acquire) < asked {
                    if begun.elapsed() > Duration::from_secs(30) {
                        over.store(true, Ordering::Release);
                        panic!("request {asked} is never sent");
                    }
                    std::thread::yield_now();
                }
            }
            over.store(true, Ordering::Release);
        });
    }
}
