//! The servers that a store consists of, each with a connection, a clock and requests of its own.

use core::ops::{Index, IndexMut, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::engine::Engine;
use crate::engine::entry::Entry;
use crate::engine::flight::Flights;
use crate::engine::link::Link;
use crate::engine::slab::Key;
use crate::event::Event;
use crate::lane::{LaneId, LaneState, Place};
use crate::name::Name;
use crate::request::Op;
use crate::time::Time;

/// An entry that moves so often, without so long a pause, is sent to and fro by servers that each name
/// the other one: then it is not shown at once. Maps are further apart than that.
const MOVES: u32 = 3;
const TO_AND_FRO: Duration = Duration::from_millis(500);

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

    fn state(&self, lane: LaneId) -> LaneState {
        LaneState {
            lane,
            connected: self.link.takes_work(),
            requests: self.flights.count(),
            doubts: self.link.doubts,
            latency: self.link.latency,
        }
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
    /// Locks that are elsewhere than their place is, while that moves.
    detours: BTreeMap<Name, LaneId>,
}

impl Lanes {
    pub fn new() -> Lanes {
        let lanes = vec![Lane::new(LaneId::FIRST)];
        Lanes { lanes, places: None, map: BTreeMap::new(), detours: BTreeMap::new() }
    }

    /// The lane that a name belongs to now.
    pub fn of(&self, name: &Name) -> LaneId {
        self.of_place(name, self.place_of(name))
    }

    /// The same, of one whose place is known.
    pub fn of_place(&self, name: &Name, place: Place) -> LaneId {
        if !self.has_places() {
            return LaneId::FIRST;
        }
        self.detours.get(name).copied().unwrap_or_else(|| self.at(place.0))
    }

    /// Whether names are told apart by their place. Then a request is about one place alone.
    pub fn has_places(&self) -> bool {
        self.places.is_some()
    }

    /// The place of a name.
    pub fn place_of(&self, name: &Name) -> Place {
        self.places.map_or(Place(0), |place| place(name))
    }

    /// A lane that answers now; with one lane, that.
    fn any(&self) -> LaneId {
        let live = self.lanes.iter().rposition(|lane| lane.link.takes_work());
        live.map_or(LaneId::FIRST, |at| LaneId(at as u16))
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
        if let Some(place) = self.places {
            self.detours.retain(|name, _| !places.contains(&place(name).0));
        }
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

    /// What there is to say of each server. Where there are several, the first lane is none.
    pub fn states(&self) -> Vec<LaneState> {
        let servers = self.lanes.iter().zip(self.ids()).skip(usize::from(self.has_places()));
        servers.map(|(lane, id)| lane.state(id)).collect()
    }

    pub fn ids(&self) -> impl Iterator<Item = LaneId> + use<> {
        (0..self.lanes.len()).map(|index| LaneId(index as u16))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Lane> {
        self.lanes.iter()
    }

    pub fn map(&self) -> (&BTreeMap<u16, LaneId>, &BTreeMap<Name, LaneId>) {
        (&self.map, &self.detours)
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
        self.handle(now, Event::Map(vec![(places, lane)]));
    }

    /// As [`Engine::assign`], of several.
    pub(super) fn assign_all(&mut self, now: Time, changes: Vec<(RangeInclusive<u16>, LaneId)>) {
        for (places, lane) in &changes {
            self.lanes.open(*lane);
            self.lanes.assign(places, *lane);
        }
        let few = changes.len() <= 8;
        let within = |entry: &Entry<C>| changes.iter().any(|(it, _)| it.contains(&entry.place.0));
        self.follow(now, |entry| !few || within(entry));
    }

    /// This lock alone is at that server until its place is assigned.
    pub(super) fn detour(&mut self, now: Time, name: Name, lane: LaneId) {
        self.lanes.open(lane);
        self.lanes.detours.insert(name.clone(), lane);
        self.follow(now, |entry| entry.name == name);
    }

    /// Entries that may have moved go where their names are now. One that servers send to and fro keeps its
    /// pauses. All are looked at for each slot that a server says is another's: only shortly.
    fn follow(&mut self, now: Time, may_have: impl Fn(&Entry<C>) -> bool) {
        let mut moved: BTreeMap<LaneId, Vec<Key>> = BTreeMap::new();
        for key in self.entries.keys() {
            let Some(entry) = self.entries.get_mut(key).filter(|entry| may_have(entry)) else {
                continue;
            };
            let (was, is) = (entry.lane, self.lanes.of_place(&entry.name, entry.place));
            if was == is {
                continue;
            }
            entry.lane = is;
            if let Some(at) = entry.beat_at {
                self.lanes[was].beats.remove(&(at, key));
                self.lanes[is].beats.insert((at, key));
            }
            entry.moves = if now < entry.moved + TO_AND_FRO { entry.moves + 1 } else { 1 };
            entry.moved = now;
            if entry.moves <= MOVES {
                moved.entry(is).or_default().push(key);
            } else {
                self.advance(now, key);
                self.arm(key);
            }
        }
        for (lane, keys) in moved {
            if self.lanes[lane].link.up {
                self.show(now, lane, &keys);
            } else {
                for key in keys {
                    self.arm(key);
                }
            }
        }
        self.ask_elsewhere(now);
    }

    /// The lane of the lock with this index.
    pub(super) fn lane_of_lock(&self, lock: u32) -> LaneId {
        self.lock_ref(lock).map_or(LaneId::FIRST, |lock| self.lanes.of(&lock.name))
    }

    /// The lane that a question goes to. A listing goes to the first, whoever
    /// answers there for all, and what anybody can answer to one that does.
    pub(super) fn lane_of_op(&self, op: &Op) -> LaneId {
        match op {
            Op::Inspect(name) | Op::Revoke(name) => self.lanes.of(name),
            Op::Resize(ask) => self.lanes.of(&ask.lock),
            Op::Break(what) => self.lanes.of(&what.lock),
            Op::Time => self.lanes.any(),
            _ => LaneId::FIRST,
        }
    }

    pub(super) fn lane_of_entry(&self, entry: Key) -> LaneId {
        self.entries.get(entry).map_or(LaneId::FIRST, |entry| entry.lane)
    }
}
