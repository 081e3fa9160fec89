//! Event loops of other languages that drive connections between their other work.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use fencelock_engine::transport::Watcher;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use parking_lot::Mutex;

use crate::blocking::{Client, Driver};
use crate::{Error, ErrorKind, Result};

/// Says that the role of driver has become free for a client that missed a turn.
const BELL: Token = Token(usize::MAX);

/// How many sockets are looked at in one turn; the others wait for the next.
const SOCKETS: usize = 64;

/// An event loop of the host language that drives connections itself, so that an answer wakes the
/// thread that waits for it and no other.
///
/// The host watches [`HostLoop::descriptor`] as it watches its own sockets, and calls
/// [`HostLoop::turn`] when that is readable. A client takes part after [`HostLoop::serve`]; its
/// background thread goes on to serve it whenever the loop does not, because it is busy or has
/// nothing to wait for.
///
/// ```
/// # #[cfg(unix)] {
/// use fencelock::blocking::{Client, HostLoop};
///
/// let host = HostLoop::new()?;
/// let client = Client::connect("memory:")?;
/// // A store that is no connection needs nobody to drive it.
/// assert!(host.serve(&client).is_none());
/// host.turn();
/// # }
/// # Ok::<(), fencelock::Error>(())
/// ```
pub struct HostLoop {
    poll: Mutex<(Poll, Events)>,
    table: Arc<Table>,
}

struct Table {
    registry: Registry,
    bell: Waker,
    guests: Mutex<Guests>,
}

#[derive(Default)]
struct Guests {
    last: usize,
    known: BTreeMap<usize, Weak<Driver>>,
    /// Those for whom the bell rang.
    freed: Vec<usize>,
}

/// A client that a [`HostLoop`] serves, until this is dropped.
#[must_use = "dropping it ends the service"]
pub struct Hosted {
    driver: Arc<Driver>,
    table: Arc<Table>,
    key: usize,
}

impl HostLoop {
    /// A loop without clients.
    ///
    /// # Errors
    /// `Unavailable` when the operating system gives no poller.
    pub fn new() -> Result<HostLoop> {
        let make = || {
            let poll = Poll::new()?;
            let registry = poll.registry().try_clone()?;
            let bell = Waker::new(&registry, BELL)?;
            let table = Arc::new(Table { registry, bell, guests: Mutex::default() });
            Ok(HostLoop { poll: Mutex::new((poll, Events::with_capacity(SOCKETS))), table })
        };
        make().map_err(|error: std::io::Error| {
            Error::new(
                ErrorKind::Unavailable,
                format!("the operating system gives no poller for the client: {error}"),
            )
        })
    }

    /// What the host watches: it is readable when a turn is due. Open as long as this is.
    pub fn descriptor(&self) -> std::os::fd::RawFd {
        use std::os::fd::AsRawFd as _;
        self.table.registry.as_raw_fd()
    }

    /// Serves a client from now on; `None` when its store cannot be served so, or another loop
    /// serves it.
    pub fn serve(&self, client: &Client) -> Option<Hosted> {
        let driver = client.driver();
        let registry = self.table.registry.try_clone().ok()?;
        let key = {
            let mut guests = self.table.guests.lock();
            guests.last += 1;
            let key = guests.last;
            guests.known.insert(key, Arc::downgrade(driver));
            key
        };
        let hosted = Hosted { driver: driver.clone(), table: self.table.clone(), key };
        let table = Arc::downgrade(&self.table);
        let bell = move || {
            if let Some(table) = table.upgrade() {
                table.guests.lock().freed.push(key);
                // It fails only when the poller is gone.
                let _ = table.bell.wake();
            }
        };
        driver.host(Arc::new(Sockets { registry, key }), Box::new(bell)).then_some(hosted)
    }

    /// Does what is due for the clients, and waits for nothing. Calls complete from within.
    pub fn turn(&self) {
        for key in self.due() {
            let driver = self.table.guests.lock().known.get(&key).and_then(Weak::upgrade);
            if let Some(driver) = driver {
                driver.turn();
            }
        }
    }

    fn due(&self) -> Vec<usize> {
        let mut poll = self.poll.lock();
        let (poll, events) = &mut *poll;
        if poll.poll(events, Some(Duration::ZERO)).is_err() {
            // Interrupted: what is due is due still.
            return Vec::new();
        }
        let mut due: Vec<usize> =
            events.iter().map(|event| event.token()).filter(|t| *t != BELL).map(|t| t.0).collect();
        if events.iter().any(|event| event.token() == BELL) {
            due.append(&mut self.table.guests.lock().freed);
        }
        due.sort_unstable();
        due.dedup();
        due
    }
}

impl Hosted {
    /// The client awaits an answer, and the loop will take its turns: until it has been quiet for
    /// some milliseconds the background thread leaves the connection to it.
    pub fn expect(&self) {
        self.driver.expect_host();
    }
}

impl Drop for Hosted {
    fn drop(&mut self) {
        self.table.guests.lock().known.remove(&self.key);
        self.driver.forget_host();
    }
}

/// The sockets of one client. The system forgets one that is closed.
struct Sockets {
    registry: Registry,
    key: usize,
}

impl Watcher for Sockets {
    fn watch(&self, socket: i32) {
        let watched =
            self.registry.register(&mut SourceFd(&socket), Token(self.key), Interest::READABLE);
        if let Err(error) = watched {
            // The background thread serves it all the same.
            tracing::debug!(%error, "a socket cannot be watched by the host's loop");
        }
    }
}

impl std::fmt::Debug for HostLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostLoop")
    }
}

impl std::fmt::Debug for Hosted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hosted")
    }
}
