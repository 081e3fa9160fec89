//! What the callers' threads and the pump share.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_waker::AtomicWaker;
use fencelock_engine::event::Event;
use fencelock_engine::redis::session;
use fencelock_engine::redis::{Codec, Command, Inbox, Listing, Script, Wide};
use fencelock_engine::reply::Failure;
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::transport::{Doubt, Sink, Watcher};

use crate::link::{Link, Writer};
use crate::outbox::Outbox;

/// A command that was encoded and not yet answered.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Where its first byte stands in all that was ever encoded for this connection.
    start: u64,
    pub(crate) what: Awaited,
}

/// What an answer is awaited for.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// For a request.
    Request(RequestId, Op),
    /// For one round of a listing.
    Round(RequestId, Op, Listing),
    /// For the loading of a script that the server had forgotten, which these requests need.
    Script(&'static str, Vec<RequestId>),
}

impl Awaited {
    /// Whether `request` waits for it.
    fn is_for(&self, request: RequestId) -> bool {
        match self {
            Awaited::Request(id, _) | Awaited::Round(id, ..) => *id == request,
            Awaited::Script(_, ids) => ids.contains(&request),
        }
    }
}

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
    /// The engine doubts it: nothing was answered for long.
    doubted: bool,
    /// Whose answer the engine was passed last.
    told: Option<RequestId>,
    /// Why it is to be given up.
    end: Option<String>,
}

struct State {
    codec: Codec,
    line: Option<Line>,
    watcher: Option<Arc<dyn Watcher>>,
    epoch: u64,
    outbox: Outbox,
    in_flight: VecDeque<Pending>,
    /// Whose answer is being read: it is owed until the engine is told, or it is asked anew.
    reading: Option<RequestId>,
    /// Came while there was no connection.
    refused: Vec<RequestId>,
}

/// What the callers' threads and the pump share.
pub(crate) struct Shared {
    state: Mutex<State>,
    sink: Arc<dyn Sink>,
    closed: AtomicBool,
    /// The pump is asked to look at the state.
    attention: AtomicBool,
    pub(crate) waker: AtomicWaker,
}

