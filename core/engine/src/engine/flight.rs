//! Requests in flight.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::slab::Key;
use crate::request::RequestId;
use crate::time::Time;

/// A seat's part of a beat.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Beaten {
    pub seat: Key,
    /// The lease that was asked for.
    pub lease: Duration,
    /// The store's word made it leave, not the safety poll.
    pub called: bool,
}

/// What a request in flight was for.
#[derive(Clone, Debug, Hash)]
pub(crate) enum Purpose {
    Acquire { seat: Key, lease: Duration, not_after: u64, wait: bool },
    Beat(Vec<Beaten>),
    Release { seat: Key },
    Query(Key),
}

#[derive(Clone, Debug, Hash)]
pub(crate) struct Flight {
    pub sent: Time,
    pub purpose: Purpose,
}

/// The requests in flight, oldest first. Replies come mostly in order, so a queue that is indexed
/// by the request's number beats a map.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Flights {
    first: u64,
    queue: VecDeque<Option<Flight>>,
}

impl Flights {
    pub fn new() -> Flights {
        Flights { first: 1, queue: VecDeque::new() }
    }

    pub fn push(&mut self, flight: Flight) -> RequestId {
        self.queue.push_back(Some(flight));
        RequestId(self.first + self.queue.len() as u64 - 1)
    }

    pub fn take(&mut self, id: RequestId) -> Option<Flight> {
        let index = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
        let flight = self.queue.get_mut(index)?.take();
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.first += 1;
        }
        flight
    }

    /// When the oldest one was sent.
    pub fn oldest(&self) -> Option<Time> {
        // The front is never empty: take() sees to it.
        self.queue.front().and_then(|flight| flight.as_ref()).map(|flight| flight.sent)
    }
}
