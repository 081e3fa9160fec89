//! What is said to who keeps the map of a cluster's slots.

use fencelock_engine::event::Event;
use fencelock_engine::redis::Node;
use fencelock_engine::redis::cluster::{Redirected, Topology};
use fencelock_engine::redis::session::NoSession;
use fencelock_engine::request::Request;
use fencelock_engine::{Error, LaneId};

/// What is said to who keeps the map of a cluster's slots.
#[derive(Debug)]
pub(crate) enum Word {
    /// A lane is connected; the server's time.
    Up(LaneId, u64),
    Down(LaneId, String),
    Misconfigured(LaneId, Error),
    /// A lane's server sent a request elsewhere: it is to be answered for.
    Redirected(LaneId, Redirected),
    /// A lane's server spoke against the map, or is silent.
    Suspect(LaneId),
    /// What a server said of the slots.
    Fetched(Node, Result<Topology, NoSession>),
    /// A request that is no server's.
    Asked(Request),
}

impl Word {
    /// What an event of a lane says of it.
    pub(crate) fn of(lane: LaneId, event: &Event) -> Option<Word> {
        Some(match event {
            Event::Up { now } => Word::Up(lane, *now),
            Event::Down { reason } => Word::Down(lane, reason.clone()),
            Event::Misconfigured(error) => Word::Misconfigured(lane, error.clone()),
            _ => return None,
        })
    }
}
