//! Nodes that nobody wants: those that an unanswered create may yet have made, and those whose
//! deletion is not confirmed.

use std::time::Duration;

use crate::id::HoldId;
use crate::time::Time;
use crate::zookeeper::machine::{Aim, Machine};
use crate::zookeeper::name::{Participant, queue};
use crate::zookeeper::place::Place;
use crate::zookeeper::wire::{ZkError, ZkOp, ZkReply};

/// A create that was never answered.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub parent: String,
    /// It is looked for until then.
    pub until: Time,
}

impl Machine {
    /// Keeps in mind that a node with this hold's id may turn up.
    pub(super) fn note_stray(&mut self, hold: HoldId) {
        if planted!(ZkOrphanForgotten) {
            return;
        }
        let timeout = self.session.as_ref().map_or(Duration::ZERO, |session| session.timeout);
        let Some(place) = self.places.get(&hold) else { return };
        let stray = Stray { parent: place.parent.clone(), until: self.now + timeout * 3 };
        self.strays.insert(hold, stray);
    }

    /// The session goes on by another connection: the time without one does not count.
    pub(super) fn keep_strays(&mut self) {
        if planted!(ZkStrayForgotten) {
            return;
        }
        let timeout = self.session.as_ref().map_or(Duration::ZERO, |session| session.timeout);
        for stray in self.strays.values_mut() {
            stray.until = self.now + timeout * 3;
        }
    }

    /// With each round trip through the leader: whether any turned up.
    pub(super) fn look_for_strays(&mut self) {
        let now = self.now;
        let places = &self.places;
        self.strays.retain(|hold, stray| {
            let unclear = places.get(hold).is_some_and(|place| place.node.is_none());
            stray.until > now || (unclear && !planted!(ZkStrayForgotten))
        });
        let strays: Vec<_> =
            self.strays.iter().map(|(&hold, stray)| (hold, stray.parent.clone())).collect();
        for (hold, path) in strays {
            self.call(ZkOp::Children { path, watch: false }, Aim::Stray(hold));
        }
    }

    pub(super) fn stray_heard(&mut self, hold: HoldId, result: Result<ZkReply, ZkError>) {
        let Some(parent) = self.strays.get(&hold).map(|stray| stray.parent.clone()) else { return };
        if let Ok(ZkReply::Children { names, .. }) = result {
            self.clear_leases(&parent, &names);
            self.clear_strays(&parent, &queue(&names).0);
        }
    }

    /// Deletes what carries one of our ids and is no hold's node.
    pub(super) fn clear_strays(&mut self, parent: &str, queue: &[Participant]) {
        for one in queue {
            let Some(hold) = one.hold else { continue };
            let path = || format!("{parent}/{}", one.name);
            let stray = match self.places.get(&hold) {
                // It shares another's node now: this one is of an earlier try.
                Some(place) if place.shared.is_some() => {
                    self.strays.contains_key(&hold) && !planted!(ZkSharersStrayKept)
                }
                // Whether it is the hold's own is being found out.
                Some(place) if place.node.is_none() => false,
                Some(place) => place.node.as_ref().is_some_and(|node| node.path != path()),
                None => self.strays.contains_key(&hold),
            };
            let path = path();
            let stray = stray && (!self.is_kept(&path) || planted!(ZkHeirSwept));
            if stray && !self.litter.contains(&path) {
                self.discard(path);
            }
        }
    }

    /// Whether the node is a hold's own: of the one that made it, or of an owner's other hold that
    /// inherited it.
    pub(super) fn is_kept(&self, path: &str) -> bool {
        let kept = |place: &Place| place.node.as_ref().is_some_and(|node| node.is_at(path));
        self.places.values().any(kept)
    }

    pub(super) fn clear_litter(&mut self) {
        for path in self.litter.clone() {
            self.call(ZkOp::Delete { path: path.clone() }, Aim::Litter(path));
        }
    }

    pub(super) fn litter_gone(&mut self, path: &str, result: &Result<ZkReply, ZkError>) {
        let again = matches!(result, Err(ZkError::ConnectionLoss | ZkError::NotSent));
        if !again {
            self.litter.remove(path);
        }
    }
}
