//! Which server a name belongs to, where a store is more than one.

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
