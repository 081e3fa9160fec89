//! The lock's own node: made when it is missing, and made anew when its numbers are used up.

use crate::id::HoldId;
use crate::reply::Failure;
use crate::store::other_kind;
use crate::zookeeper::machine::Machine;
use crate::zookeeper::name::queue;
use crate::zookeeper::permits::leases_path;
use crate::zookeeper::place::{Part, Step};
use crate::zookeeper::refusal::{misplaced, refusal};
use crate::zookeeper::wire::{NodeKind, ZkError, ZkOp, ZkReply, ZkWrite};

impl Machine {
    /// The lock has no node yet: before it is made, whether a lock lies above it.
    pub(super) fn survey(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let mut parts = Vec::new();
        let chroot = self.options.chroot.len();
        for (at, _) in place.parent.match_indices('/').filter(|(at, _)| *at > chroot) {
            let path = place.parent[..at].to_owned();
            parts.push((Part::List, ZkOp::Children { path, watch: false }));
        }
        // The last of them is the semaphore's own node.
        if place.permits.is_some()
            && let Some((part, _)) = parts.last_mut()
        {
            *part = Part::Above;
        }
        if parts.is_empty() {
            return self.found(hold);
        }
        self.batch(hold, Step::Survey, parts);
    }

    pub(super) fn surveyed(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        for (part, result) in std::mem::take(&mut place.heard) {
            match result {
                Ok(ZkReply::Children { names, .. }) if part == Part::Above => {
                    if !queue(&names).0.is_empty() {
                        let refusal = other_kind(0, place.mode);
                        return self.end_acquire(hold, Err(Failure::Refused(refusal)));
                    }
                }
                Ok(ZkReply::Children { names, .. }) => {
                    if let Some(one) = queue(&names).0.first() {
                        let message = format!(
                            "the lock {:?} lies below another lock, in which {:?} takes part: \
                             ZooKeeper's locks cannot be nested, choose a name that is no other's \
                             beginning",
                            place.lock, one.name
                        );
                        return self.end_acquire(hold, Err(misplaced(message)));
                    }
                }
                Ok(_) | Err(ZkError::NoNode) => {}
                Err(error) => return self.acquire_failed(hold, &error),
            }
        }
        self.found(hold);
    }

    /// Makes the lock's node with all that is missing above it, and goes on, in one round trip.
    pub(super) fn found(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.founded += 1;
        let path = place.parent.clone();
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        let parts = ends.map(|end| {
            let path = path[..end].to_owned();
            (Part::Container, ZkOp::Create { path, data: Vec::new(), kind: NodeKind::Container })
        });
        let mut parts: Vec<_> = parts.collect();
        if place.permits.is_some() {
            let path = leases_path(&place.parent);
            let made = ZkOp::Create { path, data: Vec::new(), kind: NodeKind::Container };
            parts.push((Part::Container, made));
        }
        self.make_with(hold, parts);
    }

    /// The sequence numbers are nearly used up. A container that nobody else is in is made anew.
    pub(super) fn renew(&mut self, hold: HoldId, alone: bool) {
        let Some(place) = self.places.get(&hold) else { return };
        let (parent, node) = (place.parent.clone(), place.node.clone());
        let Some(node) = node else { return };
        if !alone {
            let message = format!(
                "the sequence numbers of {parent} are nearly used up; the lock is taken again \
                 when nobody holds it or waits for it, and its node can be made anew"
            );
            let refusal = refusal(&ZkError::Other(message), &parent);
            return self.leave_refused(hold, &Failure::Refused(refusal));
        }
        let parts = vec![ZkWrite::Delete { path: node.path }, ZkWrite::Delete { path: parent }];
        self.batch(hold, Step::Renew, vec![(Part::Delete, ZkOp::Multi(parts))]);
    }

    pub(super) fn renewed(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.take(&Part::Delete) {
            Some(Ok(_)) => {
                place.node = None;
                if place.ask.is_some() {
                    place.founded = 0;
                    self.found(hold);
                } else {
                    self.node_gone(hold);
                }
            }
            Some(Err(ZkError::ConnectionLoss)) => {
                self.acquire_failed(hold, &ZkError::ConnectionLoss)
            }
            _ => self.renew(hold, false),
        }
    }
}
