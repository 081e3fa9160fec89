//! Giving a lock up: a note for the next holder and the deletion of the node, in one step.

use crate::id::HoldId;
use crate::reply::{Abandoned, Body, Failure, Released, Standing, State};
use crate::request::{Mode, Release, RequestId};
use crate::zookeeper::machine::Machine;
use crate::zookeeper::name::read_path;
use crate::zookeeper::note::Note;
use crate::zookeeper::permits::queue_path;
use crate::zookeeper::place::{Ask, Part, Place, Step, Then, What};
use crate::zookeeper::refusal::{failure, is_missing};
use crate::zookeeper::turn::Turn;
use crate::zookeeper::wire::{ZkError, ZkOp, ZkReply, ZkWrite};

impl Machine {
    pub(super) fn release(&mut self, request: RequestId, release: Release) {
        let Some(path) = self.path(request, &release.lock) else { return };
        let hold = release.hold;
        let path = queue_path(path, release.mode);
        if !self.places.contains_key(&hold) {
            if !self.strays.contains_key(&hold) {
                return self.answer(request, Body::Release(Released::Unknown));
            }
            self.places.insert(hold, Place::new(release.lock.clone(), path, release.mode, false));
        }
        let at = self.now;
        let Some(place) = self.places.get_mut(&hold) else { return };
        let what = What::release(&release);
        place.ask = Some(Ask { request, at, what });
        let unclear = place.node.is_none();
        if self.leave_shared(hold) {
            return;
        }
        if self.is_simple() {
            self.release_simple(hold);
        } else if unclear {
            self.seek(hold, None);
        } else if self.waits_for_permits(hold) {
            // They may have been taken by now.
            self.list_place(hold);
        } else {
            self.leave(hold, Then::Released);
        }
    }

