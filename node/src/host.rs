//! The event loop as the driver of its clients' connections, where it can be.

#[cfg(unix)]
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    turns: OnceLock<Arc<HostLoop>>,
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
    pub(crate) fn start(&self, env: &Env, dispatch: &Dispatch<'_>, inbox: &Arc<Inbox>) {
        let Ok(turns) = HostLoop::new() else { return };
        let turns = Arc::new(turns);
        let (inbox, host) = (inbox.clone(), turns.clone());
        let turn = move || {
            inbox.attend();
            host.turn();
            inbox.take()
        };
        if poll::start(env, turns.descriptor(), dispatch, turn) {
            let _ = self.turns.set(turns);
        }
    }

    /// Drives the connection of a client, if that can be.
    pub(crate) fn serve(&self, client: &Client) -> Guest {
        let hosted = self.turns.get().and_then(|turns| client.hosted_by(turns));
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
    pub(crate) fn start(&self, _: &Env, _: &Dispatch<'_>, _: &std::sync::Arc<crate::inbox::Inbox>) {
    }

    pub(crate) fn serve(&self, _: &Client) -> Guest {
        Guest::default()
    }
}

#[cfg(not(unix))]
impl Guest {
    pub(crate) fn expect(&self) {}

    pub(crate) fn leave(&self) {}
}
