//! The leader's account of sessions: it alone decides when one has expired.

use std::collections::BTreeMap;

use crate::clock::Instant;
use crate::zookeeper::op::{Code, SessionId};

#[derive(Debug)]
struct Session {
    timeout: u64,
    expires: Instant,
    /// The server that speaks for it.
    owner: Option<usize>,
    closing: bool,
}

/// The sessions that a leader keeps.
#[derive(Debug)]
pub struct Tracker {
    tick: u64,
    /// Where the leader's ticks lie.
    phase: u64,
    sessions: BTreeMap<SessionId, Session>,
}

impl Tracker {
    /// A leader that begins gives every session its whole time anew.
    pub fn new(now: Instant, tick: u64, phase: u64, known: &BTreeMap<SessionId, u64>) -> Tracker {
        let mut tracker = Tracker { tick, phase, sessions: BTreeMap::new() };
        for (&session, &timeout) in known {
            tracker.open(now, session, timeout, None);
        }
        tracker
    }

    /// Sessions expire at ticks, never before their time.
    fn bucket(&self, at: Instant) -> Instant {
        ((at + self.phase) / self.tick + 1) * self.tick - self.phase
    }

    /// The next tick after `now`.
    pub fn next_tick(&self, now: Instant) -> Instant {
        self.bucket(now)
    }

    /// A session begins.
    pub fn open(&mut self, now: Instant, session: SessionId, timeout: u64, owner: Option<usize>) {
        let expires = self.bucket(now + timeout);
        self.sessions.insert(session, Session { timeout, expires, owner, closing: false });
    }

    /// A session was heard from; false when it is over.
    pub fn touch(&mut self, now: Instant, session: SessionId) -> bool {
        let Some(timeout) = self.sessions.get(&session).map(|it| it.timeout) else { return false };
        let expires = self.bucket(now + timeout);
        match self.sessions.get_mut(&session) {
            Some(it) if !it.closing => {
                it.expires = expires;
                true
            }
            _ => false,
        }
    }

    /// The session speaks through this server from now on.
    pub fn own(&mut self, session: SessionId, server: usize) {
        if let Some(it) = self.sessions.get_mut(&session) {
            it.owner = Some(server);
        }
    }

    /// Whether a request of the session by way of this server may be done.
    pub fn check(&mut self, session: SessionId, server: usize) -> Result<(), Code> {
        match self.sessions.get_mut(&session) {
            Some(it) if !it.closing => match it.owner {
                Some(owner) if owner != server => Err(Code::SessionMoved),
                _ => {
                    it.owner = Some(server);
                    Ok(())
                }
            },
            _ => Err(Code::SessionExpired),
        }
    }

    /// The session ends: nothing more is done for it.
    pub fn close(&mut self, session: SessionId) {
        if let Some(it) = self.sessions.get_mut(&session) {
            it.closing = true;
        }
    }

    /// The session is over.
    pub fn forget(&mut self, session: SessionId) {
        self.sessions.remove(&session);
    }

    /// Marks and gives the sessions whose time is over.
    pub fn expire(&mut self, now: Instant) -> Vec<SessionId> {
        let over = self.sessions.iter_mut().filter(|(_, it)| !it.closing && it.expires <= now);
        over.map(|(session, it)| {
            it.closing = true;
            *session
        })
        .collect()
    }
}
