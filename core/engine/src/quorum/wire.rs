//! What comes into the machine, and what goes out of it.

use core::time::Duration;

use crate::event::Event;
use crate::request::Request;
use crate::transport::Doubt;

/// What happened at a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// A session with it is up, its subscription confirmed and the marker of its memory read.
    Up {
        /// The server's time in microseconds.
        now: u64,
        /// For how long from now on it gives no vote: its memory is younger than the longest lease.
        /// `Duration::ZERO`: it is old enough.
        wait: Duration,
    },
    /// The session is up still, and the marker is another than it was told of: it gives no vote for so
    /// long. An acquire that met this was answered as refused.
    Wait(Duration),
    /// What a store's session says beside that it is up: [`Event::Down`], [`Event::Reply`],
    /// [`Event::Push`], and [`Event::Misconfigured`] of a server that an operator must mend, as one with
    /// another list of servers in its marker. Every request gets exactly one reply, as from a
    /// [`Transport`](crate::transport::Transport).
    Event(Event),
}

/// What is to be done. A server is named by its place in [`Config::servers`].
///
/// [`Config::servers`]: crate::quorum::Config::servers
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send this to a server. The numbers of requests are the server's own, and ascend.
    Send(usize, Request),
    /// The connection to a server may be dead: see
    /// [`Transport::reconnect`](crate::transport::Transport::reconnect).
    Reconnect(usize, Doubt),
    /// For the engine.
    Event(Event),
}
