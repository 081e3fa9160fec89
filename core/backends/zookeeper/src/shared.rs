//! What the callers' threads and the pump share: the machine, and its calls under way.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use atomic_waker::AtomicWaker;
use fencelock_engine::Time;
use fencelock_engine::event::Event;
use fencelock_engine::request::Request;
use fencelock_engine::transport::{Doubt, Sink};
use fencelock_engine::zookeeper::{Call, CallId, Input, Machine, Output, ZkError};
use zookeeper_client as zk;

use crate::calls::{self, Answer, Flight};
use crate::clock;
use crate::doubts::Doubts;
use crate::options::Acl;
use crate::watches::{Fired, Watch, Watches};

/// A call under way, or answered while earlier ones are not.
struct InFlight {
    id: CallId,
    flight: Flight,
    answer: Option<Answer>,
}

struct State {
    machine: Machine,
    client: Option<Arc<zk::Client>>,
    /// In the order in which they left, which is that of their answers.
    flights: VecDeque<InFlight>,
    watches: Watches,
    events: Vec<Event>,
    doubts: Doubts,
    /// Some thread is telling the engine.
    telling: bool,
    /// When the pump wakes by itself.
    armed: Time,
    /// The connection is to be given up.
    giving_up: bool,
    closed: bool,
}

pub(crate) struct Shared {
    inbox: Mutex<Vec<Request>>,
    state: Mutex<State>,
    sink: Arc<dyn Sink>,
    acl: Acl,
    /// Wakes the pump.
    waker: AtomicWaker,
}

