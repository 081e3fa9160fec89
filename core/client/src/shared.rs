//! What all handles of one client share: the engine under its mutex, and what stands around it.

use std::cell::Cell as StdCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use fencelock_engine::request::Request;
use fencelock_engine::transport::{Capabilities, Farewell, Sink, Transport, Watcher};
use fencelock_engine::{
    CallKey, ClientId, Effect, Engine, Error, ErrorKind, Event, LossReason, Note, Options, Outcome,
    Time,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::alarm::Alarm;
use crate::cancel::cancelled;
use crate::cell::Cell;
use crate::metrics::{Counts, Metrics};
use crate::roster::Roster;
use crate::wait::Wait;
use crate::{Result, clock, cork, fork};

/// What the engine's mutex guards.
pub(crate) struct Core {
    pub(crate) engine: Engine<Cell>,
    pub(crate) counts: Counts,
    pub(crate) roster: Roster,
    /// When the alarm will look next by itself.
    pub(crate) armed: Time,
    /// Whether the store was asked anything since the alarm looked.
    pub(crate) used: bool,
    /// New owners are turned away; those that hold or wait may go on.
    pub(crate) draining: bool,
    /// What was asked before there was a transport.
    backlog: Vec<Request>,
}

/// Whether the store has answered.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// Not yet; why, as far as is known.
    Down(Option<String>),
    Up,
    /// Only an operator can mend it.
    Refused(Error),
}

/// One client.
pub(crate) struct Shared {
    core: Mutex<Core>,
    transport: OnceLock<Arc<dyn Transport>>,
    pub(crate) alarm: Alarm,
    pub(crate) id: ClientId,
    pub(crate) capabilities: Capabilities,
    link: watch::Sender<Link>,
    closed: AtomicBool,
    /// Re-entries that the engine was not asked about.
    pub(crate) reentries: AtomicU64,
    born: u32,
}

impl Shared {
    pub(crate) fn new(
        options: Options,
        label: &str,
        capabilities: Capabilities,
    ) -> Result<Arc<Shared>> {
        let born = fork::watch();
        let mut seed = [0; 40];
        getrandom::fill(&mut seed).map_err(|error| {
            Error::new(
                ErrorKind::Misconfigured,
                format!("the operating system gives no random bytes ({error}); ids need them"),
            )
        })?;
        let mut id = [0; 8];
        let mut engine_seed = [0; 32];
        id.copy_from_slice(&seed[..8]);
        engine_seed.copy_from_slice(&seed[8..]);
        Ok(Arc::new(Shared {
            core: Mutex::new(Core {
                engine: Engine::new(options, engine_seed)?,
                counts: Counts::default(),
                roster: Roster::default(),
                armed: Time::MAX,
                used: false,
                draining: false,
                backlog: Vec::new(),
            }),
            transport: OnceLock::new(),
            alarm: Alarm::default(),
            id: ClientId::new(u64::from_le_bytes(id), label)?,
            capabilities,
            link: watch::Sender::new(Link::Down(None)),
            closed: AtomicBool::new(false),
            reentries: AtomicU64::new(0),
            born,
        }))
    }

    /// Where a transport delivers to.
    pub(crate) fn sink(self: &Arc<Shared>) -> Arc<dyn Sink> {
        Arc::new(Inbox(Arc::downgrade(self)))
    }

    /// Gives the client its transport.
    pub(crate) fn connect(&self, transport: Arc<dyn Transport>) {
        {
            let mut core = self.core.lock();
            for request in core.backlog.drain(..) {
                transport.enqueue(request);
            }
            // Under the mutex, so that no later request overtakes the backlog.
            let _ = self.transport.set(transport);
        }
        self.flush();
    }

