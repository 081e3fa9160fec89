//! From an acquire to enough votes.

use std::time::Duration;

use crate::event::Event;
use crate::quorum::Machine;
use crate::quorum::machine::Due;
use crate::quorum::refusal;
use crate::quorum::seat::{Key, Phase, Seat};
use crate::quorum::server::Server;
use crate::quorum::vote::{At, Vote};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Standing, State};
use crate::request::{Acquire, Mode, RequestId};

/// The first pause of one who has the arbiter's vote and not enough of the others'.
const FIRST_PAUSE: Duration = Duration::from_millis(2);
/// And the longest.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How long one is away who left everything to others, at the least and at the most.
const AWAY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));
/// How often one whose arbiter is not the list's first asks for votes before it leaves all to others: they
/// may have another arbiter.
const STUBBORN: u32 = 5;

/// What a hold that is not held yet does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// An answer is awaited.
    Nothing,
    /// The arbiter has put it into its queue.
    Stand,
    /// The arbiter's turn has come to it.
    Gather,
    /// There are enough votes.
    Confirm,
    /// Too few servers know of its token.
    Show,
    /// Enough do.
    Deliver,
    /// There cannot be enough votes now.
    Retreat,
    /// The arbiter has nothing of it.
    Begin,
}

impl Machine {
    pub(crate) fn acquire(&mut self, id: RequestId, mut ask: Acquire) {
        if ask.mode != Mode::Exclusive || ask.owner.is_some() || ask.attach.is_some() {
            return self.fail(id, Failure::Refused(refusal::exclusive_alone()));
        }
        if ask.lease > self.config.max_lease {
            let refusal = refusal::too_long(ask.lease, self.config.max_lease);
            return self.fail(id, Failure::Refused(refusal));
        }
        let after = ask.after.take();
        if let Some(after) = &after {
            self.leave(None, after);
        }
        if !self.is_up() {
            return self.fail(id, Failure::NotSent);
        }
        let key = Key::of(ask.hold);
        if self.partings.contains_key(&key) {
            return self.answer(id, Body::Acquire(State::bare(Standing::Released)));
        }
        let by = self.now + self.patience();
        if let Some(seat) = self.seats.get(&key) {
            // Asked again, although it was answered: where it stands.
            let held = seat.phase == Phase::Held;
            let now = self.now;
            let state =
                if held { seat.state(self.drift(), self.quorum(), now) } else { seat.queued };
            return self.answer(id, Body::Acquire(state));
        }
        let mut votes = Vec::with_capacity(self.servers.len());
        for _ in 0..self.servers.len() {
            votes.push(Vote::new(self.mint_vote(key)));
        }
        let seat = Seat { modest: after.is_some(), ..Seat::new(ask, votes, Some((id, by))) };
        self.seats.insert(key, seat);
        self.timers.insert((by, Due::Answer(key)));
        self.begin(key);
    }

    /// How long an answer to the engine may take, who doubts us after a little more.
    pub(crate) fn patience(&self) -> Duration {
        self.config.request_timeout * 3 / 4
    }

    /// How long those beside the arbiter may take to answer.
    fn round(&self) -> Duration {
        self.config.request_timeout / 4
    }

    /// Asks all for their votes, the arbiter with a place in its queue.
    fn begin(&mut self, key: Key) {
        let Some(arbiter) = self.arbiter().filter(|_| self.has_voters()) else {
            return self.start_over(key);
        };
        let Some(seat) = self.seats.get_mut(&key) else { return };
        (seat.phase, seat.arbiter) = (Phase::Asking, arbiter);
        let modest = seat.modest;
        for server in 0..self.servers.len() {
            if self.servers[server].gives_votes(self.now) && (server == arbiter || !modest) {
                self.ask_vote(server, key);
            }
        }
        self.arm(key, Some(self.now + self.round()));
    }

    /// Goes on with a hold after something of it was heard.
    pub(crate) fn look(&mut self, key: Key) {
        let Some(seat) = self.seats.get(&key) else { return };
        if seat.phase == Phase::Held {
            return self.look_at_batch(key);
        }
        match self.next(seat) {
            Next::Nothing => {}
            Next::Stand => self.stand(key),
            Next::Gather => self.gather(key),
            Next::Confirm => self.confirm(key),
            Next::Show => self.show_token(key),
            Next::Deliver => self.deliver(key),
            Next::Retreat => self.retreat(key),
            Next::Begin => self.start_over(key),
        }
    }

    fn next(&self, seat: &Seat) -> Next {
        let vote = &seat.votes[seat.arbiter];
        match (seat.phase, vote.at) {
            (Phase::Held | Phase::Away, _) => Next::Nothing,
            (Phase::Confirming, _) => self.next_of_enough(seat),
            (Phase::Asking, _)
                if planted!(ArbiterPassed) && seat.given().count() >= self.quorum() =>
            {
                Next::Confirm
            }
            (Phase::Asking, At::Given) if seat.modest => Next::Gather,
            (Phase::Asking | Phase::Gathering, At::Given) => self.next_of_votes(seat),
            (Phase::Queued, At::Given) => Next::Gather,
            (Phase::Pausing, At::Given) => Next::Nothing,
            _ if vote.busy => Next::Nothing,
            (Phase::Queued, At::Queued) if !vote.called => Next::Nothing,
            (_, At::Queued) => Next::Stand,
            _ if seat.ask.wait.is_none() => Next::Retreat,
            _ => Next::Begin,
        }
    }

