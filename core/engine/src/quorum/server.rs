//! One of the servers, as far as the machine knows of it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::engine::clock::StoreClock;
use crate::error::Error;
use crate::id::HoldId;
use crate::quorum::seat::Key;
use crate::request::RequestId;
use crate::time::Time;
use crate::transport::Doubt;

/// A vote's part of a beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Renewal {
    pub key: Key,
    pub vote: HoldId,
    pub lease: Duration,
}

/// What a request to a server is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Aim {
    /// A vote, for so long.
    Vote { key: Key, vote: HoldId, lease: Duration },
    /// Votes are renewed, or wait.
    Beat(Vec<Renewal>),
    /// A vote is given back.
    GiveBack(HoldId),
    /// A question to all servers.
    Query(u64),
}

/// A request that is out.
#[derive(Clone, Debug)]
pub(crate) struct Flight {
    pub sent: Time,
    pub aim: Aim,
}

/// One server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub up: bool,
    /// It has been silent for so long that the connection may be dead.
    pub doubted: bool,
    /// From when on it gives votes.
    pub votes_from: Time,
    pub clock: StoreClock,
    /// What an operator must mend.
    pub wrong: Option<Error>,
    pub reason: Option<String>,
    heard: Time,
    answered: Option<RequestId>,
    flights: BTreeMap<RequestId, Flight>,
    last: u64,
}

impl Server {
    pub fn new() -> Server {
        Server {
            up: false,
            doubted: false,
            votes_from: Time::MAX,
            clock: StoreClock::default(),
            wrong: None,
            reason: None,
            heard: Time::ZERO,
            answered: None,
            flights: BTreeMap::new(),
            last: 0,
        }
    }

    /// Whether it is to be asked anything.
    pub fn is_usable(&self) -> bool {
        self.up && !self.doubted
    }

    /// Whether it is to be asked for a vote.
    pub fn gives_votes(&self, now: Time) -> bool {
        self.is_usable() && now >= self.votes_from
    }

    pub fn came_up(&mut self, now: Time, store: u64, wait: Duration) {
        self.clock.learn(store, now);
        (self.up, self.doubted) = (true, false);
        (self.heard, self.answered) = (now, None);
        (self.wrong, self.reason) = (None, None);
        self.votes_from = now + wait;
    }

    pub fn went(&mut self, reason: String, wrong: Option<Error>) {
        (self.up, self.doubted) = (false, false);
        (self.reason, self.wrong) = (Some(reason), wrong);
    }

    /// A request leaves: its number.
    pub fn send(&mut self, now: Time, aim: Aim) -> RequestId {
        self.last += 1;
        let id = RequestId(self.last);
        self.flights.insert(id, Flight { sent: now, aim });
        id
    }

    /// A request has come back.
    pub fn land(&mut self, id: RequestId) -> Option<Flight> {
        self.flights.remove(&id)
    }

    /// The server itself answered, its clock reading `store` if it said so.
    pub fn hear(&mut self, now: Time, id: RequestId, store: Option<u64>) {
        self.heard = now;
        self.answered = Some(id);
        self.doubted = false;
        if let Some(store) = store {
            self.clock.learn(store, now);
        }
    }

    /// When it is to be doubted: nothing came for so long although it owes an answer.
    pub fn doubt_at(&self, timeout: Duration) -> Option<Time> {
        let (_, oldest) = self.flights.first_key_value()?;
        self.is_usable().then(|| oldest.sent.max(self.heard) + timeout)
    }

    /// What its transport is told of the doubt.
    pub fn doubt(&mut self) -> Option<Doubt> {
        let (&owed, _) = self.flights.first_key_value()?;
        self.doubted = true;
        Some(Doubt { owed, heard: self.answered })
    }
}