impl Shared {
    pub(crate) fn new(machine: Machine, acl: Acl, sink: Arc<dyn Sink>) -> Shared {
        let state = State {
            machine,
            client: None,
            flights: VecDeque::new(),
            watches: Watches::default(),
            events: Vec::new(),
            doubts: Doubts::default(),
            telling: false,
            armed: Time::MAX,
            giving_up: false,
            closed: false,
        };
        Shared {
            inbox: Mutex::default(),
            state: Mutex::new(state),
            sink,
            acl,
            waker: AtomicWaker::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enqueue(&self, request: Request) {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    /// Sends what was enqueued, from the caller's own thread.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        // Taken under the machine's lock, or two threads could pass each other.
        let requests = mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        if requests.is_empty() || state.closed {
            return;
        }
        let now = clock::now();
        for request in requests {
            state.doubts.asked(request.id);
            state.machine.request(now, request);
        }
        let pump = self.carry_out(&mut state);
        drop(state);
        if pump {
            self.waker.wake();
        }
        self.tell();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// The machine hears something.
    pub(crate) fn handle(&self, input: Input) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.machine.handle(clock::now(), input);
        self.carry_out(&mut state);
        drop(state);
        self.tell();
    }

    /// A watch fired; false when it only ended with its session.
    pub(crate) fn fired(&self, Fired { kind, event }: Fired) -> bool {
        let Some(what) = calls::read_change(event.event_type) else { return false };
        self.state().watches.fired(kind, &event.path);
        self.handle(Input::Fired { path: event.path, what });
        true
    }

    /// From now on calls go to this client.
    pub(crate) fn set_client(&self, client: Option<Arc<zk::Client>>) {
        let mut state = self.state();
        state.flights.clear();
        state.watches = Watches::default();
        state.giving_up = false;
        state.doubts.settle();
        if !state.closed {
            state.client = client;
        }
    }

    /// The engine doubts the connection: it is given up, to be sought anew under the same session, unless
    /// it is answered in a moment.
    pub(crate) fn doubt(&self, doubt: Doubt) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        let inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = inbox.iter().any(|request| request.id == doubt.owed);
        drop(inbox);
        state.doubts.doubt(clock::now(), doubt, waits);
        drop(state);
        self.waker.wake();
    }

    pub(crate) fn gives_up(&self) -> bool {
        self.state().giving_up
    }

    /// The connection goes, with its watches: of what is under way nobody knows whether it is done.
    pub(crate) fn let_go(&self, reason: &str) {
        let mut state = self.state();
        if state.closed {
            return;
        }
        state.client = None;
        state.watches = Watches::default();
        state.giving_up = false;
        state.doubts.settle();
        let now = clock::now();
        for InFlight { id, answer, .. } in mem::take(&mut state.flights) {
            let result = answer.map_or(Err(ZkError::ConnectionLoss), |(result, _)| result);
            state.machine.handle(now, Input::Result { call: id, result });
        }
        state.machine.handle(now, Input::Disconnected { reason: reason.to_owned() });
        self.carry_out(&mut state);
        drop(state);
        self.tell();
    }

    /// The same session has another connection.
    pub(crate) fn resume(&self, client: Arc<zk::Client>) {
        let mut state = self.state();
        if !state.closed {
            state.client = Some(client);
        }
        drop(state);
        self.handle(Input::Reattached);
    }

    /// Whether calls go to a session.
    pub(crate) fn has_client(&self) -> bool {
        self.state().client.is_some()
    }

    /// Gives whether a session is to be ended: not when there is none, or the second time.
    pub(crate) fn close(&self) -> bool {
        let mut state = self.state();
        state.closed = true;
        let session = state.client.take().is_some();
        state.flights.clear();
        state.watches = Watches::default();
        state.events.clear();
        drop(state);
        self.waker.wake();
        session
    }

    /// Does what the machine wants done; true when the pump is needed.
    fn carry_out(&self, state: &mut State) -> bool {
        let mut pump = false;
        while let Some(output) = state.machine.poll_output() {
            match output {
                Output::Calls(calls) => {
                    pump |= state.flights.is_empty();
                    for call in calls {
                        self.fly(state, call);
                    }
                }
                Output::Event(event) => {
                    state.doubts.tells(&event);
                    state.events.push(event);
                }
                Output::Unwatch { path } => state.watches.forget(&path),
                // Without one, another is being sought.
                Output::Reconnect => {
                    state.giving_up = state.client.is_some();
                    pump |= state.giving_up;
                }
            }
        }
        pump | state.machine.next_wake().is_some_and(|at| at < state.armed)
    }

    fn fly(&self, state: &mut State, Call { id, op }: Call) {
        let mut flight: Flight = match &state.client {
            Some(client) => calls::fly(Arc::clone(client), self.acl, op),
            None => Box::pin(async { (Err(ZkError::NotSent), None) }),
        };
        // It leaves with its first poll.
        let answer = match flight.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        state.flights.push_back(InFlight { id, flight, answer });
    }

    /// Hears what was answered and does what is due; gives new watches, and when to come again.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> (Vec<Watch>, Option<Time>) {
        self.waker.register(cx.waker());
        let mut state = self.state();
        let now = clock::now();
        loop {
            while let Some(first) = state.flights.front_mut() {
                let polled = match first.answer.take() {
                    Some(answer) => Poll::Ready(answer),
                    None => first.flight.as_mut().poll(cx),
                };
                let Poll::Ready((result, left)) = polled else { break };
                let call = first.id;
                state.flights.pop_front();
                // Whoever asked for it may have left meanwhile.
                if let Some(left) = left.filter(|left| state.machine.is_watched(&left.path)) {
                    state.watches.keep(left);
                }
                state.machine.handle(now, Input::Result { call, result });
                self.carry_out(&mut state);
            }
            if state.machine.next_wake().is_none_or(|at| at > now) {
                break;
            }
            // What it then asks must be listened to, or the answers wake nobody.
            state.machine.wake(now);
            self.carry_out(&mut state);
        }
        // Not before all that has come is read.
        if state.doubts.due().is_some_and(|due| due <= now) {
            state.doubts.settle();
            state.machine.reconnect();
            self.carry_out(&mut state);
        }
        let next = state.machine.next_wake().into_iter().chain(state.doubts.due()).min();
        state.armed = next.unwrap_or(Time::MAX);
        let watches = state.watches.take_new();
        drop(state);
        self.tell();
        (watches, next)
    }

    /// Tells the engine what has gathered, in its order: one thread at a time, and what a thread
    /// adds while another tells is told by that one.
    fn tell(&self) {
        // A sink that panics must not silence the client for good.
        let mut reset = Reset { shared: self, armed: false };
        let mut state = self.state();
        if state.telling {
            return;
        }
        state.telling = true;
        reset.armed = true;
        while !state.events.is_empty() {
            let mut events = mem::take(&mut state.events);
            drop(state);
            self.sink.deliver_all(&mut events);
            state = self.state();
            if state.events.is_empty() {
                events.clear();
                // Its space is kept.
                state.events = events;
            }
        }
        state.telling = false;
        reset.armed = false;
    }
}

/// Ends the telling of a thread that unwinds out of it.
struct Reset<'a> {
    shared: &'a Shared,
    armed: bool,
}

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.shared.state().telling = false;
        }
    }
}