impl Shared {
    pub(crate) fn new(codec: Codec, sink: Arc<dyn Sink>) -> Shared {
        Shared {
            state: Mutex::new(State {
                codec,
                line: None,
                watcher: None,
                epoch: 0,
                outbox: Outbox::default(),
                in_flight: VecDeque::new(),
                reading: None,
                refused: Vec::new(),
            }),
            sink,
            closed: AtomicBool::new(false),
            attention: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Which locks are shared, for the codec that reads the replies.
    pub(crate) fn wide(&self) -> Wide {
        self.state().codec.wide()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliver(&self, events: &mut Vec<Event>) {
        if self.is_closed() {
            events.clear();
        } else if !events.is_empty() {
            self.tells(events);
            self.sink.deliver_all(events);
        }
    }

    /// An answer ends the engine's doubt, and so ours; before the engine hears it, so that a doubt
    /// that comes after it is not lost.
    fn tells(&self, events: &[Event]) {
        let Some(told) = events.iter().rev().find_map(answered) else { return };
        if let Some(line) = &mut self.state().line {
            (line.told, line.doubted) = (Some(told), false);
        }
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
        let command = state.codec.encode(&request.op);
        let awaited = match &request.op {
            Op::List { .. } => Awaited::Round(request.id, request.op, Listing::default()),
            _ => Awaited::Request(request.id, request.op),
        };
        state.push(awaited, |out| session::command(out, &command));
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
        let (link, epoch) = match &mut state.line {
            Some(line) if line.turn == Turn::Free && line.end.is_none() => {
                (Arc::clone(&line.link), line.epoch)
            }
            _ => return,
        };
        if state.outbox.is_empty() {
            return;
        }
        if matches!(link.writer(), Writer::Pump) || (state.awaits_answers() && shares_thread()) {
            state.set_turn(Turn::Pump);
            drop(state);
            self.call_pump();
            return;
        }
        state.set_turn(Turn::Caller);
        let mut buffer = state.outbox.take();
        drop(state);
        loop {
            let (written, result) = link.writer().write(&buffer);
            let mut state = self.state();
            if state.line.as_ref().is_none_or(|line| line.epoch != epoch) {
                return;
            }
            match result {
                Ok(()) => {
                    if let Some(more) = state.outbox.next(buffer) {
                        buffer = more;
                        continue;
                    }
                    state.set_turn(Turn::Free);
                    return;
                }
                Err(error) => {
                    state.outbox.put_back(buffer, written);
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

    /// The connection may be dead; so it is until the engine is passed an answer. A doubt that comes
    /// late is none: the engine has been passed one since, or it will be, or the connection is another.
    pub(crate) fn doubt(&self, doubt: Doubt) {
        let mut state = self.state();
        let owes = state.reading == Some(doubt.owed)
            || state.in_flight.iter().any(|pending| pending.what.is_for(doubt.owed));
        let Some(line) = state.line.as_mut().filter(|line| owes && line.told == doubt.heard) else {
            return;
        };
        line.doubted = true;
        drop(state);
        self.call_pump();
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
            && !state.in_flight.is_empty()
        {
            line.link.forsake();
        }
        state.in_flight.clear();
        state.refused.clear();
        state.outbox.clear();
    }

    // ----- pump -----

    /// Takes requests from now on.
    pub(crate) fn up(&self, link: Arc<Link>, sockets: Vec<i32>, inbox: Inbox) {
        let mut state = self.state();
        state.epoch += 1;
        let epoch = state.epoch;
        state.codec.set_inbox(inbox);
        state.outbox.renew();
        state.reading = None;
        if !self.is_closed() {
            if let Some(watcher) = &state.watcher {
                sockets.iter().for_each(|socket| watcher.watch(*socket));
            }
            let (turn, doubted, told, end) = (Turn::Free, false, None, None);
            state.line = Some(Line { link, sockets, epoch, turn, doubted, told, end });
        }
    }

    /// Takes no more requests, and answers for those under way.
    pub(crate) fn down(&self, events: &mut Vec<Event>) {
        let mut state = self.state();
        if let Some(line) = state.line.take()
            && !state.in_flight.is_empty()
        {
            line.link.forsake();
        }
        for pending in mem::take(&mut state.in_flight) {
            match pending.what {
                Awaited::Request(request, _) | Awaited::Round(request, ..) => {
                    let failure = if state.outbox.may_have_left(pending.start) {
                        Failure::Unknown
                    } else {
                        Failure::NotSent
                    };
                    events.push(Event::Reply { request, result: Err(failure) });
                }
                // The server said that it did not execute these.
                Awaited::Script(_, requests) => events.extend(failed(requests)),
            }
        }
        state.outbox.clear();
    }

    /// Whose answer has come.
    pub(crate) fn answered(&self) -> Option<Awaited> {
        let mut state = self.state();
        let what = state.in_flight.pop_front()?.what;
        state.reading = match &what {
            Awaited::Request(request, _) | Awaited::Round(request, ..) => Some(*request),
            // Its answer is theirs.
            Awaited::Script(..) => None,
        };
        Some(what)
    }

    /// Whether the engine doubts the connection.
    pub(crate) fn is_doubted(&self) -> bool {
        self.state().line.as_ref().is_some_and(|line| line.doubted)
    }

    /// Asks further on behalf of a request that was under way already.
    pub(crate) fn ask_on(&self, awaited: Awaited, command: &Command) {
        self.state().push(awaited, |out| session::command(out, command));
    }

    /// Loads a script that the server has forgotten; `request` is answered when it is there.
    pub(crate) fn load(&self, script: &Script, request: RequestId) {
        let mut state = self.state();
        let waiting = state.in_flight.iter_mut().find_map(|pending| match &mut pending.what {
            Awaited::Script(sha, requests) if *sha == script.sha => Some(requests),
            _ => None,
        });
        match waiting {
            Some(requests) => requests.push(request),
            None => state.push(Awaited::Script(script.sha, vec![request]), |out| {
                session::words(out, &["SCRIPT", "LOAD", script.text]);
            }),
        }
    }

    /// Why the connection is to be given up, if it is.
    pub(crate) fn end(&self) -> Option<String> {
        self.state().line.as_ref().map_or(Some("closed".to_owned()), |line| line.end.clone())
    }

    /// What the pump has to write now; `None` when it is not the pump's turn.
    pub(crate) fn take_for_pump(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        match &state.line {
            Some(line) if line.turn == Turn::Pump => Some(state.outbox.take()),
            _ => None,
        }
    }

    /// The pump wrote `written` bytes of `buffer`. True when it has to come again.
    pub(crate) fn wrote_for_pump(&self, buffer: Vec<u8>, written: usize) -> bool {
        let mut state = self.state();
        if written < buffer.len() {
            state.outbox.put_back(buffer, written);
            return true;
        }
        if !state.outbox.is_empty() {
            state.outbox.keep(buffer);
            return true;
        }
        state.outbox.keep(buffer);
        state.set_turn(Turn::Free);
        false
    }
}

/// Whether this is a task of a single-threaded runtime, where the pump runs next anyway.
fn shares_thread() -> bool {
    use tokio::runtime::{Handle, RuntimeFlavor};
    Handle::try_current()
        .is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::CurrentThread)
}

impl State {
    /// Whether requests have left that are not answered yet.
    fn awaits_answers(&self) -> bool {
        self.in_flight.front().is_some_and(|pending| self.outbox.may_have_left(pending.start))
    }

    fn push(&mut self, what: Awaited, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.outbox.push(encode);
        self.in_flight.push_back(Pending { start, what });
    }

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

/// Whose answer an event is; what is known without the server is none.
fn answered(event: &Event) -> Option<RequestId> {
    match event {
        Event::Reply { request, result: Ok(_) | Err(Failure::Refused(_)) } => Some(*request),
        _ => None,
    }
}

fn failed(requests: Vec<RequestId>) -> Vec<Event> {
    requests
        .into_iter()
        .map(|request| Event::Reply { request, result: Err(Failure::NotSent) })
        .collect()
}
