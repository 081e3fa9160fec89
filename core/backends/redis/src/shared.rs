//! What the callers' threads and the pump share.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use atomic_waker::AtomicWaker;
use fencelock_engine::event::Event;
use fencelock_engine::redis::cluster::Redirected;
use fencelock_engine::redis::session::{Asked, Guarded};
use fencelock_engine::redis::sync::{self, Confirming};
use fencelock_engine::redis::{Birth, Charter, Codec, Inbox, Wide};
use fencelock_engine::reply::Failure;
use fencelock_engine::request::{Request, RequestId};
use fencelock_engine::time::Time;
use fencelock_engine::transport::{Doubt, Sink, Watcher};
use fencelock_engine::{LaneId, Name};
use tokio::sync::mpsc::UnboundedSender;

use crate::link::{Link, Writer};
use crate::word::Word;

/// Who may write to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Whoever comes next.
    Free,
    /// A caller's thread is writing.
    Caller,
    /// The pump, as the socket was full, or as only the pump can.
    Pump,
}

/// A connection that takes requests, and what is under way on it.
#[derive(Debug)]
struct Line {
    link: Arc<Link>,
    /// The descriptors on which something may come.
    sockets: Vec<i32>,
    /// Told apart from the connections before: a thread may still be writing to one of those.
    epoch: u64,
    turn: Turn,
    /// Why it is to be given up.
    end: Option<String>,
}

struct State {
    asked: Asked,
    /// What replicas are to confirm, on a connection of its own.
    confirming: Option<Confirming>,
    line: Option<Line>,
    watcher: Option<Arc<dyn Watcher>>,
    epoch: u64,
    /// Came while there was no connection.
    refused: Vec<RequestId>,
}

/// What the callers' threads and the pump share.
pub(crate) struct Shared {
    state: Mutex<State>,
    sink: Arc<dyn Sink>,
    /// Which of a store's servers it is.
    lane: LaneId,
    /// Who keeps the map of slots, where the server is one of a cluster.
    cluster: Option<UnboundedSender<Word>>,
    /// What it must agree to, where it is one of a quorum.
    charter: Option<Charter>,
    closed: AtomicBool,
    since: Instant,
    /// The pump is asked to look at the state.
    attention: AtomicBool,
    pub(crate) waker: AtomicWaker,
}

impl Shared {
    pub(crate) fn new(codec: Codec, sink: Arc<dyn Sink>) -> Shared {
        Shared::of(codec, sink, LaneId::FIRST, None)
    }

    /// A server of a cluster.
    pub(crate) fn in_cluster(
        codec: Codec,
        sink: Arc<dyn Sink>,
        lane: LaneId,
        cluster: UnboundedSender<Word>,
    ) -> Shared {
        Shared::of(codec, sink, lane, Some(cluster))
    }

    /// A server of a quorum.
    pub(crate) fn in_quorum(codec: Codec, sink: Arc<dyn Sink>, charter: Charter) -> Shared {
        Shared { charter: Some(charter), ..Shared::new(codec, sink) }
    }

    /// What the server must agree to, where it is one of a quorum.
    pub(crate) fn charter(&self) -> Option<&Charter> {
        self.charter.as_ref()
    }

    /// What it last said of itself, where it is one of a quorum.
    pub(crate) fn birth(&self) -> Option<Birth> {
        self.state().asked.birth().cloned()
    }

