//! Looking for the node that an unanswered create may have made.

use crate::id::HoldId;
use crate::zookeeper::machine::Machine;
use crate::zookeeper::name::{Participant, queue};
use crate::zookeeper::place::{Part, Step};
use crate::zookeeper::wire::{Stat, ZkError, ZkOp, ZkReply};

impl Machine {
    /// Looks for the node that an unanswered create may have made. What the old server had taken
    /// in is there after a round trip through the leader, or will never be.
    pub(super) fn seek(&mut self, hold: HoldId, first: Option<(Part, ZkOp)>) {
        let Some(place) = self.places.get(&hold) else { return };
        let path = place.parent.clone();
        let mut parts: Vec<_> = first.into_iter().collect();
        if !planted!(ZkListWithoutSync) {
            parts.push((Part::Sync, ZkOp::Sync { path: path.clone() }));
        }
        parts.push((Part::List, ZkOp::Children { path: path.clone(), watch: false }));
        parts.push((Part::Note, ZkOp::GetData { path, watch: false }));
        self.batch(hold, Step::Seek, parts);
    }

    pub(super) fn sought(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let leaving = place.is_leaving();
        if let Some(Err(error)) = place.take(&Part::Sync) {
            return self.acquire_failed(hold, &error);
        }
        let names = match place.take(&Part::List) {
            Some(Ok(ZkReply::Children { names, .. })) => names,
            Some(Err(ZkError::NoNode)) => Vec::new(),
            Some(Err(error)) => return self.acquire_failed(hold, &error),
            _ => return,
        };
        let parent = place.parent.clone();
        let own = self.own_in(&parent, &names, hold);
        if planted!(ZkListWithoutSync) && own.is_none() {
            // It is believed.
            self.strays.remove(&hold);
        }
        match own {
            Some(_) if planted!(ZkOrphanForgotten) => self.make(hold, None),
            Some(own) => {
                let path = format!("{parent}/{}", own.name);
                let note = self.places.get_mut(&hold).and_then(|place| place.take(&Part::Note));
                self.batch(
                    hold,
                    Step::Adopt(names),
                    vec![(Part::Stat, ZkOp::Exists { path, watch: false })],
                );
                // Kept for when the node is known to be ours.
                if let (Some(place), Some(note)) = (self.places.get_mut(&hold), note) {
                    place.heard.push((Part::Note, note));
                }
            }
            None if leaving => self.ended_leaving(hold, false),
            None => self.make(hold, None),
        }
    }

    /// The node that carries the hold's id, unless an owner's other hold has inherited it.
    fn own_in(&self, parent: &str, names: &[String], hold: HoldId) -> Option<Participant> {
        queue(names).0.into_iter().find(|one| {
            let kept = || self.is_kept(&format!("{parent}/{}", one.name));
            one.hold == Some(hold) && (planted!(ZkHeirReleased) || !kept())
        })
    }

    /// The node that was found is taken only if it belongs to this session: one of an earlier
    /// session is about to vanish.
    pub(super) fn adopted(&mut self, hold: HoldId, names: Vec<String>) {
        let Some(parent) = self.places.get(&hold).map(|place| place.parent.clone()) else { return };
        let Some(own) = self.own_in(&parent, &names, hold) else {
            return self.seek(hold, None);
        };
        let path = format!("{parent}/{}", own.name);
        let Some(place) = self.places.get_mut(&hold) else { return };
        let session = self.session.as_ref().map_or(0, |session| session.id);
        match place.take(&Part::Stat) {
            Some(Ok(ZkReply::Exists(Some(stat))))
                if stat.ephemeral_owner == session || planted!(ZkOldSessionsNode) =>
            {
                place
                    .heard
                    .push((Part::List, Ok(ZkReply::Children { names, stat: Stat::default() })));
                let permits = place.permits.is_some();
                if self.adopt(hold, path, stat) {
                    match permits {
                        true => self.list_place(hold),
                        false => self.listed(hold),
                    }
                }
            }
            Some(Ok(ZkReply::Exists(Some(_)))) => {
                self.discard(path);
                self.seek(hold, None);
            }
            Some(Ok(ZkReply::Exists(None))) => self.seek(hold, None),
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }
}
