//! The client's thread: it owns the connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fencelock_engine::Event;
use fencelock_engine::reply::Failure;
use fencelock_engine::request::Request;
use fencelock_engine::store::Caller;
use fencelock_engine::transport::Sink;

use crate::clock::Clock;
use crate::fault::Fault;
use crate::fork;
use crate::options::Options;
use crate::peers::Peer;
use crate::queue::Queue;
use crate::store::Store;
use crate::watch::Watch;

/// How many requests share one transaction; others want to write too.
const BATCH: usize = 64;
/// The pauses between two looks at the file while the client waits: the first after something has
/// changed, and the longest when nothing does.
const WAITER_PAUSE: (Duration, Duration) = (Duration::from_micros(500), Duration::from_millis(10));
/// The pause while it only holds: how late it may learn that others wait, or that it was broken.
const HOLDER_PAUSE: Duration = Duration::from_millis(50);
/// How long it may take until a lock that was just made is swept in time.
const SWEEP: Duration = Duration::from_secs(5);
/// So many news that were seen are not left until the next write.
const NEWS: usize = 64;
/// The first and the longest pause before the file is opened again.
const REOPEN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// What the thread owns.
pub(crate) struct Worker {
    pub queue: Arc<Queue>,
    pub sink: Arc<dyn Sink>,
    pub caller: Caller,
    pub options: Options,
    pub clock: Clock,
    pub path: PathBuf,
    pub peer: Peer,
    pub store: Option<Store>,
    pub watch: Watch,
    pub schedule: Schedule,
}

/// When to look at the file, and when to open it again.
pub(crate) struct Schedule {
    pause: Duration,
    look: Instant,
    /// When idle locks are forgotten; `None` when the file has no locks.
    sweep: Option<Instant>,
    backoff: Duration,
    reopen: Instant,
    complaint: Option<String>,
}

impl Default for Schedule {
    fn default() -> Schedule {
        let now = Instant::now();
        Schedule {
            pause: WAITER_PAUSE.0,
            look: now,
            sweep: Some(now),
            backoff: REOPEN.0,
            reopen: now,
            complaint: None,
        }
    }
}

impl Worker {
    /// Works until the client closes.
    pub(crate) fn run(mut self) {
        self.up();
        while !self.queue.is_stopped() {
            let work = self.queue.wait(self.pause());
            if self.queue.is_stopped() {
                break;
            }
            let _inside = fork::enter();
            if self.store.is_none() {
                self.reopen();
            }
            self.serve(work.requests);
            if !self.watch.is_empty() && (work.poked || Instant::now() >= self.schedule.look) {
                self.look(work.poked);
            }
            if self.schedule.sweep.is_some_and(|at| Instant::now() >= at) {
                self.sweep();
            }
        }
        let _inside = fork::enter();
        drop(self);
    }

