//! Waiting for a store, and driving its connection meanwhile.

use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use fencelock_engine::{Outcome, Time};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::Notify;

use crate::alarm::Alarm;
use crate::blocking::desk::{Desk, Sat, Seat, Seen, Watch};
use crate::blocking::park::{self, Interrupt};
use crate::builder::Resolved;
use crate::client::Client;
use crate::connect::{answered, prepare};
use crate::shared::{Link, Shared};
use crate::wait::Wait;
use crate::{Error, ErrorKind, Result};

/// How often the standby thread looks whether callers are away.
const LOOK: Duration = Duration::from_millis(1);

/// How often tasks get their turn to write what a dropped guard sends.
const TURNS: u32 = 4;

/// What blocking callers wait on.
pub(crate) struct Driver {
    /// For a store whose connection wants driving.
    room: Option<Room>,
}

struct Room {
    /// Taken out by the drop alone.
    runtime: Option<Runtime>,
    desk: Desk,
    /// Asks the standby thread to give up the role.
    yielding: Notify,
    shared: Arc<Shared>,
}

impl Driver {
    /// Connects a client, and starts what serves it while callers are away.
    pub(crate) fn connect(resolved: Resolved) -> Result<(Client, Arc<Driver>)> {
        let (limit, url) = (resolved.connect_timeout, resolved.url.to_string());
        let (client, store) = prepare(resolved)?;
        let shared = client.shared();
        if !store.needs_runtime() {
            store.open(shared, None)?;
            Alarm::spawn_thread(shared).map_err(no_resource)?;
            if !matches!(*shared.link().borrow(), Link::Up) {
                settle(None, &client, limit, &url)?;
            }
            return Ok((client, Arc::new(Driver { room: None })));
        }
        let runtime = runtime()?;
        store.open(shared, Some(runtime.handle()))?;
        Alarm::spawn_task(shared, runtime.handle());
        // From here on the runtime is dropped as the room wants it, also when connecting fails.
        let driver = Arc::new(Driver {
            room: Some(Room {
                runtime: Some(runtime),
                desk: Desk::new(),
                yielding: Notify::new(),
                shared: shared.clone(),
            }),
        });
        if let Some(Room { runtime: Some(runtime), .. }) = &driver.room {
            settle(Some(runtime), &client, limit, &url)?;
        }
        let mine = driver.clone();
        let standby = thread::Builder::new()
            .name("fencelock-standby".to_owned())
            .spawn(move || mine.stand_by())
            .map_err(no_resource)?;
        if let Some(room) = &driver.room {
            room.desk.set_standby(standby.thread().clone());
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
        match &self.room {
            // A runtime's thread may not run another runtime; the standby thread serves it.
            Some(room) if Handle::try_current().is_err() => room.wait(wait, &mut interrupt),
            _ => park::park(wait, &mut interrupt),
        }
    }

    /// Sends what a dropped guard enqueued, without waiting for the answer.
    pub(crate) fn send(&self, shared: &Shared) {
        match &self.room {
            Some(room) if Handle::try_current().is_err() && room.desk.take() => {
                let _leave = Leave(&room.desk);
                room.block_on(async {
                    shared.flush();
                    for _ in 0..TURNS {
                        tokio::task::yield_now().await;
                    }
                });
            }
            _ => shared.flush(),
        }
    }

    /// The standby thread's work, until the client is closed.
    fn stand_by(&self) {
        let Some(room) = &self.room else { return };
        let mut seen = Seen::default();
        while !room.shared.is_closed() {
            match room.desk.watch(&mut seen) {
                Watch::Drive => {
                    let _leave = Leave(&room.desk);
                    room.block_on(async {
                        // The client may be closed by a call that nobody waits for.
                        while !room.shared.is_closed() {
                            let yielded = room.yielding.notified();
                            if tokio::time::timeout(Duration::from_secs(1), yielded).await.is_ok() {
                                return;
                            }
                        }
                    });
                }
                Watch::Look => thread::park_timeout(LOOK),
                Watch::Sleep => thread::park(),
            }
        }
    }
}

impl Room {
    fn wait(
        &self,
        wait: &mut Wait,
        interrupt: &mut Option<Interrupt<'_>>,
    ) -> Option<(Outcome, Time)> {
        if self.desk.take() {
            return self.drive(wait, interrupt);
        }
        wait.send();
        park::spin(wait);
        if wait.is_ready()
            && let Poll::Ready(ended) = park::poll(wait)
        {
            return Some(ended);
        }
        let seat = Seat::new(thread::current());
        match self.desk.sit(&seat) {
            Sat::Drive => return self.drive(wait, interrupt),
            Sat::Ask => self.yielding.notify_one(),
            Sat::Park => {}
        }
        loop {
            if let Poll::Ready(ended) = park::poll(wait) {
                self.desk.rise(&seat);
                return Some(ended);
            }
            if seat.is_offered() {
                return self.drive(wait, interrupt);
            }
            if park::rest(interrupt) {
                self.desk.rise(&seat);
                return None;
            }
        }
    }

    /// Drives the connection until the call has ended. The role is the caller's.
    fn drive(
        &self,
        wait: &mut Wait,
        interrupt: &mut Option<Interrupt<'_>>,
    ) -> Option<(Outcome, Time)> {
        let _leave = Leave(&self.desk);
        let Some(interrupt) = interrupt else { return Some(self.block_on(wait)) };
        loop {
            let slice = async { tokio::time::timeout(interrupt.every, &mut *wait).await };
            match self.block_on(slice) {
                Ok(ended) => return Some(ended),
                Err(_) if (interrupt.stop)() => return None,
                Err(_) => {}
            }
        }
    }

    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &self.runtime {
            Some(runtime) => runtime.block_on(future),
            None => unreachable!("the runtime is there until the drop"),
        }
    }
}

impl Drop for Room {
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
        f.debug_struct("Driver").field("drives", &self.room.is_some()).finish_non_exhaustive()
    }
}

fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(no_resource)
}

/// Waits until the store has answered. On a thread of its own if the caller's belongs to a
/// runtime, where another must neither run nor be dropped.
fn settle(driven: Option<&Runtime>, client: &Client, limit: Duration, url: &str) -> Result<()> {
    let wait = || {
        let answered = answered(client, limit, url);
        match driven {
            Some(driven) => driven.block_on(answered),
            None => runtime()?.block_on(answered),
        }
    };
    if Handle::try_current().is_err() {
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

/// Gives the role up, also when a panic unwinds.
struct Leave<'a>(&'a Desk);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
