//! Waiting for a store, and driving its connection meanwhile.

use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use fencelock_engine::transport::Watcher;
use fencelock_engine::{Outcome, Time};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

use crate::alarm;
use crate::blocking::park::{self, Interrupt};
use crate::blocking::role::{Parked, Role, Seen, Then, Watch};
use crate::blocking::sigpipe;
use crate::builder::Resolved;
use crate::client::Client;
use crate::connect::{answered, prepare};
use crate::shared::{Link, Shared};
use crate::uncancelled::uncancelled;
use crate::wait::Wait;
use crate::{Error, ErrorKind, Result, cork};

/// How often the standby thread looks whether callers are away.
const LOOK: Duration = Duration::from_millis(1);

/// How often tasks get their turn to write what a dropped guard sends.
const TURNS: u32 = 4;

/// How often to yield so that the tasks of what has become ready have run: the poller is asked after
/// the first time, and the tasks run before the second ends.
const TURN: u32 = 2;

/// What blocking callers wait on.
pub(crate) struct Driver {
    /// For a store whose connection wants driving.
    driven: Option<Driven>,
}

struct Driven {
    /// Taken out by the drop alone.
    runtime: Option<Runtime>,
    /// Whether a broken connection raises SIGPIPE unless that is held back.
    raises_sigpipe: bool,
    role: Role,
    /// Asks the standby thread to give up the role.
    yielding: Notify,
    /// Tells the host loop, if there is one, that the role is free.
    bell: OnceLock<Bell>,
    shared: Arc<Shared>,
}

/// Tells a host loop to take a turn.
pub(crate) type Bell = Box<dyn Fn() + Send + Sync>;

impl Driver {
    /// Connects a client, and starts what serves it while callers are away.
    pub(crate) fn connect(resolved: Resolved) -> Result<(Client, Arc<Driver>)> {
        uncancelled(|| Driver::open(resolved))
    }

    fn open(resolved: Resolved) -> Result<(Client, Arc<Driver>)> {
        let (limit, url) = (resolved.patience(), resolved.url.to_string());
        let (client, store) = prepare(resolved)?;
        let raises_sigpipe = store.raises_sigpipe();
        let shared = client.shared();
        if !store.needs_runtime() {
            store.open(shared, None)?;
            alarm::spawn_thread(shared).map_err(no_resource)?;
            if !matches!(*shared.link().borrow(), Link::Up) {
                until_answered(None, &client, limit, &url)?;
            }
            return Ok((client, Arc::new(Driver { driven: None })));
        }
        let runtime = runtime()?;
        let handle = runtime.handle().clone();
        // From here on the runtime is dropped as `Driven` wants it, whatever fails.
        let driver = Arc::new(Driver {
            driven: Some(Driven {
                runtime: Some(runtime),
                raises_sigpipe,
                role: Role::new(),
                yielding: Notify::new(),
                bell: OnceLock::new(),
                shared: shared.clone(),
            }),
        });
        store.open(shared, Some(&handle))?;
        alarm::spawn_task(shared, &handle);
        if let Some(driven) = &driver.driven {
            until_answered(Some(driven), &client, limit, &url)?;
        }
        let mine = driver.clone();
        let standby = thread::Builder::new()
            .name("fencelock-standby".to_owned())
            .spawn(move || mine.stand_by())
            .map_err(no_resource)?;
        if let Some(driven) = &driver.driven {
            driven.role.set_standby(standby.thread().clone());
        }
        Ok((client, driver))
    }

    /// Waits for the end of a call.
    pub(crate) fn wait(&self, mut wait: Wait) -> (Outcome, Time) {
        match self.wait_unless(&mut wait, None) {
            Some(ended) => ended,
            None => unreachable!("nothing interrupts this wait"),
        }
    }

