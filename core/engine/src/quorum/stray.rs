//! Giving votes back, until nothing of them can be left.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::quorum::Machine;
use crate::quorum::machine::Due;
use crate::quorum::seat::Key;
use crate::quorum::server::Aim;
use crate::quorum::vote::Vote;
use crate::reply::{Body, Failure, RefusalKind, Released, Reply, Standing, State};
use crate::request::{Op, Release, RequestId};
use crate::time::Time;

/// How long a server has that refused to take a vote back.
const AGAIN: Duration = Duration::from_millis(50);
/// How much past its time a release is repeated that no late copy may follow.
const PAST: Duration = Duration::from_millis(1);

/// A vote that is being given back.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub server: usize,
    pub release: Release,
    /// A request for it is out.
    pub busy: bool,
    /// An acquire of it may take effect until the server's time has passed this; 0 when none may.
    pub exposed: u64,
    /// The same of the acquire that is out.
    not_after: u64,
    /// From when on the server has forgotten it by itself, whatever happened.
    over: Time,
    /// When it is to be given back once more.
    due: Option<Time>,
}

/// A hold that the engine released.
#[derive(Clone, Debug)]
pub(crate) struct Parting {
    /// The engine's release, until it is answered, and when it must be.
    request: Option<(RequestId, Time)>,
    /// The votes that are not known to be gone.
    left: BTreeSet<HoldId>,
    outcome: Released,
}

impl Machine {
    /// The engine gives a hold up, or leaves the queue.
    pub(crate) fn release(&mut self, id: RequestId, release: Release) {
        self.leave(Some(id), &release);
    }

    /// Gives all votes of a hold back. It is released when enough servers have none of it that somebody
    /// else can have the lock.
    pub(crate) fn leave(&mut self, request: Option<RequestId>, release: &Release) {
        let (key, now, quorum) = (Key::of(release.hold), self.now, self.quorum());
        let by = now + self.patience();
        let request = request.map(|id| (id, by));
        if let Some(parting) = self.partings.get_mut(&key) {
            if let Some((_, before)) = request.and(parting.request) {
                self.timers.remove(&(before, Due::Parting(key)));
            }
            parting.request = request.or(parting.request);
        } else if let Some(seat) = self.seats.get(&key) {
            let outcome = match release.told {
                true if seat.is_valid(now, quorum) => Released::Done,
                true => Released::Unknown,
                false => Released::Left,
            };
            let mut left = self.dissolve(key, Some(release));
            left.retain(|vote| self.strays.contains_key(vote));
            self.partings.insert(key, Parting { request, left, outcome });
        } else if let Some((id, _)) = request {
            return self.answer(id, Body::Release(Released::Unknown));
        }
        if request.is_some() {
            self.timers.insert((by, Due::Parting(key)));
        }
        self.look_at_parting(key);
    }

    /// A hold ends that the engine has not released: it was lost, or never was.
    pub(crate) fn abandon_seat(&mut self, key: Key) {
        self.dissolve(key, None);
    }

    /// A hold's votes are on their own from now on: those that are given back.
    fn dissolve(&mut self, key: Key, release: Option<&Release>) -> BTreeSet<HoldId> {
        self.arm(key, None);
        let Some(seat) = self.seats.get_mut(&key) else { return BTreeSet::new() };
        seat.used = seat.used.max(release.map_or(0, |release| release.used));
        if let Some((_, by)) = seat.pending.take() {
            self.timers.remove(&(by, Due::Answer(key)));
        }
        let mut left = BTreeSet::new();
        for server in 0..self.servers.len() {
            left.extend(self.take_back(server, key, release));
        }
        self.seats.remove(&key);
        left
    }

    /// Gives one vote back. The next one there has another id: the server remembers this one as released,
    /// and a release that is late must not end the next.
    pub(crate) fn give_back(&mut self, server: usize, key: Key) {
        self.take_back(server, key, None);
    }