    /// Deletes the node. Of a holder together with the note; of a waiter only while somebody comes
    /// before it, since it would otherwise have been a holder without knowing.
    pub(super) fn leave(&mut self, hold: HoldId, then: Then) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.parting |= place.held;
        if place.node.as_ref().is_some_and(|node| node.turn == Turn::Sent) {
            // Its name is not known before that is answered.
            return;
        }
        let Some(place) = self.places.get(&hold) else { return };
        let Some(node) = &place.node else { return };
        let delete = ZkWrite::Delete { path: node.path.clone() };
        let op = if place.permits.is_some() {
            place.give_back()
        } else if place.held {
            match self.note_of(place) {
                Some(note) => ZkOp::Multi(vec![note, delete]),
                None => ZkOp::Delete { path: node.path.clone() },
            }
        } else if let Some(before) = &place.before {
            ZkOp::Multi(vec![ZkWrite::Check { path: before.path.clone() }, delete])
        } else {
            // Where it stands is not known.
            return self.list_place(hold);
        };
        self.batch(hold, Step::Leave(then), vec![(Part::Delete, op)]);
    }

    /// What a holder says as it goes; `None` where it may say nothing.
    fn note_of(&self, place: &Place) -> Option<ZkWrite> {
        if place.permits.is_some() {
            return None;
        }
        let sequence = place.node.as_ref()?.sequence;
        let note = Note { released: true, sequence, abandoned: self.word_of(place)? };
        Some(ZkWrite::Set { path: place.parent.clone(), data: note.encode() })
    }

    /// What the next holder is told of it; `None` where nothing may be said.
    pub(super) fn word_of(&self, place: &Place) -> Option<Abandoned> {
        let node = place.node.as_ref()?;
        if self.denied.contains(&place.parent) {
            return None;
        }
        if node.kind.reads() {
            return Some(if planted!(ZkReaderMends) { Abandoned::No } else { place.verdict });
        }
        Some(match place.ask.as_ref().map(|ask| &ask.what) {
            // What is lost of who reads, or is about to, is no write.
            Some(What::Release { lost: true, .. }) if place.mode == Mode::Exclusive => {
                Abandoned::Yes
            }
            Some(What::Release { .. }) if place.undone => Abandoned::Yes,
            // What reads inside an exclusive hold, and outlasts it, was told and mends nothing.
            Some(What::Release { .. }) if place.mode == Mode::Shared => match place.mended {
                true => Abandoned::No,
                false => place.verdict,
            },
            // Of an earlier node of the hold its holder was told, and not of this one.
            Some(What::Release { told: true, used, .. }) if *used >= node.token => Abandoned::No,
            // The grant reached nobody: the next one is told what this one would have been.
            _ => place.verdict,
        })
    }

    pub(super) fn left(&mut self, hold: HoldId, then: Then) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        match place.take(&Part::Delete) {
            Some(Ok(ZkReply::Done)) => self.gone(hold, true),
            Some(Err(error)) if place.permits.is_some() => match is_missing(&error) {
                true => self.gone(hold, false),
                false => self.leave_failed(hold, &error),
            },
            Some(Err(ZkError::At(0, error))) if !place.held => match *error {
                // The one before went in the same moment: perhaps this is the first now.
                ZkError::NoNode => self.list_place(hold),
                error => self.leave_failed(hold, &error),
            },
            // The turning whose answer was lost has been carried out.
            Some(Err(error)) if is_missing(&error) && place.is_turning() => {
                place.read_on();
                self.leave(hold, then);
            }
            Some(Err(ZkError::At(0, error))) if *error == ZkError::NoAuth => {
                let parent = place.parent.clone();
                self.denied.insert(parent);
                self.leave(hold, then);
            }
            Some(Err(ZkError::NoNode)) => self.gone(hold, false),
            Some(Err(ZkError::At(_, error))) if *error == ZkError::NoNode => {
                self.gone(hold, false);
            }
            Some(Err(error)) => self.leave_failed(hold, &error),
            _ => self.leave_failed(hold, &ZkError::ConnectionLoss),
        }
    }

    /// The node is gone: by this very call, or before.
    fn gone(&mut self, hold: HoldId, by_us: bool) {
        let Some(place) = self.forget(hold) else { return };
        if by_us && place.permits.is_none() {
            self.note_last(&place);
        } else if !by_us {
            self.drop_leases(&place);
        }
        let Some(Ask { request, what, .. }) = place.ask else { return };
        match what {
            What::Release { told, .. } => {
                let released = match (by_us, place.held && told) {
                    (true, true) => Released::Done,
                    (true, false) => Released::Left,
                    (false, _) => Released::Unknown,
                };
                self.answer(request, Body::Release(released));
            }
            What::Acquire { .. } => {
                let state = State {
                    others_waiting: place.others.saturating_sub(1),
                    ..State::bare(Standing::Contended)
                };
                self.answer(request, Body::Acquire(state));
            }
            What::Convert => self.answer(request, Body::Convert(State::bare(Standing::Gone))),
        }
    }

    fn leave_failed(&mut self, hold: HoldId, error: &ZkError) {
        if planted!(ZkReleaseForgotten) && *error == ZkError::ConnectionLoss {
            return self.gone(hold, true);
        }
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.step = if place.held { Step::Held } else { Step::List };
        let failure = match error {
            // The deletion may have come before the session's end.
            ZkError::SessionExpired | ZkError::SessionMoved => Failure::Unknown,
            error => failure(error, &place.parent),
        };
        if let Some(ask) = place.ask.take() {
            self.fail(ask.request, failure);
        }
    }

    /// Nothing was found to be deleted.
    pub(super) fn ended_leaving(&mut self, hold: HoldId, by_us: bool) {
        self.gone(hold, by_us);
    }

    /// Ends an acquire that cannot be met, with its node.
    pub(super) fn leave_refused(&mut self, hold: HoldId, failure: &Failure) {
        let Failure::Refused(refusal) = failure else { return };
        let Some(place) = self.places.get(&hold) else { return };
        if let Some(node) = &place.node {
            let path = node.path.clone();
            self.discard(path);
        }
        self.end_acquire(hold, Err(Failure::Refused(refusal.clone())));
    }

    /// The release of another hold, to go out first in the same batch; `None` when there is
    /// nothing to release.
    pub(super) fn give_up(&mut self, release: &Release) -> Option<(Part, ZkOp)> {
        let hold = release.hold;
        let (request, at) = (RequestId(0), self.now);
        let place = self.places.get_mut(&hold)?;
        let node = place.node.clone()?;
        let what = What::release(release);
        place.ask = Some(Ask { request, at, what });
        let note = self.places.get(&hold).filter(|place| place.held).and_then(|p| self.note_of(p));
        if let Some(place) = self.places.get_mut(&hold) {
            place.ask = None;
            if place.permits.is_some() {
                return Some((Part::GiveUp(hold), place.give_back()));
            }
        }
        let delete = ZkWrite::Delete { path: node.path };
        Some((Part::GiveUp(hold), ZkOp::Multi(note.into_iter().chain([delete]).collect())))
    }

    /// Hears what became of a release that went out with a batch.
    pub(super) fn gave_up(&mut self, hold: HoldId) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        let given = place.heard.iter().position(|(part, _)| matches!(part, Part::GiveUp(_)));
        let Some(at) = given else { return };
        let (Part::GiveUp(old), result) = place.heard.swap_remove(at) else { return };
        match result {
            // The engine repeats both.
            Err(ZkError::ConnectionLoss | ZkError::NotSent) => {}
            Ok(_) => {
                self.forget(old);
            }
            Err(error) => {
                self.give_up_failed(old);
                let there = !is_missing(&error)
                    || (error == ZkError::NoNode && planted!(ZkNextNodeDeleted));
                let Some(Place { node: Some(node), parent, .. }) = self.forget(old) else { return };
                if there {
                    self.denied.insert(parent);
                    self.discard(node.path);
                } else if node.turn != Turn::Idle {
                    self.discard(read_path(&node.path));
                }
            }
        }
    }
}