    fn pause(&self) -> Option<Duration> {
        let until = if self.store.is_none() {
            Some(self.schedule.reopen)
        } else {
            let look = (!self.watch.is_empty()).then_some(self.schedule.look);
            look.into_iter().chain(self.schedule.sweep).min()
        };
        until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    fn serve(&mut self, requests: Vec<Request>) {
        let mut requests = requests.into_iter().peekable();
        while requests.peek().is_some() && !self.queue.is_stopped() {
            let batch: Vec<Request> = requests.by_ref().take(BATCH).collect();
            let Some(store) = &mut self.store else {
                self.fail(batch, &Failure::NotSent);
                continue;
            };
            let was_waiting = self.watch.is_waiting();
            let was_watching = !self.watch.is_empty();
            match store.run(&self.caller, &batch, &mut self.watch.seen, &self.queue.stop) {
                Ok(done) => {
                    let mut events = Vec::with_capacity(batch.len());
                    for (request, (id, result)) in batch.iter().zip(done.replies) {
                        self.watch.note(&request.op, &result);
                        events.push(Event::Reply { request: id, result });
                    }
                    self.peer.wake(&done.told);
                    if self.watch.is_waiting() && !was_waiting {
                        self.schedule.pause = WAITER_PAUSE.0;
                        self.schedule.look = Instant::now() + WAITER_PAUSE.0;
                    } else if !self.watch.is_empty() && !was_watching {
                        self.schedule.look = Instant::now() + HOLDER_PAUSE;
                    }
                    self.deliver(events);
                    let soon = Instant::now() + SWEEP;
                    self.schedule.sweep = Some(self.schedule.sweep.map_or(soon, |at| at.min(soon)));
                }
                Err(fault) => {
                    self.fail(batch, &fault.failure(&self.path));
                    self.after(fault);
                }
            }
        }
    }

    fn sweep(&mut self) {
        let Some(store) = &mut self.store else { return };
        // Forgetting can wait; what is wrong with the file the next request will tell.
        let next = match store.sweep(&self.caller, &self.queue.stop) {
            Ok(swept) => {
                self.peer.wake(&swept.told);
                swept.next
            }
            Err(_) => Some(SWEEP),
        };
        self.schedule.sweep = next.map(|next| Instant::now() + next);
    }

    /// Looks whether others changed something that concerns this client.
    fn look(&mut self, poked: bool) {
        let Some(store) = &mut self.store else { return };
        let (watch, stop) = (&mut self.watch, &self.queue.stop);
        let client = self.caller.client.id();
        // The version is read before the rows, so that a later change is seen next time.
        let found = store.changed().and_then(|changed| {
            if !changed && !poked {
                return Ok(None);
            }
            store.begin_reading(stop)?;
            let result = store
                .check_meta()
                .and_then(|()| Ok(watch.look(&store.conn, client, store.now())?));
            let news = store.end(result)?;
            if watch.seen.len() >= NEWS {
                // Otherwise they go with the next write.
                let _ = store.forget_news(&mut watch.seen, stop);
            }
            Ok(Some(news))
        });
        match found {
            Ok(Some(news)) => {
                self.schedule.pause = WAITER_PAUSE.0;
                self.deliver(news.into_iter().map(Event::Push).collect());
            }
            Ok(None) => {
                self.schedule.pause = (self.schedule.pause * 5 / 4).min(WAITER_PAUSE.1);
            }
            Err(fault) => {
                store.forget_version();
                self.schedule.pause = WAITER_PAUSE.1;
                self.after(fault);
            }
        }
        let pause = if self.watch.is_waiting() { self.schedule.pause } else { HOLDER_PAUSE };
        self.schedule.look = Instant::now() + pause;
    }

    /// Gives up the connection if the fault calls for it.
    fn after(&mut self, fault: Fault) {
        if fault.breaks_connection() {
            let reason = fault.describe(&self.path);
            self.down(reason);
            if fault.is_misconfigured() {
                self.complain(&fault);
            }
            self.schedule.reopen = Instant::now() + self.schedule.backoff;
        }
    }

    fn down(&mut self, reason: String) {
        if self.store.take().is_some() {
            self.deliver(vec![Event::Down { reason }]);
        }
    }

    fn up(&mut self) {
        if let Some(store) = &self.store {
            let now = store.now();
            self.schedule.complaint = None;
            self.deliver(vec![Event::Up { now }]);
        }
    }

    fn reopen(&mut self) {
        if self.store.is_some() || Instant::now() < self.schedule.reopen {
            return;
        }
        let clock = self.clock.clone();
        match Store::open(self.path.clone(), &self.options, clock, &self.queue.stop) {
            Ok(store) => {
                self.store = Some(store);
                self.schedule.backoff = REOPEN.0;
                self.schedule.look = Instant::now();
                self.up();
            }
            Err(fault) => {
                if fault.is_misconfigured() {
                    self.complain(&fault);
                }
                self.schedule.reopen = Instant::now() + self.schedule.backoff;
                self.schedule.backoff = (self.schedule.backoff * 2).min(REOPEN.1);
            }
        }
    }

    /// Tells what only an operator can mend, once until it is mended.
    fn complain(&mut self, fault: &Fault) {
        let error = fault.error(&self.path);
        if self.schedule.complaint.as_deref() != Some(error.message()) {
            self.schedule.complaint = Some(error.message().to_owned());
            self.deliver(vec![Event::Misconfigured(error)]);
        }
    }

    fn fail(&mut self, requests: Vec<Request>, failure: &Failure) {
        let failed =
            |request: Request| Event::Reply { request: request.id, result: Err(failure.clone()) };
        self.deliver(requests.into_iter().map(failed).collect());
    }

    fn deliver(&self, mut events: Vec<Event>) {
        if !events.is_empty() && !self.queue.is_stopped() {
            self.sink.deliver_all(&mut events);
        }
    }
}
