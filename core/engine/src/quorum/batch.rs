//! Beats: holds are renewed at all servers that have a vote of them, and missing votes asked for again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::quorum::Machine;
use crate::quorum::ask::AT_ONCE;
use crate::quorum::machine::Due;
use crate::quorum::seat::{Key, Phase, Seat};
use crate::quorum::server::{Aim, Renewal};
use crate::quorum::vote::At;
use crate::reply::{Body, Failure, Refusal, RefusalKind, Reply, Standing, State};
use crate::request::{Beat, Op, RequestId};
use crate::time::Time;

/// The shortest time that a beat's answer may take.
const SHORTEST: Duration = Duration::from_millis(10);

/// What each of an engine's beats is answered with.
#[derive(Clone, Debug)]
enum Part {
    /// This, known at once.
    Said(State),
    /// Where the hold stands when enough servers have answered.
    Hold(Key),
}

/// A request of the engine's that renews holds.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    request: RequestId,
    sent: Time,
    parts: Vec<Part>,
    /// The holds of which too few votes are renewed, and some may yet be.
    open: BTreeSet<Key>,
    by: Time,
}

impl Machine {
    /// Renews holds, and shows that waiters live. It is answered when of each hold enough votes are
    /// renewed: a silent server costs nothing.
    pub(crate) fn beat(&mut self, request: RequestId, beats: Vec<Beat>) {
        let id = self.mint();
        let (now, quorum) = (self.now, self.quorum());
        let mut votes: BTreeMap<usize, (Vec<Beat>, Vec<Renewal>)> = BTreeMap::new();
        let (mut parts, mut open) = (Vec::with_capacity(beats.len()), BTreeSet::new());
        let mut patience = self.patience();
        for beat in beats {
            let key = Key::of(beat.hold);
            let Some(seat) = self.seats.get_mut(&key).filter(|seat| seat.hold == beat.hold) else {
                parts.push(Part::Said(State::bare(Standing::Gone)));
                continue;
            };
            seat.ask.lease = beat.lease.min(self.config.max_lease);
            seat.ask.local_waiters = beat.local_waiters;
            if let Some(wait) = &mut seat.ask.wait {
                wait.silence = beat.silence;
            }
            if seat.phase != Phase::Held {
                let (phase, arbiter) = (seat.phase, seat.arbiter);
                parts.push(Part::Said(seat.queued));
                if phase == Phase::Queued && self.servers[arbiter].is_usable() {
                    let renewal = self.renewal(arbiter, key);
                    push(&mut votes, arbiter, renewal);
                }
                continue;
            }
            seat.used = seat.used.max(beat.used);
            if !seat.is_valid(now, quorum) && !planted!(RepairRevives) {
                seat.lost = true;
                self.abandon_seat(key);
                parts.push(Part::Said(State::bare(Standing::Gone)));
                continue;
            }
            seat.batch = Some(id);
            patience = patience.min(seat.ask.lease / 6);
            for server in 0..self.servers.len() {
                let Some(vote) = self.seats.get(&key).map(|seat| &seat.votes[server]) else {
                    break;
                };
                let missing = matches!(vote.at, At::Nowhere | At::Unclear) && !vote.busy;
                if missing && self.servers[server].gives_votes(now) && !planted!(MissingVotesLeft) {
                    self.ask_vote(server, key);
                } else if self.servers[server].is_usable() {
                    let renewal = self.renewal(server, key);
                    push(&mut votes, server, renewal);
                }
            }
            parts.push(Part::Hold(key));
            open.insert(key);
        }
        for (server, (beats, renewals)) in votes {
            self.send(server, Aim::Beat(renewals), Op::Beat(beats));
        }
        let by = now + patience.max(SHORTEST);
        let keys: Vec<Key> = open.iter().copied().collect();
        self.batches.insert(id, Batch { request, sent: now, parts, open, by });
        self.timers.insert((by, Due::Batch(id)));
        if keys.is_empty() {
            return self.close_batch(id);
        }
        for key in keys {
            self.look_at_batch(key);
        }
    }

    /// Servers answered a part of a beat, or did not.
    pub(crate) fn renewals_answered(
        &mut self,
        server: usize,
        sent: Time,
        renewals: Vec<Renewal>,
        result: Result<Reply, Failure>,
    ) {
        let states = match result {
            Ok(Reply { body: Body::Beat(states), .. }) if states.len() == renewals.len() => states,
            Err(Failure::Refused(refusal)) => vec![Err(refusal); renewals.len()],
            _ => {
                for renewal in renewals {
                    self.vote_renewed(server, sent, renewal, None);
                }
                return;
            }
        };
        for (renewal, state) in renewals.into_iter().zip(states) {
            self.vote_renewed(server, sent, renewal, Some(state));
        }
    }