    fn next_of_votes(&self, seat: &Seat) -> Next {
        let given = seat.given().count();
        if given >= self.quorum() {
            Next::Confirm
        } else if given + self.awaited(seat) < self.quorum() {
            Next::Retreat
        } else {
            Next::Nothing
        }
    }

    fn next_of_enough(&self, seat: &Seat) -> Next {
        if seat.given().count() < self.quorum() {
            Next::Retreat
        } else if seat.end(self.quorum()) >= seat.token {
            Next::Deliver
        } else {
            Next::Show
        }
    }

    /// How many votes may come yet.
    fn awaited(&self, seat: &Seat) -> usize {
        let votes = seat.votes.iter().zip(&self.servers);
        votes
            .filter(|(vote, server)| vote.busy && vote.at == At::Asked && server.is_usable())
            .count()
    }

    /// It waits in the arbiter's queue, with nothing but its place there.
    fn stand(&mut self, key: Key) {
        self.give_back_others(key);
        let Some(seat) = self.seats.get_mut(&key) else { return };
        (seat.phase, seat.tries) = (Phase::Queued, 0);
        let (arbiter, called) = (seat.arbiter, seat.votes[seat.arbiter].called);
        // The first is told when the holder's vote ends there.
        let look = seat.queued.expires_in.take();
        self.say_queued(key);
        self.arm(key, look.map(|span| self.now + span + Duration::from_millis(1)));
        if called {
            self.show_vote(arbiter, key);
        }
    }

    /// The arbiter's turn has come to it: it is renewed there, and the others are asked.
    pub(crate) fn gather(&mut self, key: Key) {
        let now = self.now;
        let Some(seat) = self.seats.get_mut(&key) else { return };
        (seat.phase, seat.modest) = (Phase::Gathering, false);
        let (arbiter, third) = (seat.arbiter, seat.ask.lease / 3);
        let vote = &seat.votes[arbiter];
        if vote.at == At::Queued || now >= vote.sent + third {
            self.show_vote(arbiter, key);
        }
        for server in 0..self.servers.len() {
            let Some(seat) = self.seats.get(&key) else { return };
            let vote = &seat.votes[server];
            let wanted = !vote.busy && matches!(vote.at, At::Nowhere | At::Unclear);
            if server != arbiter && wanted && self.servers[server].gives_votes(now) {
                self.ask_vote(server, key);
            }
        }
        self.arm(key, Some(now + self.round()));
        self.look(key);
    }

    /// There are enough votes. The largest token is the hold's, and enough servers must know of it.
    fn confirm(&mut self, key: Key) {
        let Some(seat) = self.seats.get_mut(&key) else { return };
        seat.phase = Phase::Confirming;
        seat.token = seat.given().map(|vote| vote.token).max().unwrap_or(0);
        self.look(key);
    }

    /// Shows its token to the servers that have reserved none so high, once.
    fn show_token(&mut self, key: Key) {
        for server in 0..self.servers.len() {
            let Some(seat) = self.seats.get(&key) else { return };
            let vote = &seat.votes[server];
            let knows = vote.end >= seat.token || vote.shown >= seat.token;
            if vote.at == At::Given && !knows && self.servers[server].is_usable() {
                self.show_vote(server, key);
            }
        }
    }

    /// It is held. A waiter learns it by the answer to its next beat, from whose sending it counts.
    fn deliver(&mut self, key: Key) {
        let (now, quorum, drift) = (self.now, self.quorum(), self.drift());
        let Some(seat) = self.seats.get_mut(&key) else { return };
        if !seat.is_valid(now, quorum) {
            return self.retreat(key);
        }
        (seat.phase, seat.tries) = (Phase::Held, 0);
        seat.abandoned = seat.verdict();
        let (lock, hold) = (seat.ask.lock.clone(), seat.hold);
        self.arm(key, None);
        match self.take_pending(key) {
            Some((id, sent)) => {
                let Some(seat) = self.seats.get(&key) else { return };
                let state = seat.state(drift, quorum, sent);
                self.answer(id, Body::Acquire(state));
            }
            None => self.event(Event::Push(Push::Changed { lock, hold })),
        }
        self.look(key);
    }

    /// There are not enough votes now. A try is over. Who has the arbiter's vote, by the list's first,
    /// keeps that one alone and asks the others again: nobody else has it. By another arbiter somebody may
    /// be in the same place elsewhere, so everything is left to others in the end.
    fn retreat(&mut self, key: Key) {
        let enough = self.has_voters();
        let Some(seat) = self.seats.get_mut(&key) else { return };
        seat.token = 0;
        if seat.ask.wait.is_none() {
            return self.end_try(key);
        }
        let stays = seat.arbiter == 0 || seat.tries < STUBBORN;
        if !enough || !stays || seat.votes[seat.arbiter].at != At::Given {
            return self.start_over(key);
        }
        seat.phase = Phase::Pausing;
        let pause = FIRST_PAUSE.saturating_mul(1 << seat.tries.min(10)).min(LONGEST_PAUSE);
        seat.tries += 1;
        self.give_back_others(key);
        self.say_queued(key);
        let pause = self.jittered(pause);
        self.arm(key, Some(self.now + pause));
    }