    /// Whether this process is a forked child of the client's own.
    pub(crate) fn is_forked(&self) -> bool {
        fork::generation() != self.born
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Follows whether the store has answered.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Runs one mutation, and does what follows from it.
    pub(crate) fn with<R>(&self, mutate: impl FnOnce(&mut Core, Time) -> R) -> Result<R> {
        let (result, unsent) = self.with_unflushed(mutate)?;
        if unsent {
            self.flush();
        }
        Ok(result)
    }

    /// As [`Shared::with`], but leaves it to the caller to flush, if the second part says so.
    pub(crate) fn with_unflushed<R>(
        &self,
        mutate: impl FnOnce(&mut Core, Time) -> R,
    ) -> Result<(R, bool)> {
        // Before the mutex: in a child, a thread that no longer exists may hold it.
        if self.is_forked() {
            return Err(forked());
        }
        let mut later = Later::take();
        let (result, now, mut unsent, ring) = {
            let mut core = self.core.lock();
            let now = clock::now();
            let result = mutate(&mut core, now);
            let unsent = self.drain(&mut core, &mut later.0);
            core.used |= unsent;
            (result, now, unsent, core.rearm())
        };
        if ring {
            self.alarm.ring();
        }
        for effect in later.0.drain(..) {
            unsent |= self.perform(effect, now);
        }
        Ok((result, unsent))
    }

    /// Takes the engine's effects: requests to the transport's queue, the rest for later.
    fn drain(&self, core: &mut Core, later: &mut Vec<Effect<Cell>>) -> bool {
        let mut unsent = false;
        while let Some(effect) = core.engine.poll_effect() {
            match effect {
                Effect::Send(request) => {
                    unsent = true;
                    match self.transport.get() {
                        Some(transport) => transport.enqueue(request),
                        None => core.backlog.push(request),
                    }
                }
                Effect::Note(note) => {
                    core.counts.note(&note);
                    if !matches!(note, Note::Renewed(_)) {
                        later.push(Effect::Note(note));
                    }
                }
                other => {
                    if let Effect::Complete(_, Outcome::Granted(grant)) = &other {
                        core.counts.granted(grant);
                    }
                    later.push(other);
                }
            }
        }
        unsent
    }

    /// Does, without the mutex, what an effect asks; gives whether to flush.
    fn perform(&self, effect: Effect<Cell>, now: Time) -> bool {
        match effect {
            Effect::Complete(cell, outcome) => {
                if let Outcome::Closed = outcome {
                    self.finish_close();
                }
                // A release that found nothing; it has its hold's cell. An extend's has no listener.
                if matches!(&outcome, Outcome::Failed(error) if error.kind() == ErrorKind::Lost) {
                    cell.lose(LossReason::Gone);
                }
                if let Some(unwanted) = cell.complete(outcome, now) {
                    self.give_back(unwanted);
                }
            }
            Effect::Lost(cell, reason) => cell.lose(reason),
            Effect::Wanted(cell) => cell.want(),
            Effect::Reconnect => {
                if let Some(transport) = self.transport.get() {
                    transport.reconnect();
                }
                return true;
            }
            Effect::Note(note) => log(&note),
            // Drained under the mutex.
            Effect::Send(_) => {}
        }
        false
    }

    /// Sends what was enqueued, unless this thread holds it back.
    pub(crate) fn flush(&self) {
        if let Some(transport) = self.transport.get() {
            cork::flush(transport);
        }
    }

    /// Shows the transport's sockets to a watcher; false when it has none to show.
    pub(crate) fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        self.transport.get().is_some_and(|transport| transport.watch(watcher))
    }

