//! The locks, their slots, and what each server knows of whose these are.

use std::collections::BTreeSet;

use fencelock_engine::Name;
use fencelock_engine::redis::Value;
use fencelock_engine::redis::cluster::{SLOTS, place};

use crate::cluster::wire::text;
use crate::sentinel::address;
use crate::world::name;

/// The locks of a run, and the parts into which their slots cut all slots: each lock's slot is a part alone.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub names: Vec<Name>,
    /// The first slot of each part, and the last.
    parts: Vec<(u16, u16)>,
}

/// Who has a part, by which epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub owner: usize,
    pub epoch: u64,
}

/// The claims that one server knows, a part each.
pub(super) type View = Vec<Claim>;

impl Shape {
    /// With `locks` in slots of their own, over `masters`.
    pub fn new(locks: usize, masters: usize) -> Shape {
        let (mut names, mut slots) = (Vec::new(), BTreeSet::new());
        for number in 0.. {
            let name = name(&format!("lock-{number}"));
            // So many on each master.
            let on = master_of(place(&name).0, masters);
            if on == names.len() % masters && slots.insert(place(&name).0) {
                names.push(name);
            }
            if names.len() == locks {
                break;
            }
        }
        let mut cuts: BTreeSet<u16> = (0..masters).map(|master| first(master, masters)).collect();
        for slot in slots {
            cuts.extend([slot, slot + 1]);
        }
        let mut ends: Vec<u16> = cuts.iter().skip(1).map(|cut| cut - 1).collect();
        ends.push(SLOTS - 1);
        let parts = cuts.into_iter().zip(ends).filter(|(first, last)| first <= last).collect();
        Shape { names, parts }
    }

    /// What is so at the beginning.
    pub fn view(&self, masters: usize) -> View {
        let claim = |&(first, _): &(u16, u16)| Claim { owner: master_of(first, masters), epoch: 1 };
        self.parts.iter().map(claim).collect()
    }

    /// The part that a slot is in.
    pub fn part(&self, slot: u16) -> usize {
        self.parts.partition_point(|(first, _)| *first <= slot) - 1
    }

    /// The part of a lock.
    pub fn part_of(&self, lock: usize) -> usize {
        self.part(place(&self.names[lock]).0)
    }

    /// The slot of a lock.
    pub fn slot_of(&self, lock: usize) -> u16 {
        place(&self.names[lock]).0
    }

    /// Whose a key is.
    pub fn lock_of(&self, key: &[u8]) -> Option<usize> {
        let begin = key.iter().position(|byte| *byte == b'{')? + 1;
        let end = begin + key[begin..].iter().position(|byte| *byte == b'}')?;
        self.names.iter().position(|name| name.as_str().as_bytes() == &key[begin..end])
    }

    /// `CLUSTER SLOTS`, as a server with this view has it.
    pub fn slots(&self, view: &View) -> Value {
        let mut ranges: Vec<(u16, u16, usize)> = Vec::new();
        for (&(first, last), claim) in self.parts.iter().zip(view) {
            match ranges.last_mut() {
                Some((_, end, owner)) if *owner == claim.owner => *end = last,
                _ => ranges.push((first, last, claim.owner)),
            }
        }
        let range = |&(first, last, owner): &(u16, u16, usize)| {
            let node = address(owner);
            let master = vec![text(node.host), Value::Int(i64::from(node.port)), text("id")];
            let ends = [first, last].map(|slot| Value::Int(i64::from(slot)));
            Value::Array(ends.into_iter().chain([Value::Array(master)]).collect())
        };
        Value::Array(ranges.iter().map(range).collect())
    }
}

fn first(master: usize, masters: usize) -> u16 {
    (usize::from(SLOTS) * master / masters) as u16
}

fn master_of(slot: u16, masters: usize) -> usize {
    (0..masters).rev().find(|&master| first(master, masters) <= slot).unwrap_or(0)
}
