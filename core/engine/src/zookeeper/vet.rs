//! One path is one recipe's: Curator's mutex does not look at the nodes of a read-write lock, nor that
//! at a mutex's. Ours look at all of them, and say so where Curator is found in the other.

use crate::id::HoldId;
use crate::zookeeper::machine::Machine;
use crate::zookeeper::name::{Kind, Participant};
use crate::zookeeper::note::{Badge, REVOKE};
use crate::zookeeper::place::{Ask, Part, Step, What};
use crate::zookeeper::refusal::misplaced;
use crate::zookeeper::wire::{ZkError, ZkOp, ZkReply};

/// So many are looked at.
const LOOKED_AT: usize = 8;

impl Machine {
    /// Looks whose the nodes are that do not look at this hold's, once; true when that is under way.
    pub(super) fn vet(&mut self, hold: HoldId, queue: &[Participant]) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let Some(node) = &place.node else { return false };
        let asked = matches!(place.ask, Some(Ask { what: What::Acquire { .. }, .. }));
        if place.vetted || !asked {
            return false;
        }
        let blind = queue.iter().filter(|one| one.kind.is_blind_to(node.kind)).take(LOOKED_AT);
        let parts: Vec<_> = blind
            .map(|one| {
                let path = format!("{}/{}", place.parent, one.name);
                (Part::Stranger, ZkOp::GetData { path, watch: false })
            })
            .collect();
        if parts.is_empty() {
            return false;
        }
        self.batch(hold, Step::Vet, parts);
        true
    }

    pub(super) fn vetted(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let heard = std::mem::take(&mut place.heard);
        let mut foreign = false;
        for (_, result) in heard {
            match result {
                // Whoever is asked to let go has lost its badge.
                Ok(ZkReply::Data { data, .. }) => {
                    foreign |= Badge::parse(&data).is_none() && data != REVOKE;
                }
                Err(error @ (ZkError::ConnectionLoss | ZkError::NotSent)) => {
                    return self.acquire_failed(hold, &error);
                }
                _ => {}
            }
        }
        if !foreign {
            place.vetted = true;
            return self.list_place(hold);
        }
        let kind = place.node.as_ref().map_or(place.kind, |node| node.kind);
        let parent = &place.parent;
        let message = match kind {
            Kind::Lock => format!(
                "Curator's InterProcessReadWriteLock is in use at {parent}, and does not look at who \
                 has a plain lock there: use the read-write lock of this name, or another name"
            ),
            Kind::Write | Kind::Read => format!(
                "Curator's InterProcessMutex is in use at {parent}, and does not look at who reads or \
                 writes there: use the plain lock of this name, or another name"
            ),
        };
        self.leave_refused(hold, &misplaced(message));
    }
}
