//! What all handles of one client share: the engine under its mutex, and what stands around it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use fencelock_engine::request::{Mode, Request};
use fencelock_engine::transport::{Capabilities, Farewell, Sink, Transport, Watcher};
use fencelock_engine::{
    CallKey, ClientId, Effect, Engine, Error, ErrorKind, Event, LaneId, LossReason, Note, Options,
    Outcome, Time,
};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::bell::Bell;
use crate::effects::{Later, log};
use crate::errors::{cancelled, forked};
use crate::listener::Listener;
use crate::metrics::{Counts, Metrics, ServerMetrics};
use crate::owner_holds::OwnerHolds;
use crate::uncancelled::uncancelled;
use crate::{Result, clock, cork, fork};

/// Longer than anything is waited for.
const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// What the engine's mutex guards.
pub(crate) struct Core {
    pub(crate) engine: Engine<Listener>,
    pub(crate) counts: Counts,
    pub(crate) owner_holds: OwnerHolds,
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
    pub(crate) bell: Bell,
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
                owner_holds: OwnerHolds::default(),
                armed: Time::MAX,
                used: false,
                draining: false,
                backlog: Vec::new(),
            }),
            transport: OnceLock::new(),
            bell: Bell::default(),
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
        // To wake somebody may be to write.
        uncancelled(|| {
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
                self.bell.ring();
            }
            for effect in later.0.drain(..) {
                unsent |= self.perform(effect, now);
            }
            Ok((result, unsent))
        })
    }

    /// Takes the engine's effects: requests to the transport's queue, the rest for later.
    fn drain(&self, core: &mut Core, later: &mut Vec<Effect<Listener>>) -> bool {
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
    fn perform(&self, effect: Effect<Listener>, now: Time) -> bool {
        match effect {
            Effect::Complete(listener, outcome) => {
                if let Outcome::Closed = outcome {
                    self.finish_close();
                }
                // A release that found nothing; it has its hold's listener. An extend's has no listener.
                if matches!(&outcome, Outcome::Failed(error) if error.kind() == ErrorKind::Lost) {
                    listener.lose(LossReason::Gone);
                }
                if let Some(unwanted) = listener.complete(outcome, now) {
                    self.give_back(unwanted);
                }
            }
            Effect::Lost(listener, reason) => listener.lose(reason),
            Effect::Wanted(listener) => listener.want(),
            Effect::Reconnect(doubt) => {
                if let Some(transport) = self.transport.get() {
                    transport.reconnect(doubt);
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
            uncancelled(|| cork::flush(transport));
        }
    }

    /// Shows the transport's sockets to a watcher; false when it has none to show.
    pub(crate) fn watch(&self, watcher: Arc<dyn Watcher>) -> bool {
        self.transport.get().is_some_and(|transport| transport.watch(watcher))
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

    /// Whether nothing is held, waited for or being released; in a forked child, nothing is.
    pub(crate) fn is_idle(&self) -> bool {
        self.with(|core, _| core.engine.is_settled()).unwrap_or(true)
    }

    /// Whether nothing is held or waited for.
    pub(crate) fn is_unused(&self) -> bool {
        self.with(|core, _| core.engine.is_idle()).unwrap_or(true)
    }

    /// Whether a client that has closed left nothing at the store that it knows of.
    pub(crate) fn left_nothing(&self) -> bool {
        self.with(|core, _| core.engine.has_left_nothing()).unwrap_or(true)
    }

    /// Closes, though nothing is heard of the store any more and nobody wakes the engine: what waits would
    /// wait for ever, and holds would be trusted that nobody renews.
    pub(crate) fn cut_off(&self) {
        if self.is_closed() {
            return;
        }
        tracing::debug!("the client's runtime has ended, and the client with it");
        let _ = self.with(|core, now| {
            core.engine.close(now, Listener::default());
            // Whatever has a bound has reached it.
            core.engine.wake(now + A_DAY);
        });
    }

    fn finish_close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            if let Some(transport) = self.transport.get() {
                transport.close();
            }
            self.bell.ring();
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
    pub(crate) fn cancel(&self, call: CallKey, listener: &Listener) {
        if let Ok(false) = self.with(|core, now| core.engine.cancel(now, call))
            && let Some(outcome) = listener.abandon()
        {
            self.give_back(outcome);
        }
    }

    /// Ends a pending acquire whose caller waits for the word.
    pub(crate) fn cancel_told(&self, call: CallKey, listener: &Listener) {
        if let Ok(true) = self.with(|core, now| core.engine.cancel(now, call)) {
            listener.complete(Outcome::Failed(cancelled()), clock::now());
        }
    }

    /// Releases a hold, or makes it shared again, that nobody took delivery of.
    fn give_back(&self, outcome: Outcome) {
        match outcome {
            Outcome::Granted(grant) => {
                let _ = self.with(|core, now| core.engine.release(now, grant.hold, None));
            }
            Outcome::Converted(to) if to.mode == Mode::Exclusive => {
                let _ = self.with(|core, now| core.engine.undo_upgrade(now, to.hold));
            }
            _ => {}
        }
    }

    /// What was counted; nothing in a forked child.
    pub(crate) fn metrics(&self) -> Metrics {
        let counted = self
            .with(|core, _| (core.counts.clone(), core.engine.waiting(), core.engine.servers()));
        let (counts, waiting, servers) = counted.unwrap_or_default();
        // One server has no name of its own.
        let named = |lane| self.transport.get().and_then(|it| it.server(lane));
        let named = |lane| named(lane).unwrap_or_else(|| self.capabilities.store.to_owned());
        let servers = servers.into_iter().map(|it| ServerMetrics::of(named(it.lane), it));
        let reentries = self.reentries.load(Ordering::Relaxed);
        counts.snapshot(waiting as u64, reentries, servers.collect())
    }

    /// Of a store that is several servers, the first lane tells whether it is there at all.
    fn take(&self, lane: LaneId, events: &mut Vec<Event>) {
        for event in &*events {
            let link = match event {
                Event::Up { .. } => Link::Up,
                Event::Down { reason } => {
                    tracing::debug!(%reason, "connection lost");
                    Link::Down(Some(reason.clone()))
                }
                Event::Misconfigured(error) => {
                    tracing::warn!(%error, "the store refuses");
                    Link::Refused(error.clone())
                }
                Event::Reply { .. } | Event::Push(_) | Event::Map(_) | Event::Detour(..) => {
                    continue;
                }
            };
            if lane == LaneId::FIRST {
                self.link.send_replace(link);
            }
        }
        let _ = self.with(|core, now| {
            for event in events.drain(..) {
                if let Event::Down { .. } = event {
                    core.counts.reconnected();
                }
                core.engine.handle_on(now, lane, event);
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

/// The sink of a transport, which must not keep the client alive.
struct Inbox(Weak<Shared>);

impl Sink for Inbox {
    fn deliver(&self, event: Event) {
        self.deliver_all(&mut vec![event]);
    }

    fn deliver_all(&self, events: &mut Vec<Event>) {
        self.deliver_on(LaneId::FIRST, events);
    }

    fn deliver_on(&self, lane: LaneId, events: &mut Vec<Event>) {
        match self.0.upgrade() {
            Some(shared) => shared.take(lane, events),
            None => events.clear(),
        }
    }
}
