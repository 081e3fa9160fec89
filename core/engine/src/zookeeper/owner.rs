//! Explicit owners, within one client: further holds share the node of the first.

use crate::id::{HoldId, OwnerId};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Released, Standing, State};
use crate::request::Mode;
use crate::zookeeper::lasting::LASTING;
use crate::zookeeper::machine::{Due, Machine};
use crate::zookeeper::place::{Ask, Place, Step, What};

/// How a hold stands to what its explicit owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// The owner has nothing.
    Stranger,
    /// It shares what the owner has.
    Joins,
    /// It would wait for what the owner has.
    Deadlock,
}

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

    /// How a hold stands to what its explicit owner has within this client.
    pub(super) fn tie(&self, hold: HoldId) -> Tie {
        let Some(place) = self.places.get(&hold) else { return Tie::Stranger };
        let Some(owner) = &place.owner else { return Tie::Stranger };
        let first = self.shareable(&place.parent, owner, hold);
        match first.and_then(|first| self.places.get(&first)?.reads()) {
            None => Tie::Stranger,
            Some(true) if place.mode == Mode::Exclusive => Tie::Deadlock,
            Some(_) => Tie::Joins,
        }
    }

    /// Its explicit owner was let in to read while the hold's node was being made: it joins, or would
    /// wait for its own owner. True when that is the end of its node.
    pub(super) fn joins_late(&mut self, hold: HoldId) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let asked = matches!(place.ask, Some(Ask { what: What::Acquire { .. }, .. }));
        let first = place.owner.as_ref().and_then(|it| self.shareable(&place.parent, it, hold));
        let reads = first.and_then(|first| self.places.get(&first)?.reads());
        if !asked || reads != Some(true) {
            return false;
        }
        let joins = self.tie(hold) == Tie::Joins;
        self.drop_node(hold);
        if !joins {
            self.end_acquire(hold, Ok(State::bare(Standing::Deadlock)));
        } else if !self.join(hold, None) {
            return false;
        }
        true
    }

    /// The hold stands by another's node from now on, or by none.
    fn drop_node(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let (node, before) = (place.node.take(), place.before.take());
        // What is under way for the node is of no use any more.
        place.serial += 1;
        place.pending = 0;
        place.step = Step::Unclear;
        if let Some(before) = before {
            self.unwatch(&before.path, hold);
        }
        if let Some(node) = node {
            self.discard(node.path);
        }
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
        let (token, given, verdict) = (node.token, node.given, first.verdict);
        let Some(place) = self.places.get_mut(&hold) else { return false };
        if planted!(ZkSharersStrayKept) {
            self.strays.remove(&hold);
        }
        place.shared = Some(token);
        place.given = given;
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
            let tie = self.tie(other);
            if tie == Tie::Stranger {
                continue;
            }
            self.drop_node(other);
            if tie == Tie::Joins {
                self.join(other, None);
            } else if let Some(place) = self.places.get_mut(&other) {
                // The owner reads: who waits to write for it hears so when it asks next.
                place.doomed = true;
                let lock = place.lock.clone();
                self.push(Push::Changed { lock, hold: other });
            }
        }
    }

    /// Ends a hold that shares, or passes the node on to one that does. False when the node is to
    /// go.
    pub(super) fn leave_shared(&mut self, hold: HoldId) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let (told, lost, used) = match &place.ask {
            Some(Ask { what: What::Release { told, lost, used }, .. }) => (*told, *lost, *used),
            _ => return false,
        };
        let token = place.shared.or(place.node.as_ref().map(|node| node.token));
        let heard = told && !lost && token.is_some_and(|token| used >= token);
        let wrote = place.mode == Mode::Exclusive;
        let mended = place.mended || heard && wrote;
        let undone = (lost && wrote || place.undone) && !planted!(ZkCoHoldLossForgotten);
        let parent = place.parent.clone();
        if let Some(token) = place.shared {
            let keeper = self.keeper(token, &place.parent);
            if let Some(keeper) = keeper.and_then(|keeper| self.places.get_mut(&keeper)) {
                keeper.undone |= undone;
                keeper.mended |= mended;
            }
        } else {
            let Some(node) = place.node.clone() else { return false };
            let leads = place.leads;
            let heirs = self.sharers(place);
            let Some(&heir) = heirs.first() else { return false };
            if let Some(heir) = self.places.get_mut(&heir) {
                heir.shared = None;
                heir.leads = leads;
                heir.node = Some(node);
                heir.undone = undone;
                heir.mended = mended;
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
        // Who is left may only read.
        if wrote && let Some(keeper) = token.and_then(|token| self.keeper(token, &parent)) {
            self.turn(keeper);
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

    /// The holds that share the node of this one. Only an explicit owner's do: of many holds the others
    /// are not looked through.
    pub(super) fn sharers(&self, keeper: &Place) -> Vec<HoldId> {
        let (Some(_), Some(node)) = (&keeper.owner, &keeper.node) else { return Vec::new() };
        let token = Some(node.token);
        let shares = |place: &Place| place.shared == token && place.parent == keeper.parent;
        self.places.iter().filter(|(_, place)| shares(place)).map(|(hold, _)| *hold).collect()
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
