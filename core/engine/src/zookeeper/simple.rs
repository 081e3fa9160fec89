//! One ephemeral node, which everybody wants to make and everybody watches. Here for comparison:
//! each release wakes all who wait.

use crate::id::HoldId;
use crate::reply::{Abandoned, Standing, State};
use crate::request::Release;
use crate::zookeeper::machine::{Machine, TOKENS};
use crate::zookeeper::name::{Kind, Participant};
use crate::zookeeper::note::Badge;
use crate::zookeeper::place::{Node, Part, Place, Step, Then};
use crate::zookeeper::wire::{Change, NodeKind, ZkError, ZkOp, ZkReply};

/// What the node says: whose it is, since its name does not.
pub(crate) fn owner(data: &[u8]) -> Option<(HoldId, &[u8])> {
    let at = data.iter().position(|byte| *byte == b' ')?;
    let hold = HoldId::parse(std::str::from_utf8(&data[..at]).ok()?)?;
    Some((hold, &data[at + 1..]))
}

/// Who has the one node.
pub(crate) fn participant(hold: Option<HoldId>) -> Participant {
    Participant { name: String::new(), hold, sequence: 0, kind: Kind::Lock }
}

impl Machine {
    pub(super) fn acquire_simple(&mut self, hold: HoldId, after: Option<Release>) {
        let Some(place) = self.places.get(&hold) else { return };
        if place.held {
            return self.tell_granted(hold);
        }
        let first = after.and_then(|release| {
            let old = self.places.get(&release.hold)?;
            let path = old.node.as_ref()?.path.clone();
            Some((Part::GiveUp(release.hold), ZkOp::Delete { path }))
        });
        self.simple_make(hold, first.into_iter().collect());
    }

    fn simple_make(&mut self, hold: HoldId, mut parts: Vec<(Part, ZkOp)>) {
        let timeout = self.session.as_ref().map(|session| session.timeout).unwrap_or_default();
        let Some(place) = self.places.get(&hold) else { return };
        let mut data = format!("{hold} ").into_bytes();
        data.extend(Badge::encode(&self.client, timeout));
        let kind = NodeKind::Ephemeral;
        parts.push((Part::Create, ZkOp::Create { path: place.parent.clone(), data, kind }));
        self.batch(hold, Step::Make, parts);
    }

