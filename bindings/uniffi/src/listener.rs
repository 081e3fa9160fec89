//! What the host is told unasked.

use fencelock_support::Dispatcher;

/// Why a hold was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum LossReason {
    /// Its explicit lease, or its longest time, has ended.
    Ended,
    /// It could not be renewed in time.
    NotRenewed,
    /// The store no longer knows it: the store lost its memory, or gave the lock away.
    Gone,
    /// An operator broke it.
    Broken,
    /// The client was closed, or the process forked.
    Closed,
}

impl From<fencelock_support::LossReason> for LossReason {
    fn from(reason: fencelock_support::LossReason) -> LossReason {
        match reason {
            fencelock_support::LossReason::Ended => LossReason::Ended,
            fencelock_support::LossReason::NotRenewed => LossReason::NotRenewed,
            fencelock_support::LossReason::Gone => LossReason::Gone,
            fencelock_support::LossReason::Broken => LossReason::Broken,
            fencelock_support::LossReason::Closed => LossReason::Closed,
        }
    }
}

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
