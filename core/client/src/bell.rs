//! Ringing for whoever wakes the engine.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use tokio::sync::Notify;

/// Tells the task or thread that wakes the engine that it is wanted earlier.
#[derive(Default)]
pub(crate) struct Bell(OnceLock<Sleeper>);

/// Whom to wake.
pub(crate) enum Sleeper {
    Task(Arc<Notify>),
    Thread(Thread),
}

impl Bell {
    /// Wakes the sleeper; it looks by itself when there is none yet.
    pub(crate) fn ring(&self) {
        match self.0.get() {
            Some(Sleeper::Task(bell)) => bell.notify_one(),
            Some(Sleeper::Thread(sleeper)) => sleeper.unpark(),
            None => {}
        }
    }

    /// Who hears it from now on; the first that is said.
    pub(crate) fn wakes(&self, sleeper: Sleeper) {
        let _ = self.0.set(sleeper);
    }
}
