//! Renewing holds and showing that waiters live. Nothing is written: a hold lasts as long as the
//! session. The node itself is looked at, and who else is there.

use std::collections::BTreeMap;

use crate::id::HoldId;
use crate::reply::{Body, Failure, Push, Refusal, Standing, State};
use crate::request::{Beat, Mode, RequestId};
use crate::time::Time;
use crate::zookeeper::machine::{Aim, Machine};
use crate::zookeeper::name::{Kind, holders, queue};
use crate::zookeeper::place::{Place, Step};
use crate::zookeeper::refusal::failure;
use crate::zookeeper::wire::{ZkError, ZkOp, ZkReply};

/// A beat until its answer.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub request: RequestId,
    pub at: Time,
    pub holds: Vec<HoldId>,
    /// How many calls are not answered.
    pub pending: u32,
    /// What cannot be answered at all.
    pub failed: Option<Failure>,
}

impl Machine {
    pub(super) fn beat(&mut self, request: RequestId, beats: Vec<Beat>) {
        self.next += 1;
        let id = self.next;
        let holds: Vec<HoldId> = beats.iter().map(|beat| beat.hold).collect();
        let job = Job { request, at: self.now, holds: holds.clone(), pending: 0, failed: None };
        self.jobs.insert(id, job);
        for (index, hold) in holds.into_iter().enumerate() {
            let Some(place) = self.places.get_mut(&hold) else { continue };
            // The list that made it the first was just read.
            if std::mem::take(&mut place.unasked) || place.doomed {
                continue;
            }
            if place.permits.is_some() && !place.held {
                self.beat_waiter(id, index, hold);
                continue;
            }
            if self.options.recipe.is_simple() && !place.held {
                if place.pending == 0 {
                    self.simple_look(hold);
                }
                continue;
            }
            let other = match (&place.step, &place.before) {
                (Step::Queued, Some(before)) => before.path.clone(),
                // A list that failed.
                (Step::List, _)
                    if !place.held
                        && place.pending == 0
                        && place.node.is_some()
                        && !planted!(ZkFailedListKept) =>
                {
                    self.list_place(hold);
                    continue;
                }
                _ if place.held => place.parent.clone(),
                _ => continue,
            };
            let held = place.held;
            let turning = self.keeper_of(hold).filter(|keeper| self.is_to_turn(*keeper));
            let Some((node, kind)) = self.node_of(hold) else { continue };
            // How many waits cannot be told from how many there are when some of them read, too.
            let others = match held && kind.reads() {
                true => ZkOp::Children { path: other, watch: false },
                false => ZkOp::Exists { path: other, watch: false },
            };
            let own = ZkOp::Exists { path: node, watch: false };
            for (op, own) in [(own, true), (others, false)] {
                // Its own node may have either name: the turning's answer says whether it is there.
                if own && turning.is_some() {
                    continue;
                }
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.pending += 1;
                }
                self.call(op, Aim::Beat { job: id, index, own });
            }
            if let Some(keeper) = turning {
                self.turn(keeper);
            }
        }
        self.finish_job(id);
    }

    /// The hold's own node, or the one that it shares. An answer from memory would have whoever
    /// waits for more of the session ask again at once, and for ever.
    fn node_of(&self, hold: HoldId) -> Option<(String, Kind)> {
        let place = self.places.get(&hold)?;
        let node = match (&place.node, place.shared) {
            (None, Some(_)) if planted!(ZkSharerNotAsked) => return None,
            (None, Some(token)) => {
                let keeper = self.keeper(token, &place.parent)?;
                self.places.get(&keeper)?.node.as_ref()
            }
            (node, _) => node.as_ref(),
        };
        node.map(|node| (node.path.clone(), node.kind))
    }

    pub(super) fn beat_heard(
        &mut self,
        id: u64,
        index: usize,
        own: bool,
        result: Result<ZkReply, ZkError>,
    ) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.pending -= 1;
        let Some(&hold) = job.holds.get(index) else { return };
        match result {
            Ok(ZkReply::Exists(stat)) => self.beat_saw(hold, own, stat),
            Ok(ZkReply::Children { names, .. }) => {
                if let Some(place) = self.places.get_mut(&hold) {
                    let waiting = names.len().saturating_sub(holders(&queue(&names).0));
                    place.others = u32::try_from(waiting).unwrap_or(u32::MAX);
                }
            }
            Ok(ZkReply::Data { data, .. }) => self.beat_saw_count(hold, &data),
            Err(ZkError::NoAuth) => {}
            // A semaphore's own node is gone, and so is the one of who waits.
            Err(ZkError::NoNode)
                if self.places.get(&hold).is_some_and(|it| it.permits.is_some()) => {}
            Err(error) => job.failed = Some(failure(&error, "a lock's node")),
            Ok(_) => {}
        }
        self.finish_job(id);
    }

    fn beat_saw(&mut self, hold: HoldId, own: bool, stat: Option<crate::zookeeper::wire::Stat>) {
        let session = self.session.as_ref().map_or(0, |session| session.id);
        let Some(place) = self.places.get_mut(&hold) else { return };
        match (stat, own) {
            (None, true)
                if !planted!(ZkOwnNodeUnwatched) && !place.is_leaving() && place.ask.is_none() =>
            {
                self.vanish(hold);
            }
            // The simple recipe's node has no name of its own: it may be another's by now.
            (Some(stat), true)
                if stat.ephemeral_owner != session
                    && !planted!(ZkOldSessionsNode)
                    && place.held
                    && !place.is_leaving() =>
            {
                self.vanish(hold);
            }
            (_, true) => {}
            (Some(stat), false) if place.held && !self.options.recipe.is_simple() => {
                // Who has permits has no node in the queue.
                let own = i32::from(place.permits.is_none());
                place.others = u32::try_from(stat.num_children - own).unwrap_or(0);
            }
            (None, false)
                if !place.held && place.step == Step::Queued && !planted!(ZkWatchSetLate) =>
            {
                // The watch was lost: this is the safety poll.
                self.list_place(hold);
            }
            _ => {}
        }
    }

    /// The node is gone: the beat's answer says so; to those who share it, a word does. It says why, too:
    /// within a session a holder's node goes only when somebody deletes it.
    fn vanish(&mut self, hold: HoldId) {
        let Some(place) = self.forget(hold) else { return };
        self.drop_leases(&place);
        let sharers = self.sharers(&place);
        if place.held {
            self.push(Push::Broken { lock: place.lock, hold });
        }
        for sharer in sharers {
            self.node_gone(sharer);
        }
    }

    /// Answers a beat whose calls are all answered, once the session's end is far enough away to
    /// say something of it.
    pub(super) fn finish_job(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.pending > 0 {
            return;
        }
        let held = |hold: &HoldId| self.places.get(hold).is_some_and(|place| place.held);
        let fresh = self.session.as_ref().is_some_and(|session| session.is_fresh(self.now));
        if !fresh && job.failed.is_none() && job.holds.iter().any(held) {
            return;
        }
        let Some(job) = self.jobs.remove(&id) else { return };
        if let Some(failure) = job.failed {
            return self.fail(job.request, failure);
        }
        for hold in self.superseded(&job.holds) {
            self.vanish(hold);
        }
        let states: Vec<Result<State, Refusal>> =
            job.holds.iter().map(|hold| self.standing(*hold, job.at)).collect();
        let doomed = |hold: &HoldId| {
            self.places.get(hold).is_some_and(|place| place.doomed || place.has_ended())
        };
        let doomed: Vec<HoldId> = job.holds.iter().copied().filter(doomed).collect();
        for hold in doomed {
            self.forget(hold);
        }
        self.answer(job.request, Body::Beat(states));
    }

    /// The holds beside which one of the others would not have been granted: their nodes are gone, as
    /// that one's list showed, which was read after theirs.
    fn superseded(&self, holds: &[HoldId]) -> Vec<HoldId> {
        let held = || {
            let places = holds.iter().filter_map(|hold| Some((*hold, self.places.get(hold)?)));
            places.filter(|(_, place)| place.held && place.permits.is_none()).filter_map(
                |(hold, place)| {
                    Some((hold, place, place.shared.or(Some(place.node.as_ref()?.token))?))
                },
            )
        };
        let mut latest: BTreeMap<&str, (u64, Mode)> = BTreeMap::new();
        for (_, place, token) in held() {
            let last = latest.entry(&place.parent).or_insert((token, place.mode));
            if token > last.0 {
                *last = (token, place.mode);
            }
        }
        let is_gone = |place: &Place, token: u64| {
            latest.get(place.parent.as_str()).is_some_and(|&(last, mode)| {
                token < last && (mode == Mode::Exclusive || place.mode == Mode::Exclusive)
            })
        };
        held().filter(|(_, place, token)| is_gone(place, *token)).map(|(hold, ..)| hold).collect()
    }

    fn standing(&self, hold: HoldId, at: Time) -> Result<State, Refusal> {
        let place = self.places.get(&hold);
        if let Some(ended) = place.and_then(|place| place.permits.as_ref()?.ended.clone()) {
            return ended.map(State::bare);
        }
        Ok(match place {
            Some(place) if place.doomed => State::bare(Standing::Deadlock),
            Some(place) if place.held => self.granted(place, at),
            Some(place) => self.queued(place),
            None => State::bare(Standing::Gone),
        })
    }
}