    fn vote_renewed(
        &mut self,
        server: usize,
        sent: Time,
        renewal: Renewal,
        state: Option<Result<State, Refusal>>,
    ) {
        let Renewal { key, vote, lease } = renewal;
        // What a server hands on whose memory is new may be somebody's whom it has forgotten.
        let votes = self.servers[server].gives_votes(self.now);
        let (now, quorum, drift) = (self.now, self.quorum(), self.drift());
        let has_queue = self.arbiter() == Some(server);
        let Some(seat) = self.seats.get_mut(&key).filter(|seat| seat.votes[server].id == vote)
        else {
            return self.stray_renewed(vote);
        };
        if seat.phase == Phase::Held && !seat.is_valid(now, quorum) && !planted!(RepairRevives) {
            seat.lost = true;
        }
        let mine = &mut seat.votes[server];
        mine.busy = false;
        // Unless it was answered it is as it was, as far as anybody knows.
        if let Some(Err(refusal)) = &state {
            let again = refusal.kind == RefusalKind::Again && mine.tries < AT_ONCE;
            mine.tries += u32::from(again);
            mine.called |= again;
        } else if let Some(Ok(state)) = state {
            mine.tries = 0;
            match state.standing {
                Standing::Granted
                    if mine.at == At::Queued && votes || state.token == mine.token =>
                {
                    mine.given(drift, sent, lease, &state);
                    // The others know of nobody who waits.
                    if has_queue {
                        seat.others = state.others_waiting;
                    }
                }
                Standing::Queued if mine.at == At::Queued => {
                    let look = state.expires_in;
                    seat.hear_queued(state);
                    if seat.phase == Phase::Queued {
                        seat.queued.expires_in = None;
                        let at = look.map(|span| now + span + Duration::from_millis(1));
                        self.arm(key, at);
                    }
                }
                // The server has made another one of a late copy.
                Standing::Granted | Standing::Queued => self.give_back(server, key),
                _ => {
                    mine.not_given();
                    self.forget_vote(server, key);
                }
            }
        }
        if self.seats.get(&key).is_some_and(|seat| seat.votes[server].called) {
            self.show_vote(server, key);
        }
        self.look(key);
    }

    /// Whether what is asked of a hold in a beat is known.
    pub(crate) fn look_at_batch(&mut self, key: Key) {
        let quorum = self.quorum();
        let Some(seat) = self.seats.get(&key) else { return };
        let Some(batch) = seat.batch.and_then(|id| self.batches.get_mut(&id)) else { return };
        let renewed = seat.given().filter(|vote| vote.sent >= batch.sent).count();
        let mut votes = seat.votes.iter().zip(&self.servers);
        let awaited = votes.any(|(vote, server)| vote.busy && server.is_usable());
        let enough = renewed >= quorum && !planted!(OneSilentAllWait);
        if !seat.lost && !enough && (awaited || planted!(OneSilentAllWait) && is_owed(seat)) {
            return;
        }
        batch.open.remove(&key);
        if batch.open.is_empty()
            && let Some(id) = seat.batch
        {
            self.close_batch(id);
        }
    }

    /// Answers a beat with what is known.
    pub(crate) fn close_batch(&mut self, id: u64) {
        let Some(batch) = self.batches.get(&id) else { return };
        if planted!(OneSilentAllWait) && !batch.open.is_empty() && self.owes(&batch.open) {
            return;
        }
        let Some(batch) = self.batches.remove(&id) else { return };
        self.timers.remove(&(batch.by, Due::Batch(id)));
        let states = batch.parts.into_iter().map(|part| match part {
            Part::Said(state) => Ok(state),
            Part::Hold(key) => Ok(self.standing(key, batch.sent)),
        });
        let states = states.collect();
        self.answer(batch.request, Body::Beat(states));
    }

    /// Only with a bug that was planted: whether any server owes an answer.
    fn owes(&self, keys: &BTreeSet<Key>) -> bool {
        keys.iter().filter_map(|key| self.seats.get(key)).any(is_owed)
    }

    /// Where a hold stands whose renewal left at `sent`. One that was without enough votes is over.
    fn standing(&mut self, key: Key, sent: Time) -> State {
        let (now, quorum, drift) = (self.now, self.quorum(), self.drift());
        let Some(seat) = self.seats.get_mut(&key) else { return State::bare(Standing::Gone) };
        seat.batch = None;
        if seat.is_valid(now, quorum) || planted!(RepairRevives) {
            return seat.state(drift, quorum, sent);
        }
        seat.lost = true;
        self.abandon_seat(key);
        State::bare(Standing::Gone)
    }
}

fn is_owed(seat: &Seat) -> bool {
    seat.votes.iter().any(|vote| vote.busy)
}

fn push(
    votes: &mut BTreeMap<usize, (Vec<Beat>, Vec<Renewal>)>,
    server: usize,
    renewal: Option<(Beat, Renewal)>,
) {
    if let Some((beat, renewal)) = renewal {
        let (beats, renewals) = votes.entry(server).or_default();
        beats.push(beat);
        renewals.push(renewal);
    }
}