    /// All votes but the arbiter's.
    pub(crate) fn give_back_others(&mut self, key: Key) {
        for server in 0..self.servers.len() {
            if self.seats.get(&key).is_some_and(|seat| seat.arbiter != server) {
                self.give_back(server, key);
            }
        }
    }

    /// The server has ended a vote by itself, or forgotten it.
    pub(crate) fn forget_vote(&mut self, server: usize, key: Key) {
        if self.take_back(server, key, None).is_none() {
            self.replace_vote(server, key);
        }
    }

    fn replace_vote(&mut self, server: usize, key: Key) -> Option<Vote> {
        let fresh = self.mint_vote(key);
        let seat = self.seats.get_mut(&key)?;
        let fresh = if planted!(VoteIdReused) { seat.votes[server].id } else { fresh };
        Some(core::mem::replace(&mut seat.votes[server], Vote::new(fresh)))
    }

    fn take_back(&mut self, server: usize, key: Key, release: Option<&Release>) -> Option<HoldId> {
        let seat = self.seats.get(&key)?;
        if !seat.votes[server].is_there() {
            return None;
        }
        let (lock, used, retention) = (seat.ask.lock.clone(), seat.used, self.config.retention);
        // What the engine does not know of anymore was lost.
        let held = seat.phase == crate::quorum::seat::Phase::Held && used > 0;
        let vote = self.replace_vote(server, key)?;
        let told = release.map_or(held, |release| release.told);
        let release = Release {
            // At least the vote's own token, or the server would take it for one who was not told.
            used: if told { used.max(vote.token) } else { used },
            told,
            lost: release.map_or(held, |release| release.lost),
            losses: vote.losses,
            retention: release.map_or(retention, |release| release.retention),
            alone: release.is_some_and(|release| release.alone) && vote.exposed == 0,
            ..Release::new(lock, vote.id, 0)
        };
        let over = vote.asked_at.max(vote.sent) + self.config.max_lease + self.config.claim * 2;
        self.strays.insert(
            vote.id,
            Stray {
                server,
                release,
                busy: vote.busy,
                exposed: vote.exposed,
                not_after: vote.not_after,
                over,
                due: None,
            },
        );
        self.send_back(vote.id);
        Some(vote.id)
    }

    /// Sends the release of a stray, if it may leave now.
    pub(crate) fn send_back(&mut self, vote: HoldId) {
        let now = self.now;
        let Some(stray) = self.strays.get_mut(&vote) else { return };
        stray.due = None;
        if stray.over <= now {
            return self.is_gone(vote, true);
        }
        let (server, over) = (stray.server, stray.over);
        if stray.busy {
            return;
        }
        if !self.servers[server].is_usable() {
            // Until it is back, or has forgotten.
            return self.again_at(vote, over);
        }
        stray.busy = true;
        let release = stray.release.clone();
        self.send(server, Aim::GiveBack(vote), Op::Release(release));
    }

    fn again_at(&mut self, vote: HoldId, at: Time) {
        let Some(stray) = self.strays.get_mut(&vote) else { return };
        if let Some(before) = stray.due.replace(at) {
            self.timers.remove(&(before, Due::Stray(vote)));
        }
        self.timers.insert((at, Due::Stray(vote)));
    }

    /// A server can be asked again.
    pub(crate) fn resume_giving_back(&mut self, server: usize) {
        let strays = self.strays.iter().filter(|(_, stray)| stray.server == server);
        for vote in strays.map(|(vote, _)| *vote).collect::<Vec<_>>() {
            self.send_back(vote);
        }
    }

    /// An acquire, or a renewal, was answered whose vote is being given back.
    pub(crate) fn stray_answered(
        &mut self,
        server: usize,
        vote: HoldId,
        result: Result<Option<State>, Failure>,
    ) {
        let Some(stray) = self.strays.get_mut(&vote).filter(|stray| stray.server == server) else {
            return;
        };
        stray.busy = false;
        let nothing =
            |state: &State| !matches!(state.standing, Standing::Granted | Standing::Queued);
        let there = match result {
            Ok(Some(state)) => !nothing(&state),
            Err(Failure::NotSent | Failure::Refused(_)) => false,
            Ok(None) | Err(Failure::Unknown) => {
                stray.exposed = stray.exposed.max(stray.not_after);
                true
            }
        };
        if there || stray.exposed > 0 {
            self.send_back(vote);
        } else {
            self.is_gone(vote, true);
        }
    }

