//! What the servers say to each other, and what happens to them.

use std::rc::Rc;

use crate::clock::Instant;
use crate::dice::Dice;
use crate::zookeeper::op::{Op, SessionId};
use crate::zookeeper::server::{Entry, Mail, Origin};

/// What the servers say to each other.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Message {
    /// To the leader: a write.
    Forward { session: SessionId, origin: Origin, op: Op },
    /// To the leader: a new session.
    Open { origin: Origin, timeout: u64 },
    /// To the leader: a session that came from elsewhere.
    Revalidate { session: SessionId, origin: Origin, timeout: u64 },
    /// To the leader: a sync.
    Sync { origin: Origin },
    /// To the leader: so much of the log is on disk.
    Ack { has: usize },
    /// To the leader: the answer to a ping, with the sessions heard from.
    Touch { sessions: Vec<SessionId> },
    /// To a follower: one more transaction.
    Propose { entry: Rc<Entry> },
    /// To a follower: so much of the log is committed.
    Commit { upto: usize },
    /// To a follower: a sync is answered.
    Synced { origin: Origin },
    /// To a follower: whether a session goes on.
    Revalidated { session: SessionId, origin: Origin, timeout: u64, valid: bool },
    /// To a follower: a sign of life.
    Ping,
}

/// What happens within the ensemble.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Event {
    /// A message arrives.
    Peer { from: usize, to: usize, term: u64, message: Message },
    /// Half a tick has passed for a server.
    Beat { server: usize, life: u64 },
    /// A leader's tick: sessions expire.
    Tick { server: usize, life: u64 },
    /// A leader looks for empty containers.
    Reap { server: usize, life: u64 },
    /// A server looks for a leader.
    Look { server: usize, life: u64 },
    /// A server's process starts.
    Start { server: usize, life: u64 },
    /// A follower finds the connection to its leader gone.
    Leave { server: usize, life: u64 },
    /// A server that stood still goes on.
    Resume { server: usize },
}

impl Event {
    /// The server to which it happens.
    pub fn server(&self) -> usize {
        match self {
            Event::Peer { to, .. } => *to,
            Event::Beat { server, .. }
            | Event::Tick { server, .. }
            | Event::Reap { server, .. }
            | Event::Look { server, .. }
            | Event::Start { server, .. }
            | Event::Leave { server, .. }
            | Event::Resume { server } => *server,
        }
    }
}

/// What the ensemble needs of the world, and what it leaves there.
#[derive(Debug)]
pub struct Env<'a> {
    /// The time.
    pub now: Instant,
    /// Chance.
    pub dice: &'a mut Dice,
    /// What is to happen.
    pub later: Vec<(Instant, Event)>,
    /// What clients are told.
    pub mail: Mail,
}

impl Env<'_> {
    /// An environment at `now`.
    pub fn new(now: Instant, dice: &mut Dice) -> Env<'_> {
        Env { now, dice, later: Vec::new(), mail: Vec::new() }
    }
}