    /// As [`Driver::wait`]; `None` when it was interrupted.
    pub(crate) fn wait_unless(
        &self,
        wait: &mut Wait,
        mut interrupt: Option<Interrupt<'_>>,
    ) -> Option<(Outcome, Time)> {
        // This thread may wait for what it holds back.
        cork::end();
        let ending = park::is_ending();
        uncancelled(|| match &self.driven {
            Some(driven) if !ending && may_drive() => driven.wait(wait, &mut interrupt),
            // The standby thread serves it.
            _ => park::park(wait, &mut interrupt),
        })
    }

    /// Sends what a dropped guard enqueued, without waiting for the answer.
    pub(crate) fn send(&self, shared: &Shared) {
        match &self.driven {
            Some(driven) if may_drive() && driven.role.take() => {
                let _leave = Leave(driven);
                driven.block_on(async {
                    shared.flush();
                    turns(TURNS).await;
                });
            }
            _ => shared.flush(),
        }
    }

    /// Lets a host loop drive the connection by turns: `watcher` is shown its sockets, and `bell`
    /// tells the loop to take a turn all the same. False when it cannot be; once for each client.
    pub(crate) fn host(&self, watcher: Arc<dyn Watcher>, bell: Bell) -> bool {
        match &self.driven {
            // The bell is in its place before the first turn can be missed.
            Some(driven) => driven.bell.set(bell).is_ok() && driven.shared.watch(watcher),
            None => false,
        }
    }

    /// From now on the host loop is expected to take turns.
    pub(crate) fn expect_host(&self) {
        if let Some(driven) = &self.driven
            && driven.role.expect_host()
        {
            driven.yielding.notify_one();
        }
    }

    /// The host loop takes no more turns.
    pub(crate) fn forget_host(&self) {
        if let Some(driven) = &self.driven {
            driven.role.forget_host();
        }
    }

    /// A host loop's turn: does what has become due, and waits for nothing. When somebody else
    /// drives, the bell rings as soon as the role is free.
    pub(crate) fn turn(&self) {
        if let Some(driven) = &self.driven
            && may_drive()
            && driven.role.take_turn()
        {
            driven.turn();
        }
    }

    /// Lets a closed client's connection end as it should.
    pub(crate) fn part(&self) {
        if let Some(driven) = &self.driven
            && may_drive()
            && let Some(farewell) = driven.shared.farewell()
        {
            driven.block_on(farewell);
        }
    }

    /// The standby thread's work, until the client is closed.
    fn stand_by(&self) {
        let Some(driven) = &self.driven else { return };
        let mut seen = Seen::default();
        while !driven.shared.is_closed() {
            match driven.role.watch(&mut seen) {
                Watch::Drive => {
                    let _leave = Leave(driven);
                    driven.block_on(async {
                        // First, so that one who asks for the role all the time holds nothing up.
                        turns(TURN).await;
                        // The client may be closed by a call that nobody waits for.
                        while !driven.shared.is_closed() {
                            let yielded = driven.yielding.notified();
                            if tokio::time::timeout(Duration::from_secs(1), yielded).await.is_ok() {
                                return;
                            }
                        }
                    });
                }
                Watch::Turn => {
                    driven.turn();
                    thread::park_timeout(LOOK);
                }
                Watch::Look => thread::park_timeout(LOOK),
                Watch::Sleep => thread::park(),
            }
        }
        // Whoever closed it may not have waited.
        self.part();
    }
}

/// How a parked caller's rest ended.
enum Rested {
    /// The call has ended.
    Ended((Outcome, Time)),
    /// The role is the caller's.
    Driving,
    /// It is time to ask whether to give up.
    Paused,
}