    /// A renewal of a stray came back: whatever it said, the release follows.
    pub(crate) fn stray_renewed(&mut self, vote: HoldId) {
        if let Some(stray) = self.strays.get_mut(&vote) {
            stray.busy = false;
            self.send_back(vote);
        }
    }

    /// A vote was given that nobody here knows of.
    pub(crate) fn give_back_unknown(&mut self, server: usize, lock: Name, vote: HoldId) {
        if self.strays.contains_key(&vote) {
            return;
        }
        let release = Release { told: false, ..Release::new(lock, vote, 0) };
        let over = self.now + self.config.max_lease;
        let stray =
            Stray { server, release, busy: false, exposed: 0, not_after: 0, over, due: None };
        self.strays.insert(vote, stray);
        self.send_back(vote);
    }

    /// A server answered a release.
    pub(crate) fn given_back(
        &mut self,
        server: usize,
        vote: HoldId,
        result: Result<Reply, Failure>,
    ) {
        let now = self.now;
        let Some(stray) = self.strays.get_mut(&vote).filter(|stray| stray.server == server) else {
            return;
        };
        stray.busy = false;
        match result {
            Ok(reply) if reply.now <= stray.exposed => {
                // An acquire may come yet: once more, when it no longer can.
                let wait = Duration::from_micros(stray.exposed - reply.now);
                let at = (now + wait + PAST).min(stray.over);
                self.again_at(vote, at);
                self.is_gone(vote, false);
            }
            Ok(_) => self.is_gone(vote, true),
            Err(Failure::Refused(refusal)) => {
                stray.release.alone = false;
                match refusal.kind {
                    RefusalKind::Again => self.send_back(vote),
                    _ => self.again_at(vote, now + AGAIN),
                }
            }
            Err(Failure::Unknown | Failure::NotSent) => {
                stray.release.alone = false;
                let over = stray.over;
                self.again_at(
                    vote,
                    if self.servers[server].is_usable() { now + AGAIN } else { over },
                );
            }
        }
    }

    /// The server has nothing of a vote; and, if it is over, will not come to have.
    fn is_gone(&mut self, vote: HoldId, over: bool) {
        if over && let Some(due) = self.strays.remove(&vote).and_then(|stray| stray.due) {
            self.timers.remove(&(due, Due::Stray(vote)));
        }
        let key = Key::of_vote(vote);
        if let Some(parting) = self.partings.get_mut(&key) {
            parting.left.remove(&vote);
            self.look_at_parting(key);
        }
    }

    pub(crate) fn look_at_parting(&mut self, key: Key) {
        let (all, quorum, arbiter) = (self.servers.len(), self.config.quorum(), self.arbiter());
        let Some(parting) = self.partings.get_mut(&key) else { return };
        let at = |vote: &HoldId| self.strays.get(vote).map(|stray| stray.server);
        // Without the arbiter's vote nobody gets the lock.
        let kept = parting.left.iter().any(|vote| arbiter.is_some() && at(vote) == arbiter);
        if !kept
            && all - parting.left.len() >= quorum
            && let Some((id, by)) = parting.request.take()
        {
            let outcome = parting.outcome;
            self.timers.remove(&(by, Due::Parting(key)));
            self.answer(id, Body::Release(outcome));
        }
        let Some(parting) = self.partings.get(&key) else { return };
        if parting.left.is_empty() {
            self.partings.remove(&key);
        }
    }

    /// The engine's release has waited for an answer for long.
    pub(crate) fn parting_due(&mut self, key: Key) {
        let Some(parting) = self.partings.get_mut(&key) else { return };
        if let Some((id, _)) = parting.request.take_if(|(_, by)| *by <= self.now) {
            self.fail(id, Failure::Unknown);
        }
    }
}