    /// Leaves everything to others, and begins again in a moment.
    fn start_over(&mut self, key: Key) {
        let Some(seat) = self.seats.get(&key) else { return };
        if seat.ask.wait.is_none() {
            return self.end_try(key);
        }
        if !self.has_voters() && seat.pending.is_some() {
            // Nothing has begun: the engine asks again by itself.
            return self.end_try(key);
        }
        for server in 0..self.servers.len() {
            self.give_back(server, key);
        }
        let Some(seat) = self.seats.get_mut(&key) else { return };
        (seat.phase, seat.tries) = (Phase::Away, 0);
        self.say_queued(key);
        let (least, most) = AWAY;
        let pause = least + self.jittered(most - least);
        self.arm(key, Some(self.now + pause));
    }

    /// A try ends without the lock: others have it, or too few servers answer. Who waits is refused for now.
    fn end_try(&mut self, key: Key) {
        let quorum = self.config.quorum();
        let Some((id, _)) = self.take_pending(key) else { return };
        let Some(seat) = self.seats.get(&key) else { return };
        // Who gave its vote is not what it failed for.
        let (passed_over, waits) = (seat.votes[seat.arbiter].contended, seat.ask.wait.is_some());
        let said = |vote: &&Vote| vote.contended || vote.at == At::Given;
        let taken = seat.votes.iter().filter(said).count();
        let expires_in = seat.queued.expires_in;
        let refusals = seat.votes.iter().filter_map(|vote| vote.refused.clone());
        let lasting = |refusal: &Refusal| {
            matches!(refusal.kind, RefusalKind::Misconfigured | RefusalKind::Unsupported)
        };
        let lasting: Vec<Refusal> = refusals.clone().filter(lasting).collect();
        let any = refusals.map(|refusal| refusal.message).next();
        self.abandon_seat(key);
        if !waits && (taken >= quorum || passed_over) {
            let state = State { expires_in, ..State::bare(Standing::Contended) };
            return self.answer(id, Body::Acquire(state));
        }
        let refusal = match lasting.into_iter().next() {
            Some(refusal) if self.config.servers.len() - quorum < 1 + taken => refusal,
            _ => {
                let text =
                    self.missing("give votes", |server: &Server| server.gives_votes(self.now));
                refusal::later(match any {
                    Some(why) if self.has_voters() => format!("{text} ({why})"),
                    _ => text,
                })
            }
        };
        self.fail(id, Failure::Refused(refusal));
    }

    /// The pending acquire of a hold, and when it came.
    fn take_pending(&mut self, key: Key) -> Option<(RequestId, crate::time::Time)> {
        let patience = self.patience();
        let (id, by) = self.seats.get_mut(&key)?.pending.take()?;
        self.timers.remove(&(by, Due::Answer(key)));
        Some((id, by - patience))
    }

    /// The engine learns that its acquire waits.
    fn say_queued(&mut self, key: Key) {
        if let Some((id, _)) = self.take_pending(key)
            && let Some(seat) = self.seats.get(&key)
        {
            let state = seat.queued;
            self.answer(id, Body::Acquire(state));
        }
    }

    /// The engine's acquire has waited for an answer for long.
    pub(crate) fn answer_due(&mut self, key: Key) {
        let Some(seat) = self.seats.get(&key).filter(|seat| seat.pending.is_some()) else { return };
        if seat.ask.wait.is_none() {
            self.end_try(key);
        } else {
            self.say_queued(key);
        }
    }

    /// A hold wants to be looked at.
    pub(crate) fn seat_due(&mut self, key: Key) {
        let Some(seat) = self.seats.get_mut(&key) else { return };
        seat.due = None;
        let (arbiter, waits) = (seat.arbiter, seat.votes[seat.arbiter].busy);
        match seat.phase {
            Phase::Held => {}
            Phase::Queued => self.show_vote(arbiter, key),
            Phase::Asking if waits => self.arm(key, Some(self.now + self.round())),
            Phase::Asking | Phase::Gathering | Phase::Confirming => self.retreat(key),
            Phase::Pausing => self.gather(key),
            Phase::Away => self.begin(key),
        }
    }

    /// Another server is the arbiter now, or there are too few that give votes, or enough again.
    pub(crate) fn reelect(&mut self, key: Key) {
        let Some(seat) = self.seats.get(&key) else { return };
        if matches!(seat.phase, Phase::Held | Phase::Away | Phase::Confirming) {
            return;
        }
        if !self.has_voters() {
            self.start_over(key);
        } else if self.arbiter() != Some(seat.arbiter) {
            // It leaves the old queue, and keeps its ticket.
            for server in 0..self.servers.len() {
                self.give_back(server, key);
            }
            self.begin(key);
        }
    }
}
