//! Requests in flight.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::engine::convert::Sent;
use crate::engine::slab::Key;
use crate::lane::LaneId;
use crate::request::RequestId;
use crate::time::Time;

/// An entry's part of a beat.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Beaten {
    pub entry: Key,
    /// The lease that was asked for.
    pub lease: Duration,
    /// The highest token that was shown as given out.
    pub used: u64,
    /// No request before it showed that one: it sets the lease.
    pub first: bool,
    /// The store's word made it leave, not the safety poll.
    pub called: bool,
    /// How many were known to be ahead of it: by that it may be silent.
    pub ahead: u32,
}

/// What a request in flight was for.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Purpose {
    Acquire { entry: Key, lease: Duration, not_after: u64, wait: bool },
    Beat(Vec<Beaten>),
    Release { entry: Key },
    Convert(Sent),
    Query(Asked),
}

/// What a query has in flight.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Asked {
    /// Itself.
    Question(Key),
    /// A listing. It takes as long as the store has names, so it says nothing of the connection.
    Listing(Key),
    /// Whether the store still answers, for a listing that takes long.
    Alive(Key),
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Flight {
    pub sent: Time,
    pub purpose: Purpose,
}

/// The requests in flight, oldest first. Replies come mostly in order, so a queue that is indexed
/// by the request's number beats a map. Listings are kept apart: while one is in flight the queue
/// would keep the place of every request after it.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Flights {
    first: u64,
    queue: VecDeque<Option<Flight>>,
    listings: BTreeMap<u64, Flight>,
}

impl Flights {
    /// None yet; their numbers tell the lane.
    pub fn on(lane: LaneId) -> Flights {
        let first = (u64::from(lane.0) << 48) | 1;
        Flights { first, queue: VecDeque::new(), listings: BTreeMap::new() }
    }

    pub fn push(&mut self, flight: Flight) -> RequestId {
        let id = self.first + self.queue.len() as u64;
        if let Purpose::Query(Asked::Listing(_)) = flight.purpose {
            self.listings.insert(id, flight);
            self.queue.push_back(None);
            self.trim();
        } else {
            self.queue.push_back(Some(flight));
        }
        RequestId(id)
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        (self.first & ((1 << 48) - 1)) - 1 + self.queue.len() as u64
    }

    pub fn take(&mut self, id: RequestId) -> Option<Flight> {
        if let Some(flight) = self.listings.remove(&id.0) {
            return Some(flight);
        }
        let index = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
        let flight = self.queue.get_mut(index)?.take();
        self.trim();
        flight
    }

    #[cfg(feature = "plant")]
    pub fn len(&self) -> usize {
        self.queue.iter().flatten().count() + self.listings.len()
    }

    fn trim(&mut self) {
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
    }

    /// The oldest one, listings left out.
    pub fn owed(&self) -> Option<RequestId> {
        self.queue.front().map(|_| RequestId(self.first))
    }

    /// When the oldest one was sent, listings left out.
    pub fn oldest(&self) -> Option<Time> {
        // The front is never empty: trim() sees to it.
        self.queue.front().and_then(|flight| flight.as_ref()).map(|flight| flight.sent)
    }
}
