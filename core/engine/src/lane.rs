//! Which server a name belongs to, where a store is more than one.

use std::time::Duration;

/// A part of the names that always stays together, as a hash slot does: a function of the name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place(pub u16);

/// One server's connection: one clock, one fate. A store that is one server has the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LaneId(pub u16);

impl LaneId {
    /// The only lane of a store that is one server, and where a place is until a map says otherwise.
    pub const FIRST: LaneId = LaneId(0);
}

/// What an operator may want to know of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneState {
    /// Which.
    pub lane: LaneId,
    /// There is a connection, and it answers.
    pub connected: bool,
    /// How many requests were asked of it.
    pub requests: u64,
    /// How often it was silent for so long that its connection was doubted.
    pub doubts: u64,
    /// How long answers take: the longest of late. One that comes sooner halves it.
    pub latency: Duration,
}
