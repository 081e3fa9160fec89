//! What the host is told unasked.

use fencelock_support::Dispatcher;

use crate::hold::LossReason;

/// Told that a hold was lost.
#[uniffi::export(callback_interface)]
pub trait LossListener: Send + Sync {
    /// The hold ended before its release: stop what was done under it. Called once, on the thread of
    /// Fencelock's that also wakes who awaits an acquire: do not wait for one here.
    fn lost(&self, reason: LossReason);
}

/// Told that another client waits for a lock that is held.
#[uniffi::export(callback_interface)]
pub trait WantedListener: Send + Sync {
    /// Another client waits. A holder that can pause its work may release, and acquire again. Called
    /// once, on the thread of Fencelock's that also wakes who awaits an acquire: do not wait for one here.
    fn wanted(&self);
}

/// A listener that is called, and freed, on the dispatcher's thread: both reach into the host, which
/// the thread of the connection must not wait for.
pub(crate) struct Told<L: Send + 'static> {
    listener: Option<L>,
    dispatcher: &'static Dispatcher,
}

impl<L: Send + 'static> Told<L> {
    pub(crate) fn new(listener: L) -> fencelock_support::Result<Told<L>> {
        Ok(Told { listener: Some(listener), dispatcher: Dispatcher::current()? })
    }

    pub(crate) fn tell(mut self, tell: impl FnOnce(L) + Send + 'static) {
        if let Some(listener) = self.listener.take() {
            self.dispatcher.post(move || tell(listener));
        }
    }
}

impl<L: Send + 'static> Drop for Told<L> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener.take() {
            self.dispatcher.post(move || drop(listener));
        }
    }
}
