//! Which lane has which slot.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::lane::LaneId;
use crate::redis::cluster::slot::SLOTS;
use crate::redis::cluster::topology::Topology;
use crate::redis::node::Node;
use crate::time::Time;

/// So long no map undoes what a server said of one slot: others hear of it later.
const FRESH: Duration = Duration::from_secs(1);

/// Slots that follow each other, and the lane that they are at from now on.
pub(super) type Change = (RangeInclusive<u16>, LaneId);

/// Which lane has which slot, and which server a lane is. [`LaneId::FIRST`] is none of them: it has the
/// slots that nobody serves.
#[derive(Clone, Debug)]
pub(super) struct Map {
    slots: Vec<LaneId>,
    /// When a server said of one slot where it is.
    patched: BTreeMap<u16, Time>,
    nodes: Vec<Node>,
    /// By which address a server is reached that the others see by another.
    reached: BTreeMap<Node, Node>,
}

impl Map {
    pub fn new(reached: BTreeMap<Node, Node>) -> Map {
        let slots = vec![LaneId::FIRST; usize::from(SLOTS)];
        Map { slots, patched: BTreeMap::new(), nodes: Vec::new(), reached }
    }

    /// The lane of a server, as the others name it: always the same.
    pub fn lane(&mut self, seen: &Node) -> LaneId {
        let node = self.reached.get(seen).unwrap_or(seen);
        let at = self.nodes.iter().position(|known| known == node).unwrap_or_else(|| {
            self.nodes.push(node.clone());
            self.nodes.len() - 1
        });
        LaneId(u16::try_from(at + 1).unwrap_or(u16::MAX))
    }

    /// The server of a lane.
    pub fn node(&self, lane: LaneId) -> Option<&Node> {
        self.nodes.get(usize::from(lane.0).checked_sub(1)?)
    }

    pub fn at(&self, slot: u16) -> LaneId {
        self.slots.get(usize::from(slot)).copied().unwrap_or_default()
    }

    /// All lanes that have a slot, and perhaps [`LaneId::FIRST`].
    pub fn serving(&self) -> Vec<LaneId> {
        let mut lanes = self.slots.clone();
        lanes.sort_unstable();
        lanes.dedup();
        lanes
    }

    /// A server said where one slot is.
    pub fn patch(&mut self, now: Time, slot: u16, lane: LaneId) {
        if let Some(place) = self.slots.get_mut(usize::from(slot)) {
            *place = lane;
            self.patched.insert(slot, now);
        }
    }

    /// A server said where all are; gives what is different now.
    pub fn take(&mut self, now: Time, topology: &Topology) -> Vec<Change> {
        let mut slots = vec![LaneId::FIRST; usize::from(SLOTS)];
        self.patched.retain(|_, at| now < *at + FRESH);
        for range in &topology.ranges {
            // A server that keeps none of them gets no lane: a host numbers lanes as they are opened.
            if (range.first..=range.last).all(|slot| self.patched.contains_key(&slot)) {
                continue;
            }
            let lane = self.lane(&range.node);
            slots[usize::from(range.first)..=usize::from(range.last)].fill(lane);
        }
        for &slot in self.patched.keys() {
            slots[usize::from(slot)] = self.slots[usize::from(slot)];
        }
        let mut changes: Vec<Change> = Vec::new();
        for slot in 0..SLOTS {
            let (was, is) = (self.slots[usize::from(slot)], slots[usize::from(slot)]);
            if was == is {
                continue;
            }
            match changes.last_mut() {
                Some((places, lane)) if *lane == is && *places.end() + 1 == slot => {
                    *places = *places.start()..=slot;
                }
                _ => changes.push((slot..=slot, is)),
            }
        }
        self.slots = slots;
        changes
    }
}
