//! What a hold that lasts is worth: a note that it has begun, a watch on its node, and one for
//! those who come to wait. A hold of a moment pays for none of it.

use std::time::Duration;

use crate::id::HoldId;
use crate::reply::{Abandoned, Push};
use crate::zookeeper::machine::{Aim, Machine};
use crate::zookeeper::note::{Note, REVOKE};
use crate::zookeeper::place::Step;
use crate::zookeeper::wire::{Change, ZkError, ZkOp, ZkReply, ZkWrite};

/// How long a hold has to last.
pub(crate) const LASTING: Duration = Duration::from_millis(20);

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Look {
    /// The note that the hold has begun was written.
    Noted,
    /// The hold's own node.
    Own,
    /// Who else is there.
    Others,
}

impl Machine {
    /// Does what a hold is worth that has lasted so long.
    pub(super) fn lasts(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        if !place.held || place.step != Step::Held || !self.connected {
            return;
        }
        if place.is_turning() {
            return;
        }
        let Some(node) = place.node.clone() else { return };
        let (parent, leads) = (place.parent.clone(), place.leads);
        if let Some(permits) = &place.permits {
            for lease in permits.leases.clone() {
                self.look_at_own(hold, lease);
            }
            return;
        }
        let reads = node.kind.reads();
        // A reader leaves nothing half done.
        let notes = !reads || planted!(ZkLostReaderTold);
        if notes && !self.is_simple() && !self.denied.contains(&parent) {
            let note = Note { released: false, sequence: node.sequence, abandoned: Abandoned::Yes };
            let parts = vec![
                ZkWrite::Check { path: node.path.clone() },
                ZkWrite::Set { path: parent.clone(), data: note.encode() },
            ];
            self.call(ZkOp::Multi(parts), Aim::Lasting { hold, look: Look::Noted });
        }
        if !planted!(ZkOwnNodeUnwatched) {
            self.look_at_own(hold, node.path);
        }
        // Each reader that came would wake all the others: the first of them looks.
        if !self.is_simple() && (leads || !reads) {
            self.look_at_others(hold, parent);
        }
    }

    fn look_at_own(&mut self, hold: HoldId, path: String) {
        self.watch(path.clone(), hold);
        let get = ZkOp::GetData { path, watch: true };
        self.call(get, Aim::Lasting { hold, look: Look::Own });
    }

    fn look_at_others(&mut self, hold: HoldId, parent: String) {
        self.watch(parent.clone(), hold);
        let list = ZkOp::Children { path: parent, watch: true };
        self.call(list, Aim::Lasting { hold, look: Look::Others });
    }

    pub(super) fn lasting_heard(
        &mut self,
        hold: HoldId,
        look: Look,
        result: Result<ZkReply, ZkError>,
    ) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        if !place.held || place.is_leaving() {
            return;
        }
        match (look, result) {
            (Look::Noted, Err(ZkError::At(1, error))) if *error == ZkError::NoAuth => {
                let parent = place.parent.clone();
                self.denied.insert(parent);
            }
            (Look::Own, Ok(ZkReply::Data { data, .. }))
                if data == REVOKE && !planted!(ZkRevokeIgnored) =>
            {
                self.wanted(hold);
            }
            (Look::Own, Err(ZkError::NoNode)) => self.node_gone(hold),
            (Look::Others, Ok(ZkReply::Children { names, .. })) => {
                place.others = place.count_others(&names);
                if place.others > 0 {
                    self.wanted(hold);
                }
            }
            _ => {}
        }
    }

    /// Somebody wants the lock: whoever shares the node hears it, too.
    fn wanted(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let lock = place.lock.clone();
        let mut holds = vec![hold];
        holds.extend(self.sharers(place));
        for hold in holds {
            self.push(Push::Wanted { lock: lock.clone(), hold });
        }
    }

    /// A watch fired.
    pub(super) fn fired(&mut self, path: &str, what: Change) {
        let mut holds = self.watched.remove(path).unwrap_or_default();
        if planted!(ZkAnyDeletionBreaks) && self.is_simple() {
            let there = self.places.iter().filter(|(_, place)| place.parent == path);
            holds.extend(there.map(|(hold, _)| *hold));
        }
        for hold in holds {
            let Some(place) = self.places.get_mut(&hold) else { continue };
            let own = place.owns(path);
            let before = place.before.as_ref().is_some_and(|before| before.path == path);
            if self.options.recipe.is_simple() {
                self.simple_fired(hold, what);
            } else if place.held {
                match (own, what) {
                    _ if place.is_leaving() => {}
                    // The turning's answer says whether it was that.
                    (true, Change::Deleted) if place.is_turning() => {}
                    (true, _) if place.is_turning() => self.wanted(hold),
                    (true, Change::Deleted) => self.node_gone(hold),
                    (true, _) => self.look_at_own(hold, path.to_owned()),
                    (false, Change::Children) if place.others == 0 && self.connected => {
                        self.look_at_others(hold, path.to_owned());
                    }
                    // That somebody waits is told once.
                    (false, _) => {}
                }
            } else if planted!(ZkDeletionIsGrant) && before && what == Change::Deleted {
                self.first(hold);
            } else if place.pending > 0 {
                place.again = true;
            } else if !self.connected {
                // It looks again when there is a connection.
                self.watch(path.to_owned(), hold);
            } else if before && what == Change::Data {
                self.watch_before(hold);
            } else if place.node.is_some() {
                self.list_place(hold);
            }
        }
    }
}
