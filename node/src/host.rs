//! The event loop as the driver of its clients' connections, where it can be.

#[cfg(unix)]
use std::cell::RefCell;
#[cfg(unix)]
use std::sync::{Arc, Mutex, PoisonError};

use fencelock_support::Client;
#[cfg(unix)]
use fencelock_support::{HostLoop, Hosted};
use napi::Env;

use crate::inbox::Dispatch;
#[cfg(unix)]
use crate::inbox::Inbox;
#[cfg(unix)]
use crate::poll;

/// The event loop, if it drives connections.
#[derive(Default)]
pub(crate) struct Host {
    #[cfg(unix)]
    turns: Mutex<Option<Arc<HostLoop>>>,
}

/// What the loop's thread has of it.
#[derive(Default)]
pub(crate) struct Turns {
    #[cfg(unix)]
    watching: RefCell<Option<poll::Watching>>,
}

/// A client whose connection the event loop drives, if it does.
#[derive(Default)]
pub(crate) struct Guest {
    #[cfg(unix)]
    hosted: Mutex<Option<Hosted>>,
}

#[cfg(unix)]
impl Host {
    /// Lets the loop drive from now on. Without effect where it cannot: the clients' own threads go
    /// on to.
    pub(crate) fn start(
        &self,
        env: &Env,
        dispatch: &Dispatch<'_>,
        inbox: &Arc<Inbox>,
        mine: &Turns,
    ) {
        let Ok(turns) = HostLoop::new() else { return };
        let turns = Arc::new(turns);
        let (inbox, host) = (inbox.clone(), turns.clone());
        let turn = move || {
            inbox.attend();
            host.turn();
            inbox.take()
        };
        let Some(watching) = poll::start(env, turns.descriptor(), dispatch, turn) else { return };
        *self.turns() = Some(turns);
        mine.watching.replace(Some(watching));
    }

    /// The loop drives no longer, and gives its descriptors back. Its guests have left.
    pub(crate) fn stop(&self, mine: &Turns) {
        self.turns().take();
        if let Some(watching) = mine.watching.take() {
            watching.stop();
        }
    }

    fn turns(&self) -> std::sync::MutexGuard<'_, Option<Arc<HostLoop>>> {
        // Nothing panics while it is locked.
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drives the connection of a client, if that can be.
    pub(crate) fn serve(&self, client: &Client) -> Guest {
        let hosted = self.turns().as_ref().and_then(|turns| client.hosted_by(turns));
        Guest { hosted: Mutex::new(hosted) }
    }
}

#[cfg(unix)]
impl Guest {
    /// An answer is awaited.
    pub(crate) fn expect(&self) {
        if let Some(hosted) = &*self.hosted.lock().unwrap_or_else(PoisonError::into_inner) {
            hosted.expect();
        }
    }

    /// The loop drives no longer.
    pub(crate) fn leave(&self) {
        self.hosted.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[cfg(not(unix))]
impl Host {
    pub(crate) fn start(
        &self,
        _: &Env,
        _: &Dispatch<'_>,
        _: &std::sync::Arc<crate::inbox::Inbox>,
        _: &Turns,
    ) {
    }

    pub(crate) fn stop(&self, _: &Turns) {}

    pub(crate) fn serve(&self, _: &Client) -> Guest {
        Guest::default()
    }
}

#[cfg(not(unix))]
impl Guest {
    pub(crate) fn expect(&self) {}

    pub(crate) fn leave(&self) {}
}
