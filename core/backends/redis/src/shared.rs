//! What the callers' threads and the pump share.

use std::collections::VecDeque;
use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use atomic_waker::AtomicWaker;
use fencelock_engine::event::Event;
use fencelock_engine::redis::{Codec, Command, Inbox, Listing, Script};
use fencelock_engine::reply::Failure;
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::transport::{Sink, Watcher};
use tokio::net::tcp;
#[cfg(unix)]
use tokio::net::unix;

use crate::connect;
use crate::encode;

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

/// The writing half of a connection, as a caller's thread may use it.
#[derive(Debug)]
pub(crate) enum Writer {
    Tcp(tcp::OwnedWriteHalf),
    #[cfg(unix)]
    Unix(unix::OwnedWriteHalf),
    /// Only the pump writes: what goes out passes through its TLS state.
    Pump,
}

impl Writer {
    pub(crate) fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Writer::Tcp(half) => half.try_write(bytes),
            #[cfg(unix)]
            Writer::Unix(half) => half.try_write(bytes),
            Writer::Pump => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Whether the socket takes bytes again; wakes the task otherwise.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        match self {
            Writer::Tcp(half) => half.as_ref().poll_write_ready(cx),
            #[cfg(unix)]
            Writer::Unix(half) => half.as_ref().poll_write_ready(cx),
            Writer::Pump => std::task::Poll::Ready(Ok(())),
        }
    }
}

/// The socket's two halves close together, without a farewell that would flush what is abandoned.
#[derive(Debug)]
pub(crate) struct Link(Option<Writer>);

impl Link {
    pub(crate) fn new(writer: Writer) -> Link {
        Link(Some(writer))
    }

    pub(crate) fn writer(&self) -> &Writer {
        self.0.as_ref().unwrap_or(&Writer::Pump)
    }

