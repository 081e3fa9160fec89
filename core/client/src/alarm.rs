//! Waking the engine when something is due.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use fencelock_engine::Time;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::bell::Sleeper;
use crate::shared::Shared;

/// How long an alarm sleeps at the most while the client is in use: timers do not count the time
/// during which the host was suspended, so the clock is looked at again.
const LOOK: Duration = Duration::from_secs(1);

/// How long it sleeps at the least.
const PAUSE: Duration = Duration::from_micros(50);

/// Starts the sleeper as a task. It keeps the client until that is closed, and closes it when its
/// runtime ends before.
pub(crate) fn spawn_task(shared: &Arc<Shared>, runtime: &Handle) {
    let bell = Arc::new(Notify::new());
    shared.bell.wakes(Sleeper::Task(bell.clone()));
    let served = Served(shared.clone());
    runtime.spawn(async move {
        let Served(shared) = &served;
        while let Some(pause) = look(shared) {
            match pause {
                Some(pause) => {
                    let _ = tokio::time::timeout(pause, bell.notified()).await;
                }
                None => bell.notified().await,
            }
        }
    });
}

/// A client whose runtime lives.
struct Served(Arc<Shared>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.cut_off();
    }
}

/// Starts the sleeper as a thread.
///
/// # Errors
/// When the operating system gives no thread.
pub(crate) fn spawn_thread(shared: &Arc<Shared>) -> std::io::Result<()> {
    let mine = shared.clone();
    let sleeper = thread::Builder::new().name("fencelock-alarm".to_owned()).spawn(move || {
        while let Some(pause) = look(&mine) {
            match pause {
                Some(pause) => thread::park_timeout(pause),
                None => thread::park(),
            }
        }
    })?;
    shared.bell.wakes(Sleeper::Thread(sleeper.thread().clone()));
    // What became due before there was a bell.
    shared.bell.ring();
    Ok(())
}

/// Does what is due, and says for how long to sleep: `Some(None)` until rung, `None` for good.
fn look(shared: &Shared) -> Option<Option<Duration>> {
    if shared.is_closed() {
        return None;
    }
    shared
        .with(|core, now| {
            let used = std::mem::take(&mut core.used);
            core.engine.wake(now);
            let next = core.engine.next_wake();
            // One more look after the last use: a client that is used all the time but for an
            // instant need not ring for each call.
            core.armed = match next {
                Some(next) => next.min(now + LOOK),
                None if used => now + LOOK,
                None => Time::MAX,
            };
            (core.armed != Time::MAX).then(|| core.armed.since(now).max(PAUSE))
        })
        .ok()
}
