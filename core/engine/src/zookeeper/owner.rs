//! Explicit owners, within one client: further holds share the node of the first.

use crate::id::{HoldId, OwnerId};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Released};
use crate::zookeeper::lasting::LASTING;
use crate::zookeeper::machine::{Due, Machine};
use crate::zookeeper::place::{Ask, Place, Step, What};

impl Machine {
    /// The hold whose node an acquire of `owner` may share.
    fn shareable(&self, parent: &str, owner: &OwnerId, but: HoldId) -> Option<HoldId> {
        self.places
            .iter()
            .find(|(hold, place)| {
                **hold != but
                    && place.parent == parent
                    && place.owner.as_ref() == Some(owner)
                    && place.held
                    && place.node.is_some()
                    && place.step == Step::Held
                    && (!place.parting || planted!(ZkPartingJoined))
            })
            .map(|(hold, _)| *hold)
    }

    /// Joins the owner's present hold if this client has it; false when there is none to join.
    pub(super) fn join(&mut self, hold: HoldId, attach: Option<u64>) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let Some(owner) = &place.owner else { return false };
        let Some(first) = self.shareable(&place.parent, owner, hold) else { return false };
        let Some(first) = self.places.get(&first) else { return false };
        let Some(node) = &first.node else { return false };
        if attach.is_some_and(|token| token != node.token) {
            return false;
        }
        let (token, verdict) = (node.token, first.verdict);
        let Some(place) = self.places.get_mut(&hold) else { return false };
        if planted!(ZkSharersStrayKept) {
            self.strays.remove(&hold);
        }
        place.shared = Some(token);
        place.held = true;
        place.step = Step::Held;
        place.verdict = verdict;
        place.serial += 1;
        place.pending = 0;
        if place.ask.is_some() {
            self.tell_granted(hold);
        } else {
            place.unasked = true;
            let lock = place.lock.clone();
            self.push(Push::Changed { lock, hold });
        }
        true
    }

    /// The owner's other waiters in this client have the lock too.
    pub(super) fn join_others(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let (Some(owner), parent) = (place.owner.clone(), place.parent.clone()) else { return };
        let others: Vec<HoldId> = self
            .places
            .iter()
            .filter(|(other, place)| {
                **other != hold
                    && place.parent == parent
                    && place.owner.as_ref() == Some(&owner)
                    && !place.held
                    && place.ask.is_none()
                    && place.node.is_some()
            })
            .map(|(other, _)| *other)
            .collect();
        for other in others {
            let Some(place) = self.places.get_mut(&other) else { continue };
            let (node, before) = (place.node.take(), place.before.take());
            if let Some(before) = before {
                self.unwatch(&before.path, other);
            }
            if let Some(node) = node {
                self.discard(node.path);
            }
            self.join(other, None);
        }
    }

    /// Ends a hold that shares, or passes the node on to one that does. False when the node is to
    /// go.
    pub(super) fn leave_shared(&mut self, hold: HoldId) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let (told, lost) = match &place.ask {
            Some(Ask { what: What::Release { told, lost, .. }, .. }) => (*told, *lost),
            _ => return false,
        };
        let undone = (lost || place.undone) && !planted!(ZkCoHoldLossForgotten);
        if let Some(token) = place.shared {
            let keeper = self.keeper(token, &place.parent);
            if let Some(keeper) = keeper.and_then(|keeper| self.places.get_mut(&keeper)) {
                keeper.undone |= undone;
            }
        } else {
            let Some(node) = place.node.clone() else { return false };
            let heirs = self.sharers(node.token, &place.parent);
            let Some(&heir) = heirs.first() else { return false };
            if let Some(heir) = self.places.get_mut(&heir) {
                heir.shared = None;
                heir.node = Some(node);
                heir.undone = undone;
            }
            // Its watches are set anew.
            self.at(LASTING, Due::Lasting(heir));
        }
        if let Some(place) = self.forget(hold)
            && let Some(ask) = place.ask
        {
            let released = if told { Released::Done } else { Released::Left };
            self.answer(ask.request, Body::Release(released));
        }
        true
    }

    /// The hold that has the node of a token.
    pub(super) fn keeper(&self, token: u64, parent: &str) -> Option<HoldId> {
        let keeps = |place: &Place| {
            place.parent == parent && place.node.as_ref().is_some_and(|it| it.token == token)
        };
        self.places.iter().find(|(_, place)| keeps(place)).map(|(hold, _)| *hold)
    }

    /// The holds that share it.
    pub(super) fn sharers(&self, token: u64, parent: &str) -> Vec<HoldId> {
        self.places
            .iter()
            .filter(|(_, place)| place.shared == Some(token) && place.parent == parent)
            .map(|(hold, _)| *hold)
            .collect()
    }
}

/// An attach from elsewhere.
pub(crate) fn cannot_travel() -> Failure {
    Failure::Refused(Refusal {
        kind: RefusalKind::Unsupported,
        message: "on ZooKeeper an explicit owner re-enters only through the client that has the \
                  hold, while it has it: tickets do not travel between processes"
            .to_owned(),
    })
}
