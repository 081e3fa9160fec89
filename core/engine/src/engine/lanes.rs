//! The servers that a store consists of, each with a connection, a clock and requests of its own.

use core::ops::{Index, IndexMut, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Engine;
use crate::engine::flight::Flights;
use crate::engine::link::Link;
use crate::engine::slab::Key;
use crate::lane::{LaneId, Place};
use crate::name::Name;
use crate::request::Op;
use crate::time::Time;

/// One server, as far as the engine knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    pub link: Link,
    pub flights: Flights,
    /// When which entry wants to be renewed here, or to show that it lives.
    pub beats: BTreeSet<(Time, Key)>,
}

impl Lane {
    fn new(id: LaneId) -> Lane {
        Lane { link: Link::new(), flights: Flights::on(id), beats: BTreeSet::new() }
    }
}

/// All of them, and which places each one has.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
    /// Where a name's place is known, once there are several.
    places: Option<fn(&Name) -> Place>,
    /// From which place on which lane serves. Before the first of them it is the first lane.
    map: BTreeMap<u16, LaneId>,
}

impl Lanes {
    pub fn new() -> Lanes {
        Lanes { lanes: vec![Lane::new(LaneId::FIRST)], places: None, map: BTreeMap::new() }
    }

    /// The lane that a name belongs to now.
    pub fn of(&self, name: &Name) -> LaneId {
        self.places.map_or(LaneId::FIRST, |place| self.at(place(name).0))
    }

    fn at(&self, place: u16) -> LaneId {
        self.map.range(..=place).next_back().map_or(LaneId::FIRST, |(_, lane)| *lane)
    }

    fn assign(&mut self, places: &RangeInclusive<u16>, lane: LaneId) {
        let (first, last) = (*places.start(), *places.end());
        if first > last {
            return;
        }
        let next = last.checked_add(1).map(|next| (next, self.at(next)));
        self.map.retain(|at, _| !places.contains(at));
        self.map.insert(first, lane);
        if let Some((next, lane)) = next {
            self.map.entry(next).or_insert(lane);
        }
    }

    /// Sees to it that there is such a lane.
    pub fn open(&mut self, lane: LaneId) {
        while self.lanes.len() <= usize::from(lane.0) {
            self.lanes.push(Lane::new(LaneId(self.lanes.len() as u16)));
        }
    }

    pub fn ids(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.lanes.len()).map(|index| LaneId(index as u16))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter()
    }

    pub fn map(&self) -> &BTreeMap<u16, LaneId> {
        &self.map
    }

    /// One that was named by the transport, if there is such a one.
    pub fn get_mut(&mut self, lane: LaneId) -> Option<&mut Lane> {
        self.lanes.get_mut(usize::from(lane.0))
    }
}

// A lane is opened before anything is given its number.
impl Index<LaneId> for Lanes {
    type Output = Lane;

    fn index(&self, lane: LaneId) -> &Lane {
        &self.lanes[usize::from(lane.0)]
    }
}

impl IndexMut<LaneId> for Lanes {
    fn index_mut(&mut self, lane: LaneId) -> &mut Lane {
        &mut self.lanes[usize::from(lane.0)]
    }
}

impl<C: Clone> Engine<C> {
    /// The store is more than one server: `place` gives a name's place. To be called before any lock is
    /// asked for; until [`Engine::assign`] all places are at [`LaneId::FIRST`].
    pub fn set_places(&mut self, place: fn(&Name) -> Place) {
        self.lanes.places = Some(place);
    }

    /// These places are at that server from now on. What of this client is there shows itself to the
    /// server first, if it is connected, and then all else is repeated there; a request that is still
    /// out at the server before is waited for.
    pub fn assign(&mut self, now: Time, places: RangeInclusive<u16>, lane: LaneId) {
        let now = self.at(now);
        self.lanes.open(lane);
        self.lanes.assign(&places, lane);
        let mut moved = Vec::new();
        for key in self.entries.keys() {
            let Some(entry) = self.entries.get_mut(key) else { continue };
            let (was, is) = (entry.lane, self.lanes.of(&entry.name));
            if was == is {
                continue;
            }
            entry.lane = is;
            if let Some(at) = entry.beat_at {
                self.lanes[was].beats.remove(&(at, key));
                self.lanes[is].beats.insert((at, key));
            }
            moved.push(key);
        }
        if self.lanes[lane].link.up {
            self.show(now, lane, &moved);
        } else {
            for key in moved {
                self.arm(key);
            }
        }
        self.send_due_beats(now);
    }

    /// The lane of the lock with this index.
    pub(super) fn lane_of_lock(&self, lock: u32) -> LaneId {
        self.lock_ref(lock).map_or(LaneId::FIRST, |lock| self.lanes.of(&lock.name))
    }

    /// The lane that a question goes to. What concerns no lock goes to the first.
    pub(super) fn lane_of_op(&self, op: &Op) -> LaneId {
        match op {
            Op::Inspect(name) | Op::Revoke(name) => self.lanes.of(name),
            Op::Resize(ask) => self.lanes.of(&ask.lock),
            Op::Break(what) => self.lanes.of(&what.lock),
            _ => LaneId::FIRST,
        }
    }

    pub(super) fn lane_of_entry(&self, entry: Key) -> LaneId {
        self.entries.get(entry).map_or(LaneId::FIRST, |entry| entry.lane)
    }
}