    pub(super) fn simple_made(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.created() {
            Some(Ok(ZkReply::Created { path, stat })) => self.simple_own(hold, path, stat.czxid),
            Some(Err(ZkError::NodeExists)) => self.simple_look(hold),
            Some(Err(ZkError::NoNode)) if place.may_found() => {
                place.founded += 1;
                let path = place.parent.clone();
                let ends = path.match_indices('/').map(|(at, _)| at).skip(1);
                let kind = NodeKind::Container;
                let parts = ends.map(|end| {
                    let path = path[..end].to_owned();
                    (Part::Container, ZkOp::Create { path, data: Vec::new(), kind })
                });
                self.simple_make(hold, parts.collect());
            }
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    fn simple_own(&mut self, hold: HoldId, path: String, czxid: i64) {
        self.simple_stands(&path, czxid);
        let token = u64::try_from(czxid).unwrap_or(0).saturating_mul(TOKENS);
        self.unwatch(&path, hold);
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.node = Some(Node::new(path, 0, Kind::Lock, token));
        place.verdict = Abandoned::Unknown;
        self.first(hold);
    }

    /// This is the node that stands there: every other one of ours is gone, and its release would
    /// delete this one.
    fn simple_stands(&mut self, path: &str, czxid: i64) {
        let token = u64::try_from(czxid).unwrap_or(0).saturating_mul(TOKENS);
        let gone = |place: &Place| {
            let other = place.node.as_ref().is_some_and(|node| node.token != token);
            other && place.parent == path && !place.is_leaving()
        };
        let holds = self.places.iter().filter(|(_, place)| gone(place));
        let holds: Vec<HoldId> = holds.map(|(hold, _)| *hold).collect();
        for hold in holds {
            if !planted!(ZkEarlierHoldKept) {
                self.node_gone(hold);
            }
        }
    }

    /// Whose is the node? The watch tells when it is free.
    pub(super) fn simple_look(&mut self, hold: HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        let path = place.parent.clone();
        let watch = place.may_wait() && !place.is_leaving();
        if watch {
            self.watch(path.clone(), hold);
        }
        self.batch(hold, Step::List, vec![(Part::Before, ZkOp::GetData { path, watch })]);
    }

    /// Whether the node that was looked at is this hold's, if it is this session's. Whoever asks a
    /// holder to let go overwrites what the node says: then it is whose no other hold's it is.
    fn simple_mine(&self, hold: HoldId) -> bool {
        let Some(place) = self.places.get(&hold) else { return false };
        let seen = place.heard.iter().find(|(part, _)| *part == Part::Before);
        let Some((_, Ok(ZkReply::Data { data, stat }))) = seen else { return false };
        let token = u64::try_from(stat.czxid).unwrap_or(0).saturating_mul(TOKENS);
        let has = |place: &Place| place.node.as_ref().is_some_and(|node| node.token == token);
        // One that several of our holds may have made, and nobody can say which: whoever leaves
        // deletes it, otherwise the first of them has it. Whoever knows its own did not make it.
        let alone = |place: &Place| {
            planted!(ZkUnnamedIsOurs)
                || place.node.is_none()
                    && (place.is_leaving()
                        || !self.places.iter().any(|(other, it)| {
                            it.parent == place.parent
                                && it.node.is_none()
                                && (*other < hold || *other != hold && it.is_leaving())
                        }))
        };
        let named = match owner(data) {
            Some((owner, _)) => owner == hold,
            None => alone(place),
        };
        // An owner's other hold may have inherited the node.
        has(place) || !self.places.values().any(has) && named
    }

    pub(super) fn simple_seen(&mut self, hold: HoldId) {
        let session = self.session.as_ref().map_or(0, |session| session.id);
        let mine = self.simple_mine(hold);
        let Some(place) = self.places.get(&hold) else { return };
        let seen = place.heard.iter().find(|(part, _)| *part == Part::Before);
        if let Some((_, Ok(ZkReply::Data { stat, .. }))) = seen {
            let (path, czxid) = (place.parent.clone(), stat.czxid);
            self.simple_stands(&path, czxid);
        }
        let Some(place) = self.places.get_mut(&hold) else { return };
        let (leaving, wait) = (place.is_leaving(), place.may_wait());
        let again = std::mem::take(&mut place.again);
        let path = place.parent.clone();
        match place.take(&Part::Before) {
            Some(Ok(ZkReply::Data { stat, .. })) => {
                let ours = stat.ephemeral_owner == session && mine;
                if ours && leaving {
                    place.parting = true;
                    let delete = ZkOp::Delete { path };
                    self.batch(hold, Step::Leave(Then::Released), vec![(Part::Delete, delete)]);
                } else if leaving {
                    self.ended_leaving(hold, false);
                } else if ours {
                    self.simple_own(hold, path, stat.czxid);
                } else if !wait {
                    self.end_acquire(hold, Ok(State::bare(Standing::Contended)));
                } else if again {
                    self.simple_make(hold, Vec::new());
                } else {
                    place.step = Step::Queued;
                    self.tell_queued(hold);
                }
            }
            Some(Err(ZkError::NoNode)) if leaving => self.ended_leaving(hold, false),
            Some(Err(ZkError::NoNode)) => self.simple_make(hold, Vec::new()),
            Some(Err(error)) => self.acquire_failed(hold, &error),
            _ => self.acquire_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    /// The node is looked at before it is deleted: it has the same name whoever made it.
    pub(super) fn release_simple(&mut self, hold: HoldId) {
        self.simple_look(hold);
    }

    pub(super) fn simple_fired(&mut self, hold: HoldId, what: Change) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        if place.held || (planted!(ZkAnyDeletionBreaks) && place.step == Step::Make) {
            match what {
                _ if place.is_leaving() => {}
                Change::Deleted => self.node_gone(hold),
                _ => self.lasts(hold),
            }
        } else if place.pending > 0 {
            place.again = true;
        } else if self.connected {
            self.simple_make(hold, Vec::new());
        }
    }
}