    fn forsake(&self) {
        if let Some(Writer::Tcp(half)) = &self.0 {
            connect::forsake(half.as_ref());
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match self.0.take() {
            Some(Writer::Tcp(half)) => half.forget(),
            #[cfg(unix)]
            Some(Writer::Unix(half)) => half.forget(),
            Some(Writer::Pump) | None => {}
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
    /// Why it is to be given up.
    end: Option<String>,
}

struct State {
    codec: Codec,
    line: Option<Line>,
    watcher: Option<Arc<dyn Watcher>>,
    epoch: u64,
    /// Encoded, and not yet taken by a writer.
    out: Vec<u8>,
    /// How much of the front of `out` is written already.
    written: usize,
    /// An empty buffer, kept for its space.
    spare: Vec<u8>,
    /// All bytes ever encoded for this connection.
    encoded: u64,
    /// How many of them may have left.
    left: u64,
    in_flight: VecDeque<Pending>,
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

/// Buffers above this are not kept.
const KEEP: usize = 256 << 10;

impl Shared {
    pub(crate) fn new(codec: Codec, sink: Arc<dyn Sink>) -> Shared {
        Shared {
            state: Mutex::new(State {
                codec,
                line: None,
                watcher: None,
                epoch: 0,
                out: Vec::new(),
                written: 0,
                spare: Vec::new(),
                encoded: 0,
                left: 0,
                in_flight: VecDeque::new(),
                refused: Vec::new(),
            }),
            sink,
            closed: AtomicBool::new(false),
            attention: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing below can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn deliver(&self, events: &mut Vec<Event>) {
        if self.is_closed() {
            events.clear();
        } else if !events.is_empty() {
            self.sink.deliver_all(events);
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
        state.push(awaited, |out| encode::command(out, &command));
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
        if state.out.is_empty() {
            return;
        }
        if matches!(link.writer(), Writer::Pump) || (state.awaits_answers() && shares_thread()) {
            state.set_turn(Turn::Pump);
            drop(state);
            self.call_pump();
            return;
        }
        state.set_turn(Turn::Caller);
        let mut buffer = state.take_out();
        drop(state);
        loop {
            let (written, result) = write(link.writer(), &buffer);
            let mut state = self.state();
            if state.line.as_ref().is_none_or(|line| line.epoch != epoch) {
                return;
            }
            match result {
                Ok(()) => {
                    if let Some(more) = state.next_out(buffer) {
                        buffer = more;
                        continue;
                    }
                    state.set_turn(Turn::Free);
                    return;
                }
                Err(error) => {
                    state.put_back(buffer, written);
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

    pub(crate) fn reconnect(&self) {
        let mut state = self.state();
        state.end("the connection was given up".to_owned());
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
        state.out = Vec::new();
    }

    // ----- pump -----

    /// Takes requests from now on.
    pub(crate) fn up(&self, link: Arc<Link>, sockets: Vec<i32>, inbox: Inbox) {
        let mut state = self.state();
        state.epoch += 1;
        let epoch = state.epoch;
        state.codec.set_inbox(inbox);
        state.out.clear();
        state.written = 0;
        state.encoded = 0;
        state.left = 0;
        if !self.is_closed() {
            if let Some(watcher) = &state.watcher {
                sockets.iter().for_each(|socket| watcher.watch(*socket));
            }
            state.line = Some(Line { link, sockets, epoch, turn: Turn::Free, end: None });
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
        let left = state.left;
        for pending in mem::take(&mut state.in_flight) {
            match pending.what {
                Awaited::Request(request, _) | Awaited::Round(request, ..) => {
                    let failure =
                        if pending.start < left { Failure::Unknown } else { Failure::NotSent };
                    events.push(Event::Reply { request, result: Err(failure) });
                }
                // The server said that it did not execute these.
                Awaited::Script(_, requests) => events.extend(failed(requests)),
            }
        }
        state.out.clear();
        state.written = 0;
    }

    /// Whose answer has come.
    pub(crate) fn answered(&self) -> Option<Awaited> {
        self.state().in_flight.pop_front().map(|pending| pending.what)
    }

    /// Asks further on behalf of a request that was under way already.
    pub(crate) fn ask_on(&self, awaited: Awaited, command: &Command) {
        self.state().push(awaited, |out| encode::command(out, command));
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
                encode::words(out, &["SCRIPT", "LOAD", script.text]);
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
            Some(line) if line.turn == Turn::Pump => Some(state.take_out()),
            _ => None,
        }
    }

    /// The pump wrote `written` bytes of `buffer`. True when it has to come again.
    pub(crate) fn wrote_for_pump(&self, buffer: Vec<u8>, written: usize) -> bool {
        let mut state = self.state();
        if written < buffer.len() {
            state.put_back(buffer, written);
            return true;
        }
        if !state.out.is_empty() {
            state.keep(buffer);
            return true;
        }
        state.keep(buffer);
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
        self.in_flight.front().is_some_and(|pending| pending.start < self.left)
    }

    fn push(&mut self, what: Awaited, encode: impl FnOnce(&mut Vec<u8>)) {
        let before = self.out.len();
        encode(&mut self.out);
        self.in_flight.push_back(Pending { start: self.encoded, what });
        self.encoded += (self.out.len() - before) as u64;
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

    /// All of it may leave from now on.
    fn take_out(&mut self) -> Vec<u8> {
        let mut buffer = mem::replace(&mut self.out, mem::take(&mut self.spare));
        if self.written > 0 {
            buffer.drain(..self.written);
            self.written = 0;
        }
        self.left += buffer.len() as u64;
        buffer
    }

    /// What came while `done` was being written; `None`, with `done` kept, when nothing did.
    fn next_out(&mut self, done: Vec<u8>) -> Option<Vec<u8>> {
        self.keep(done);
        if self.out.is_empty() { None } else { Some(self.take_out()) }
    }

    /// Only the first `written` bytes of `buffer` have left.
    fn put_back(&mut self, mut buffer: Vec<u8>, written: usize) {
        self.left -= (buffer.len() - written) as u64;
        buffer.extend_from_slice(&self.out);
        self.out = buffer;
        self.written = written;
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEEP {
            buffer.clear();
            self.spare = buffer;
        }
    }
}

fn write(writer: &Writer, buffer: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < buffer.len() {
        match writer.try_write(&buffer[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(bytes) => written += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

fn failed(requests: Vec<RequestId>) -> Vec<Event> {
    requests
        .into_iter()
        .map(|request| Event::Reply { request, result: Err(Failure::NotSent) })
        .collect()
}
