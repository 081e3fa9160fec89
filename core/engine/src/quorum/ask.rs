//! One vote: asked for, answered, shown again, and what its server says of it unasked.

use std::time::Duration;

use crate::event::Event;
use crate::id::HoldId;
use crate::name::Name;
use crate::quorum::Machine;
use crate::quorum::seat::{Key, Phase};
use crate::quorum::server::{Aim, Renewal};
use crate::quorum::vote::At;
use crate::reply::{Failure, Push, RefusalKind, Standing, State};
use crate::request::{Acquire, Beat, Op, Wait};
use crate::time::{Time, micros_up};

/// How late a try may take effect: half of what a server allows a request without a claim.
const TRY_SLACK: Duration = Duration::from_secs(3);
/// How often a vote is asked for anew at once that was late, or whose script was not loaded.
pub(crate) const AT_ONCE: u32 = 3;

impl Machine {
    /// Asks a server for its vote.
    pub(crate) fn ask_vote(&mut self, server: usize, key: Key) {
        let now = self.now;
        let Some(seat) = self.seats.get_mut(&key) else { return };
        let place = seat.ask.wait.filter(|_| seat.phase == Phase::Asking && seat.arbiter == server);
        let slack = place.map_or(self.config.claim.min(TRY_SLACK), |wait| wait.claim);
        let not_after = self.servers[server].clock.estimate(now).saturating_add(micros_up(slack));
        let vote = &mut seat.votes[server];
        (vote.at, vote.busy, vote.contended) = (At::Asked, true, false);
        (vote.not_after, vote.asked_at, vote.refused) = (not_after, now, None);
        let (vote, lease) = (vote.id, seat.ask.lease);
        let wait = place.map(|wait| Wait { ticket: seat.queued.ticket, ..wait });
        let ask = Acquire {
            floor: seat.ask.floor.max(seat.token).max(seat.used),
            wait,
            local_waiters: seat.ask.local_waiters,
            ..Acquire::new(seat.ask.lock.clone(), vote, lease, not_after)
        };
        self.send(server, Aim::Vote { key, vote, lease }, Op::Acquire(ask));
    }

    pub(crate) fn vote_answered(
        &mut self,
        server: usize,
        key: Key,
        vote: HoldId,
        sent: Time,
        lease: Duration,
        result: Result<Option<State>, Failure>,
    ) {
        let (drift, now, quorum) = (self.drift(), self.now, self.quorum());
        let has_queue = self.arbiter() == Some(server);
        let Some(seat) = self.seats.get_mut(&key).filter(|seat| seat.votes[server].id == vote)
        else {
            return self.stray_answered(server, vote, result);
        };
        // Asked while it was valid still: a vote that comes too late revives nothing.
        if seat.phase == Phase::Held && !seat.is_valid(now, quorum) && !planted!(RepairRevives) {
            seat.lost = true;
        }
        let mine = &mut seat.votes[server];
        mine.busy = false;
        let mut again = false;
        match result {
            Ok(Some(state)) => match state.standing {
                Standing::Granted => {
                    mine.given(drift, sent, lease, &state);
                    // The others know of nobody who waits.
                    if has_queue {
                        seat.others = state.others_waiting;
                    }
                }
                Standing::Queued => {
                    (mine.at, mine.tries) = (At::Queued, 0);
                    seat.hear_queued(state);
                }
                Standing::Late => {
                    mine.not_given();
                    again = true;
                }
                Standing::Released => {
                    // Spent: an operator's break came between.
                    mine.not_given();
                    self.forget_vote(server, key);
                }
                _ => {
                    mine.not_given();
                    mine.tries = 0;
                    mine.contended = state.standing == Standing::Contended;
                }
            },
            Ok(None) | Err(Failure::Unknown) => {
                (mine.at, mine.exposed) = (At::Unclear, mine.exposed.max(mine.not_after));
            }
            Err(Failure::NotSent) => mine.not_given(),
            Err(Failure::Refused(refusal)) => {
                mine.not_given();
                again = refusal.kind == RefusalKind::Again;
                mine.refused = Some(refusal);
            }
        }
        let usable = self.servers[server].is_usable();
        if let Some(seat) = self.seats.get_mut(&key)
            && again
            && usable
            && seat.votes[server].tries < AT_ONCE
        {
            seat.votes[server].tries += 1;
            self.ask_vote(server, key);
        }
        self.look(key);
    }

    /// The arbiter said something of a vote that waits there: that it is given, or that it should look.
    pub(crate) fn vote_called(&mut self, server: usize, key: Key, given: bool) {
        let Some(seat) = self.seats.get_mut(&key) else { return };
        let vote = &mut seat.votes[server];
        if vote.at == At::Given {
            return;
        }
        if vote.at != At::Queued || vote.busy {
            // It may have overtaken the answer that says 'queued'.
            vote.called = true;
            return;
        }
        if given && seat.phase == Phase::Queued {
            // The word alone is no vote: the answer to its renewal is. The others are asked at once.
            self.gather(key);
        } else {
            self.show_vote(server, key);
        }
    }

    pub(crate) fn vote_wanted(&mut self, key: Key, lock: Name) {
        let Some(seat) = self.seats.get_mut(&key) else { return };
        seat.others = seat.others.max(1);
        if seat.phase == Phase::Held {
            let hold = seat.hold;
            self.event(Event::Push(Push::Wanted { lock, hold }));
        }
    }

    /// An operator ended a vote.
    pub(crate) fn vote_broken(&mut self, server: usize, key: Key, lock: Name) {
        let (now, quorum) = (self.now, self.quorum());
        let Some(seat) = self.seats.get_mut(&key) else { return };
        seat.votes[server].not_given();
        self.forget_vote(server, key);
        let Some(seat) = self.seats.get_mut(&key) else { return };
        if seat.phase == Phase::Held && !seat.is_valid(now, quorum) {
            let hold = seat.hold;
            self.abandon_seat(key);
            self.event(Event::Push(Push::Broken { lock, hold }));
        }
        self.look(key);
    }

    /// Renews a vote, or shows that it waits.
    pub(crate) fn show_vote(&mut self, server: usize, key: Key) {
        let Some((beat, renewal)) = self.renewal(server, key) else { return };
        self.send(server, Aim::Beat(vec![renewal]), Op::Beat(vec![beat]));
    }

    /// A vote's part of a beat; `None` when it has none, or a request for it is out.
    pub(crate) fn renewal(&mut self, server: usize, key: Key) -> Option<(Beat, Renewal)> {
        let (now, drift) = (self.now, self.drift());
        let silence = self.config.claim;
        let seat = self.seats.get_mut(&key)?;
        let (lease, confirms) = (seat.ask.lease, seat.phase == Phase::Confirming);
        let used = if confirms { seat.token } else { seat.used };
        let vote = &mut seat.votes[server];
        if vote.busy || !matches!(vote.at, At::Queued | At::Given) {
            return None;
        }
        vote.busy = true;
        vote.called = false;
        let used = if vote.at == At::Given { used.max(vote.shown) } else { 0 };
        if used > vote.shown && used >= vote.token {
            // The server takes it as another holder's first word, and keeps the vote for so long and
            // no longer.
            vote.until = vote.until.min(drift.until(now, lease));
        }
        vote.shown = used;
        let beat = Beat {
            used,
            silence: seat.ask.wait.map_or(silence, |wait| wait.silence),
            local_waiters: seat.ask.local_waiters,
            ..Beat::new(seat.ask.lock.clone(), vote.id, lease)
        };
        Some((beat, Renewal { key, vote: vote.id, lease }))
    }
}