impl Driven {
    /// `None` when it was interrupted.
    fn wait(
        &self,
        wait: &mut Wait,
        interrupt: &mut Option<Interrupt<'_>>,
    ) -> Option<(Outcome, Time)> {
        let every = interrupt.as_ref().map(|interrupt| interrupt.every);
        let mut driving = self.role.take();
        if !driving {
            wait.send();
            park::spin(wait);
            if wait.is_ready()
                && let Poll::Ready(ended) = park::poll(wait)
            {
                return Some(ended);
            }
        }
        loop {
            if !driving {
                driving = match self.rest(wait, every) {
                    Rested::Ended(ended) => return Some(ended),
                    Rested::Driving => true,
                    Rested::Paused => false,
                };
            }
            if driving && let Some(ended) = self.drive(wait, every) {
                return Some(ended);
            }
            // Neither driving nor parked: this may take long, and may call the client itself.
            if let Some(interrupt) = interrupt
                && (interrupt.stop)()
            {
                return None;
            }
            driving = self.role.take();
        }
    }

    /// Parks, for `every` at the most.
    fn rest(&self, wait: &mut Wait, every: Option<Duration>) -> Rested {
        let parked = Parked::new(thread::current());
        match self.role.request(&parked) {
            Then::Drive => return Rested::Driving,
            Then::Ask => self.yielding.notify_one(),
            Then::Park => {}
        }
        loop {
            if let Poll::Ready(ended) = park::poll(wait) {
                self.withdraw(&parked);
                return Rested::Ended(ended);
            }
            if parked.is_offered() {
                return Rested::Driving;
            }
            if park::rest(every) {
                self.withdraw(&parked);
                return Rested::Paused;
            }
        }
    }

    /// Drives the connection until the call has ended, or for `every`. The role is the caller's, and
    /// nobody's afterwards.
    fn drive(&self, wait: &mut Wait, every: Option<Duration>) -> Option<(Outcome, Time)> {
        let _leave = Leave(self);
        match every {
            None => Some(self.block_on(wait)),
            Some(every) => self.block_on(async { tokio::time::timeout(every, wait).await.ok() }),
        }
    }

    /// Drives the connection as far as it goes without waiting. The role is the caller's.
    fn turn(&self) {
        let _leave = Leave(self);
        self.block_on(turns(TURN));
    }

    fn withdraw(&self, parked: &Arc<Parked>) {
        if self.role.withdraw(parked) {
            self.ring();
        }
    }

    fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell();
        }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        uncancelled(|| match &self.runtime {
            Some(runtime) if self.raises_sigpipe => sigpipe::held_back(|| runtime.block_on(future)),
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("the runtime is there until the drop"),
        })
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            if self.shared.is_forked() {
                // Its sockets and its poller are the parent's.
                std::mem::forget(runtime);
            } else {
                // Unlike the plain drop, allowed in async code.
                runtime.shutdown_background();
            }
        }
    }
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Driver").field("drives", &self.driven.is_some()).finish_non_exhaustive()
    }
}

/// Whether this thread may run a client's runtime: one that belongs to a runtime may run no other, and
/// one that is ending may run none.
fn may_drive() -> bool {
    matches!(Handle::try_current(), Err(error) if error.is_missing_context())
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_resource)
}

/// Waits until the store has answered. On a thread of its own if the caller's belongs to a
/// runtime, where another must neither run nor be dropped.
fn until_answered(
    driven: Option<&Driven>,
    client: &Client,
    limit: Duration,
    url: &str,
) -> Result<()> {
    let wait = || {
        let answered = answered(client, limit, url);
        match driven {
            Some(driven) => driven.block_on(answered),
            None => runtime()?.block_on(answered),
        }
    };
    if may_drive() {
        return wait();
    }
    thread::scope(|scope| {
        scope.spawn(wait).join().unwrap_or_else(|_| {
            Err(Error::new(ErrorKind::Unavailable, "connecting panicked; please report this"))
        })
    })
}

fn no_resource(error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("the operating system gives no thread or poller for the client: {error}"),
    )
}

/// Lets tasks run so many times.
async fn turns(count: u32) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Gives the role up, also when a panic unwinds.
struct Leave<'a>(&'a Driven);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.0.role.leave() {
            self.0.ring();
        }
    }
}