    fn of(
        codec: Codec,
        sink: Arc<dyn Sink>,
        lane: LaneId,
        cluster: Option<UnboundedSender<Word>>,
    ) -> Shared {
        Shared {
            state: Mutex::new(State {
                asked: Asked::new(codec),
                confirming: None,
                line: None,
                watcher: None,
                epoch: 0,
                refused: Vec::new(),
            }),
            sink,
            lane,
            cluster,
            charter: None,
            closed: AtomicBool::new(false),
            since: Instant::now(),
            attention: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Grants are to be confirmed so.
    #[must_use]
    pub(crate) fn confirmed(self, terms: Option<(sync::Terms, Codec)>) -> Shared {
        let wide = self.wide();
        self.state().confirming = terms.map(|(terms, mut codec)| {
            codec.set_wide(wide);
            Confirming::new(terms, codec)
        });
        self
    }

    /// How grants are to be confirmed, if at all.
    pub(crate) fn sync_terms(&self) -> Option<sync::Terms> {
        self.state().confirming.as_ref().map(Confirming::terms)
    }

    /// Acts upon what replicas are to confirm, and upon what is asked beside that.
    pub(crate) fn confirming<R>(
        &self,
        act: impl FnOnce(&mut Confirming, &mut Asked) -> R,
    ) -> Option<R> {
        let state = &mut *self.state();
        state.confirming.as_mut().map(|confirming| act(confirming, &mut state.asked))
    }

    /// The time for what is asked: only channels of a cluster's locks need it.
    pub(crate) fn now(&self) -> Time {
        let since = self.cluster.as_ref().map_or(Duration::ZERO, |_| self.since.elapsed());
        Time::ZERO + since
    }

    /// Which locks are shared, for the codec that reads the replies.
    pub(crate) fn wide(&self) -> Wide {
        self.state().asked.wide()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliver(&self, events: &mut Vec<Event>) {
        if self.is_closed() {
            events.clear();
        } else if !events.is_empty() {
            self.state().asked.tells(events);
            let words: Vec<Word> = match self.cluster {
                Some(_) => events.iter().filter_map(|event| Word::of(self.lane, event)).collect(),
                None => Vec::new(),
            };
            self.sink.deliver_on(self.lane, events);
            words.into_iter().for_each(|word| self.tell(word));
        }
    }

    /// Whether the server is one of a cluster.
    pub(crate) fn is_in_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// What the server sent elsewhere, and whether it spoke against the map of slots.
    pub(crate) fn sent_on(&self, redirected: Vec<Redirected>, suspect: bool) {
        redirected.into_iter().for_each(|it| self.tell(Word::Redirected(self.lane, it)));
        if suspect {
            self.tell(Word::Suspect(self.lane));
        }
    }

    /// A client that is closed has nobody who listens.
    fn tell(&self, word: Word) {
        if let Some(cluster) = &self.cluster {
            let _ = cluster.send(word);
        }
    }

    /// Locks that are asked for here although their slot is elsewhere.
    pub(crate) fn asking(&self, locks: Vec<Name>) {
        let state = &mut *self.state();
        if let Some(confirming) = &mut state.confirming {
            confirming.asked().add_asking(locks.clone());
        }
        state.asked.add_asking(locks);
    }

    /// There are none any more.
    pub(crate) fn settled(&self) {
        let state = &mut *self.state();
        if let Some(confirming) = &mut state.confirming {
            confirming.asked().end_asking();
        }
        state.asked.end_asking();
    }

    /// Nobody runs the connection any more: answers for what is under way.
    pub(crate) fn abandon(&self, reason: String) {
        let mut events = Vec::new();
        let confirming = self.down(|asked| asked.end(&mut events));
        events.extend(confirming);
        events.push(Event::Down { reason });
        self.deliver(&mut events);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether somebody asked the pump to look, since it last did.
    pub(crate) fn take_attention(&self) -> bool {
        self.attention.swap(false, Ordering::AcqRel)
    }

    fn call_pump(&self) {
        self.attention.store(true, Ordering::Release);
        self.waker.wake();
    }

    // ----- callers -----

    pub(crate) fn enqueue(&self, request: Request) {
        let mut state = self.state();
        let state = &mut *state;
        if state.line.is_none() {
            state.refused.push(request.id);
            return;
        }
        let now = self.now();
        match &mut state.confirming {
            Some(confirming) if Confirming::takes(&request.op) => {
                confirming.ask(request, &state.asked);
            }
            _ => state.asked.ask(now, request),
        }
    }

    /// Writes from the caller's own thread as far as the socket takes it, and leaves the rest to
    /// the pump. A thread that finds another one writing leaves its bytes to that. While answers
    /// are awaited, tasks on the pump's own thread leave the writing to it: it runs after those
    /// that are ready, and sends what they all asked in one go.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        if !state.refused.is_empty() {
            let refused = mem::take(&mut state.refused);
            drop(state);
            self.deliver(&mut failed(refused));
            state = self.state();
        }
        if state.confirming.as_ref().is_some_and(Confirming::is_due) {
            self.call_pump();
        }
        let (link, epoch) = match &mut state.line {
            Some(line) if line.turn == Turn::Free && line.end.is_none() => {
                (Arc::clone(&line.link), line.epoch)
            }
            _ => return,
        };
        if state.asked.outbox().is_empty() {
            return;
        }
        if matches!(link.writer(), Writer::Pump)
            || (state.asked.awaits_answers() && shares_thread())
        {
            state.set_turn(Turn::Pump);
            drop(state);
            self.call_pump();
            return;
        }
        state.set_turn(Turn::Caller);
        let mut buffer = state.asked.outbox().take();
        drop(state);
        loop {
            let (written, result) = link.writer().write(&buffer);
            let mut state = self.state();
            if state.line.as_ref().is_none_or(|line| line.epoch != epoch) {
                return;
            }
            match result {
                Ok(()) => {
                    if let Some(more) = state.asked.outbox().next(buffer) {
                        buffer = more;
                        continue;
                    }
                    state.set_turn(Turn::Free);
                    return;
                }
                Err(error) => {
                    state.asked.outbox().put_back(buffer, written);
                    match error.kind() {
                        io::ErrorKind::WouldBlock => state.set_turn(Turn::Pump),
                        _ => state.end(format!("writing failed: {error}")),
                    }
                    drop(state);
                    self.call_pump();
                    return;
                }
            }
        }
    }

    /// The connection may be dead: see [`Asked::doubt`].
    pub(crate) fn doubt(&self, doubt: Doubt) {
        let state = &mut *self.state();
        let aside = state.confirming.as_ref().is_some_and(|it| it.owes(doubt.owed));
        let owes = aside || state.asked.owes(doubt.owed);
        if state.asked.doubt_of(doubt, owes) {
            self.call_pump();
        }
    }

    /// Shows the sockets to a watcher from now on; false when there is one already.
    pub(crate) fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        let mut state = self.state();
        if state.watcher.is_some() {
            return false;
        }
        // While there is a line, its sockets are open.
        if let Some(line) = &state.line {
            line.sockets.iter().for_each(|socket| watcher.watch(*socket));
        }
        state.watcher = Some(watcher);
        true
    }

    /// After this nothing is delivered any more, but for what another thread is delivering at
    /// this moment.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut state = self.state();
        if let Some(line) = state.line.take()
            && state.asked.is_owed()
        {
            line.link.forsake();
        }
        if let Some(confirming) = &mut state.confirming {
            confirming.clear();
        }
        state.asked.clear();
        state.refused.clear();
    }

