//! What is to be delivered to one client.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fencelock_engine::event::Event;
use fencelock_engine::transport::Sink;

/// A client's inbox. Events are put in the order in which the store made them; whoever comes by
/// delivers them, one thread at a time.
pub(crate) struct Inbox {
    sink: Arc<dyn Sink>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    spare: Vec<Event>,
    delivering: bool,
    closed: bool,
}

impl Inbox {
    pub(crate) fn new(sink: Arc<dyn Sink>) -> Inbox {
        Inbox { sink, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event; false when the client has closed.
    pub(crate) fn put(&self, event: Event) -> bool {
        let mut state = self.lock();
        if !state.closed {
            state.events.push(event);
        }
        !state.closed
    }

    /// Delivers what is there, unless another thread (or a caller further up this thread's stack)
    /// does so already: that one then takes these events too, and the order stays.
    pub(crate) fn deliver(&self) {
        let mut batch;
        {
            let mut state = self.lock();
            if state.delivering || state.events.is_empty() {
                return;
            }
            state.delivering = true;
            batch = std::mem::take(&mut state.spare);
            std::mem::swap(&mut batch, &mut state.events);
        }
        // A sink that panics must not silence the client for good.
        let _reset = Reset(self);
        loop {
            self.sink.deliver_all(&mut batch);
            batch.clear();
            let mut state = self.lock();
            if state.events.is_empty() {
                state.spare = batch;
                state.delivering = false;
                return;
            }
            std::mem::swap(&mut batch, &mut state.events);
        }
    }

    /// Drops what is there and takes nothing more.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.events = Vec::new();
    }
}

struct Reset<'a>(&'a Inbox);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().delivering = false;
        }
    }
}