    /// Begins a call that asks the store.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        call: impl FnOnce(&mut Core, Time, Cell),
    ) -> Result<Wait> {
        let cell = Cell::default();
        let handle = cell.clone();
        let ((), unsent) = shared.with_unflushed(|core, now| call(core, now, handle))?;
        Ok(Wait::call(shared.clone(), cell, unsent))
    }

    /// Begins to close; `None` when that is over, or in a forked child.
    pub(crate) fn start_close(self: &Arc<Shared>) -> Option<Wait> {
        if self.is_closed() {
            return None;
        }
        Shared::start(self, |core, now, cell| core.engine.close(now, cell)).ok()
    }

    /// Turns new owners away from now on; gives whether nothing is held and nobody waits.
    pub(crate) fn drain_more(&self) -> bool {
        let idle = self.with(|core, _| {
            core.draining = true;
            core.engine.is_idle()
        });
        // There is nothing to wait for in a forked child.
        idle.unwrap_or(true)
    }

    /// Closes, and lets the connection end as it should.
    pub(crate) async fn close(self: &Arc<Shared>) {
        if let Some(wait) = self.start_close() {
            wait.await;
        }
        if let Some(farewell) = self.farewell() {
            farewell.await;
        }
    }

    fn finish_close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            if let Some(transport) = self.transport.get() {
                transport.close();
            }
            self.alarm.ring();
        }
    }

    /// What a closed client's transport has still to say; nothing in a forked child.
    pub(crate) fn farewell(&self) -> Option<Farewell> {
        if self.is_forked() {
            return None;
        }
        self.transport.get()?.farewell()
    }

    /// Ends a pending acquire whose caller has gone.
    pub(crate) fn cancel(&self, call: CallKey, cell: &Cell) {
        if let Ok(false) = self.with(|core, now| core.engine.cancel(now, call))
            && let Some(outcome) = cell.abandon()
        {
            self.give_back(outcome);
        }
    }

    /// Ends a pending acquire whose caller waits for the word.
    pub(crate) fn cancel_told(&self, call: CallKey, cell: &Cell) {
        if let Ok(true) = self.with(|core, now| core.engine.cancel(now, call)) {
            cell.complete(Outcome::Failed(cancelled()), clock::now());
        }
    }

    /// Releases a hold that nobody took delivery of.
    fn give_back(&self, outcome: Outcome) {
        if let Outcome::Granted(grant) = outcome {
            let _ = self.with(|core, now| core.engine.release(now, grant.hold, None));
        }
    }

    /// What was counted; nothing in a forked child.
    pub(crate) fn metrics(&self) -> Metrics {
        let counted = self.with(|core, _| (core.counts.clone(), core.engine.waiting()));
        let (counts, waiting) = counted.unwrap_or_default();
        counts.snapshot(waiting as u64, self.reentries.load(Ordering::Relaxed))
    }

    fn take(&self, events: &mut Vec<Event>) {
        for event in &*events {
            match event {
                Event::Up { .. } => self.link.send_replace(Link::Up),
                Event::Down { reason } => {
                    tracing::debug!(%reason, "connection lost");
                    self.link.send_replace(Link::Down(Some(reason.clone())))
                }
                Event::Misconfigured(error) => {
                    tracing::warn!(%error, "the store refuses");
                    self.link.send_replace(Link::Refused(error.clone()))
                }
                Event::Reply { .. } | Event::Push(_) => continue,
            };
        }
        let _ = self.with(|core, now| {
            for event in events.drain(..) {
                if let Event::Down { .. } = event {
                    core.counts.reconnected();
                }
                core.engine.handle(now, event);
            }
        });
    }
}

impl Core {
    /// Whether the alarm must be told that it is wanted earlier.
    fn rearm(&mut self) -> bool {
        match self.engine.next_wake() {
            Some(wake) if wake < self.armed => {
                self.armed = wake;
                true
            }
            _ => false,
        }
    }
}

/// The clones of a client, its locks and guards. The last one closes it.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if self.shared.is_forked() {
            // Dropping the parent's connection here would disturb the parent: keep it for ever.
            std::mem::forget(self.shared.clone());
        } else {
            // Sent by the drop; the alarm keeps the client until it is done.
            drop(self.shared.start_close());
        }
    }
}

/// The sink of a transport, which must not keep the client alive.
struct Inbox(Weak<Shared>);

impl Sink for Inbox {
    fn deliver(&self, event: Event) {
        self.deliver_all(&mut vec![event]);
    }

    fn deliver_all(&self, events: &mut Vec<Event>) {
        match self.0.upgrade() {
            Some(shared) => shared.take(events),
            None => events.clear(),
        }
    }
}

/// A buffer for effects, kept by the thread between calls.
struct Later(Vec<Effect<Cell>>);

thread_local! {
    static SPARE: StdCell<Vec<Effect<Cell>>> = const { StdCell::new(Vec::new()) };
}

impl Later {
    fn take() -> Later {
        Later(SPARE.try_with(StdCell::take).unwrap_or_default())
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        if buffer.capacity() > 0 && buffer.capacity() <= 1024 {
            let _ = SPARE.try_with(|spare| spare.set(buffer));
        }
    }
}

fn log(note: &Note) {
    match note {
        Note::Lost { lock, token, reason } => {
            tracing::warn!(%lock, token = token.get(), reason = reason.describe(), "lock lost");
        }
        Note::RenewalFailed { lock, reason } => {
            tracing::warn!(%lock, %reason, "renewal failed; it is tried again");
        }
        Note::PublishFailed => {
            tracing::warn!("the store may not publish to this client; it polls instead");
        }
        Note::StrayGrant(hold) => tracing::debug!(%hold, "grant for a finished wait given back"),
        Note::Renewed(_) => {}
    }
}

pub(crate) fn forked() -> Error {
    Error::new(
        ErrorKind::Closed,
        "this client belongs to the parent process: after a fork, connect a new one",
    )
}

pub(crate) fn draining() -> Error {
    Error::new(
        ErrorKind::Closed,
        "this client is closing: it lets go on what holds or waits, and takes nothing new",
    )
}

pub(crate) fn unexpected(outcome: &Outcome) -> Error {
    debug_assert!(false, "a call ended as {outcome:?}");
    Error::new(ErrorKind::Unavailable, "the call ended in an unexpected way; please report this")
}