    // ----- pump -----

    /// Takes requests from now on.
    pub(crate) fn up(
        &self,
        link: Arc<Link>,
        sockets: Vec<i32>,
        inbox: Inbox,
        birth: Option<Birth>,
        replicas: u32,
    ) {
        let mut state = self.state();
        state.epoch += 1;
        let epoch = state.epoch;
        state.asked.set_birth(birth);
        state.asked.begin(inbox);
        if let Some(confirming) = &mut state.confirming {
            confirming.begin(inbox, replicas);
        }
        if !self.is_closed() {
            if let Some(watcher) = &state.watcher {
                sockets.iter().for_each(|socket| watcher.watch(*socket));
            }
            state.line = Some(Line { link, sockets, epoch, turn: Turn::Free, end: None });
        }
    }

    /// Takes no more requests; `end` answers for those under way, but for those that replicas were to
    /// confirm: these answers are given.
    pub(crate) fn down(&self, end: impl FnOnce(&mut Asked)) -> Vec<Event> {
        let mut events = Vec::new();
        let mut state = self.state();
        if let Some(confirming) = &mut state.confirming {
            confirming.end(&mut events);
        }
        if let Some(line) = state.line.take()
            && state.asked.is_owed()
        {
            line.link.forsake();
        }
        end(&mut state.asked);
        events
    }

    /// Whether an answer is awaited.
    pub(crate) fn is_owed(&self) -> bool {
        let state = self.state();
        state.line.is_some() && state.asked.is_owed()
    }

    /// Whether the engine doubts the connection.
    pub(crate) fn is_doubted(&self) -> bool {
        self.state().asked.is_doubted()
    }

    /// Why the connection is to be given up, if it is.
    pub(crate) fn end(&self) -> Option<String> {
        self.state().line.as_ref().map_or(Some("closed".to_owned()), |line| line.end.clone())
    }

    /// What the pump has to write now; `None` when it is not the pump's turn.
    pub(crate) fn take_for_pump(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        match &state.line {
            Some(line) if line.turn == Turn::Pump => Some(state.asked.outbox().take()),
            _ => None,
        }
    }

    /// The pump wrote `written` bytes of `buffer`. True when it has to come again.
    pub(crate) fn wrote_for_pump(&self, buffer: Vec<u8>, written: usize) -> bool {
        let mut state = self.state();
        if written < buffer.len() {
            state.asked.outbox().put_back(buffer, written);
            return true;
        }
        if !state.asked.outbox().is_empty() {
            state.asked.outbox().keep(buffer);
            return true;
        }
        state.asked.outbox().keep(buffer);
        state.set_turn(Turn::Free);
        false
    }
}

impl Guarded for Shared {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        act(&mut self.state().asked)
    }
}

/// Whether this is a task of a single-threaded runtime, where the pump runs next anyway.
fn shares_thread() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
}

impl State {
    fn set_turn(&mut self, turn: Turn) {
        if let Some(line) = &mut self.line {
            line.turn = turn;
        }
    }

    fn end(&mut self, reason: String) {
        if let Some(line) = &mut self.line {
            line.end.get_or_insert(reason);
        }
    }
}

fn failed(requests: Vec<RequestId>) -> Vec<Event> {
    requests
        .into_iter()
        .map(|request| Event::Reply { request, result: Err(Failure::NotSent) })
        .collect()
}
