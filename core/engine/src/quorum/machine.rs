//! The machine: the engine's requests on one side, the servers on the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::error::Error;
use crate::event::Event;
use crate::id::HoldId;
use crate::quorum::batch::Batch;
use crate::quorum::config::Config;
use crate::quorum::query::Query;
use crate::quorum::refusal;
use crate::quorum::seat::{Key, Seat};
use crate::quorum::server::{Aim, Server};
use crate::quorum::stray::{Parting, Stray};
use crate::quorum::wire::{Input, Output};
use crate::reply::{Body, Failure, Push, Reply};
use crate::request::{Op, Request, RequestId};
use crate::time::Time;
use crate::validity::Drift;

/// How long the other servers may take to say something, once enough are there at the beginning.
const FIRST_WORDS: Duration = Duration::from_millis(300);

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A hold wants to be looked at.
    Seat(Key),
    /// The engine's acquire of a hold must be answered.
    Answer(Key),
    /// The engine's beat must be answered.
    Batch(u64),
    /// The engine's release must be answered.
    Parting(Key),
    /// A question must be answered.
    Query(u64),
    /// A vote is to be given back once more.
    Stray(HoldId),
}

/// Keeps locks on most of several servers.
///
/// It reads no clock and does no I/O: each call is one mutation, after which
/// [`Machine::poll_output`] is drained and [`Machine::next_wake`] looked at.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) config: Config,
    random: ChaCha8Rng,
    pub(crate) now: Time,
    pub(crate) servers: Vec<Server>,
    pub(crate) seats: BTreeMap<Key, Seat>,
    /// Votes that are being given back.
    pub(crate) strays: BTreeMap<HoldId, Stray>,
    pub(crate) partings: BTreeMap<Key, Parting>,
    pub(crate) batches: BTreeMap<u64, Batch>,
    pub(crate) queries: BTreeMap<u64, Query>,
    pub(crate) timers: BTreeSet<(Time, Due)>,
    /// How many batches and queries there have been.
    minted: u64,
    /// The engine was told that it may ask.
    up: bool,
    /// What it was told that an operator must mend.
    told_wrong: Option<Error>,
    /// Until when the servers that have not said anything are waited for, before the engine may ask for the
    /// first time; then it never ends again.
    begins: Option<Time>,
    /// What [`Machine::elect`] last found: who has the queues, and whether enough servers give votes.
    elected: (Option<usize>, bool),
    /// What the engine takes for the store's clock, in microseconds at the machine's origin. It goes on by
    /// the machine's own, so that a server whose clock is behind, and comes up, does not set it back.
    epoch: u64,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// A client without connections. `seed` must be fresh from the operating system.
    ///
    /// # Errors
    /// When the list or an option is out of its range.
    pub fn new(config: Config, seed: [u8; 32]) -> Result<Machine, Error> {
        config.check()?;
        Ok(Machine {
            servers: config.servers.iter().map(|_| Server::new()).collect(),
            config,
            random: ChaCha8Rng::from_seed(seed),
            now: Time::ZERO,
            seats: BTreeMap::new(),
            strays: BTreeMap::new(),
            partings: BTreeMap::new(),
            batches: BTreeMap::new(),
            queries: BTreeMap::new(),
            timers: BTreeSet::new(),
            minted: 0,
            up: false,
            told_wrong: None,
            begins: None,
            elected: (None, false),
            epoch: 0,
            outputs: VecDeque::new(),
        })
    }

    /// Takes a request of the engine. [`Event::Reply`] answers it, once.
    pub fn request(&mut self, now: Time, request: Request) {
        self.now = self.now.max(now);
        let Request { id, op } = request;
        match op {
            Op::Acquire(ask) => self.acquire(id, ask),
            Op::Beat(beats) => self.beat(id, beats),
            Op::Release(release) => self.release(id, release),
            Op::Inspect(_) | Op::List { .. } | Op::Break(_) | Op::Time => self.ask_all(id, op),
            Op::Convert(_) | Op::Resize(_) => {
                self.fail(id, Failure::Refused(refusal::exclusive_alone()));
            }
            Op::Revoke(_) => {
                self.fail(id, Failure::Refused(crate::store::revoke_unsupported()));
            }
        }
    }

    /// Takes what happened at a server, named by its place in the list.
    pub fn handle(&mut self, now: Time, server: usize, input: Input) {
        self.now = self.now.max(now);
        if server >= self.servers.len() {
            return;
        }
        match input {
            Input::Up { now: store, wait } => {
                self.servers[server].came_up(self.now, store, wait);
                self.elect();
                self.resume_giving_back(server);
            }
            Input::Wait(wait) => {
                self.servers[server].votes_from = self.now + wait;
                self.elect();
            }
            Input::Event(Event::Down { reason }) => {
                self.servers[server].went(reason, None);
                self.elect();
            }
            Input::Event(Event::Misconfigured(error)) => {
                self.servers[server].went(error.message().to_owned(), Some(error));
                self.elect();
            }
            Input::Event(Event::Reply { request, result }) => self.heard(server, request, result),
            Input::Event(Event::Push(push)) => self.pushed(server, push),
            Input::Event(Event::Up { .. } | Event::Map(_) | Event::Detour(..)) => {}
        }
    }

    /// The next thing to do; call until `None` after each of the other calls.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine next wants [`Machine::wake`].
    pub fn next_wake(&self) -> Option<Time> {
        let timer = self.timers.first().map(|&(at, _)| at);
        let patience = self.config.request_timeout;
        let doubts = self.servers.iter().filter_map(|server| server.doubt_at(patience));
        let waits = |server: &&Server| server.is_usable() && !server.gives_votes(self.now);
        let old_enough = self.servers.iter().filter(waits).map(|server| server.votes_from);
        let begins = self.begins.filter(|at| !self.up && *at > self.now);
        let timer = timer.into_iter().chain(begins);
        timer.chain(doubts).chain(old_enough).filter(|at| *at < Time::MAX).min()
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Time) {
        self.now = self.now.max(now);
        for at in 0..self.servers.len() {
            let due = self.servers[at].doubt_at(self.config.request_timeout);
            if due.is_some_and(|due| due <= self.now)
                && let Some(doubt) = self.servers[at].doubt()
            {
                self.outputs.push_back(Output::Reconnect(at, doubt));
            }
        }
        self.elect();
        while let Some(&(at, due)) = self.timers.first() {
            if at > self.now {
                break;
            }
            self.timers.pop_first();
            match due {
                Due::Seat(key) => self.seat_due(key),
                Due::Answer(key) => self.answer_due(key),
                Due::Batch(id) => self.close_batch(id),
                Due::Parting(key) => self.parting_due(key),
                Due::Query(id) => self.query_due(id),
                Due::Stray(vote) => self.send_back(vote),
            }
        }
    }

    /// A request of ours has come back.
    fn heard(&mut self, server: usize, request: RequestId, result: Result<Reply, Failure>) {
        let from = &mut self.servers[server];
        let Some(flight) = from.land(request) else { return };
        let doubted = from.doubted;
        match &result {
            Ok(reply) => from.hear(self.now, request, Some(reply.now)),
            Err(Failure::Refused(_)) => from.hear(self.now, request, None),
            Err(Failure::Unknown | Failure::NotSent) => {}
        }
        let back = doubted && from.is_usable();
        match flight.aim {
            Aim::Vote { key, vote, lease } => {
                let result = result.map(|reply| match reply.body {
                    Body::Acquire(state) => Some(state),
                    _ => None,
                });
                self.vote_answered(server, key, vote, flight.sent, lease, result);
            }
            Aim::Beat(renewals) => self.renewals_answered(server, flight.sent, renewals, result),
            Aim::GiveBack(vote) => self.given_back(server, vote, result),
            Aim::Query(query) => self.query_answered(server, query, result),
        }
        if back {
            self.elect();
            self.resume_giving_back(server);
        }
    }

    fn pushed(&mut self, server: usize, push: Push) {
        let (Push::Granted { hold: vote, .. }
        | Push::Wanted { hold: vote, .. }
        | Push::Broken { hold: vote, .. }
        | Push::Changed { hold: vote, .. }) = push;
        let key = Key::of_vote(vote);
        let is_ours = self.seats.get(&key).is_some_and(|seat| seat.votes[server].id == vote);
        match push {
            Push::Granted { lock, .. } if !is_ours => self.give_back_unknown(server, lock, vote),
            Push::Granted { .. } => self.vote_called(server, key, true),
            Push::Changed { .. } if is_ours => self.vote_called(server, key, false),
            Push::Wanted { lock, .. } if is_ours => self.vote_wanted(key, lock),
            Push::Broken { lock, .. } if is_ours => self.vote_broken(server, key, lock),
            _ => {}
        }
    }

    /// Whom the seats that wait ask first, and whether the engine may ask at all, as of now.
    pub(crate) fn elect(&mut self) {
        self.tell_engine();
        let elected = (self.arbiter(), self.has_voters());
        if elected == self.elected {
            return;
        }
        self.elected = elected;
        for key in self.seats.keys().copied().collect::<Vec<_>>() {
            self.reelect(key);
        }
        for key in self.partings.keys().copied().collect::<Vec<_>>() {
            self.look_at_parting(key);
        }
    }

    fn tell_engine(&mut self) {
        let usable = self.servers.iter().filter(|server| server.is_usable()).count();
        let quorum = self.quorum().max(1);
        let wrong = self.servers.iter().filter_map(|server| server.wrong.as_ref());
        let reachable = self.servers.len() - wrong.clone().count();
        if usable >= quorum {
            if !self.up && self.has_begun() {
                (self.up, self.told_wrong) = (true, None);
                let usable = self.servers.iter().filter(|server| server.is_usable());
                let slowest = usable.map(|server| server.clock.estimate(self.now)).min();
                self.epoch = slowest.unwrap_or(0).saturating_sub(micros(self.now));
                self.event(Event::Up { now: self.store_time() });
            }
        } else if reachable < quorum
            && let Some(error) = wrong.clone().next().cloned()
        {
            // The engine fails whoever waits.
            self.up = false;
            if self.told_wrong.replace(error.clone()).as_ref() != Some(&error) {
                self.event(Event::Misconfigured(error));
            }
        } else if self.up {
            self.up = false;
            let reason = self.missing("answer", Server::is_usable);
            self.event(Event::Down { reason });
        }
    }

    /// Whether all servers have said something, or had the time to: who begins with the first that answer would
    /// have another arbiter than everybody else.
    fn has_begun(&mut self) -> bool {
        let by = *self.begins.get_or_insert(self.now + FIRST_WORDS);
        let silent = self.servers.iter().any(|server| !server.up && server.reason.is_none());
        if silent && self.now < by {
            return false;
        }
        self.begins = Some(Time::ZERO);
        true
    }

    /// How many servers do something that more are needed for, and why the others do not.
    pub(crate) fn missing(&self, what: &str, does: impl Fn(&Server) -> bool) -> String {
        let (all, quorum) = (self.servers.len(), self.config.quorum());
        let done = self.servers.iter().filter(|server| does(server)).count();
        let mut text = format!("{done} of {all} servers {what}, and it takes {quorum}");
        for (name, server) in self.config.servers.iter().zip(&self.servers) {
            if does(server) {
                continue;
            }
            let why = if server.is_usable() {
                let left = server.votes_from.since(self.now).as_secs() + 1;
                format!(
                    "its memory is new, and it gives no vote for {left} s, lest somebody hold a lock \
                     that it has forgotten"
                )
            } else if server.doubted {
                "it is silent".to_owned()
            } else {
                server.reason.clone().unwrap_or_else(|| "it is not connected".to_owned())
            };
            text.push_str(&format!("; {name}: {why}"));
        }
        text
    }

    /// The first server of the list that gives votes: it has the queues.
    pub(crate) fn arbiter(&self) -> Option<usize> {
        self.servers.iter().position(|server| server.gives_votes(self.now))
    }

    pub(crate) fn has_voters(&self) -> bool {
        let voters = self.servers.iter().filter(|server| server.gives_votes(self.now)).count();
        voters >= self.quorum()
    }

    /// How many votes a hold takes: of the list, never of those that answer.
    pub(crate) fn quorum(&self) -> usize {
        if planted!(MajorityOfReachable) {
            let usable = self.servers.iter().filter(|server| server.is_usable()).count();
            return (usable / 2 + 1).min(self.config.quorum());
        }
        self.config.quorum()
    }

    pub(crate) fn drift(&self) -> Drift {
        self.config.drift()
    }

    pub(crate) fn send(&mut self, server: usize, aim: Aim, op: Op) {
        let id = self.servers[server].send(self.now, aim);
        self.outputs.push_back(Output::Send(server, Request { id, op }));
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn answer(&mut self, request: RequestId, body: Body) {
        let result = Ok(Reply { now: self.store_time(), body });
        self.event(Event::Reply { request, result });
    }

    pub(crate) fn fail(&mut self, request: RequestId, failure: Failure) {
        self.event(Event::Reply { request, result: Err(failure) });
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up
    }

    fn store_time(&self) -> u64 {
        self.epoch.saturating_add(micros(self.now))
    }

    /// A vote's id, fresh.
    pub(crate) fn mint_vote(&mut self, key: Key) -> HoldId {
        key.vote(self.random.next_u64())
    }

    pub(crate) fn mint(&mut self) -> u64 {
        self.minted += 1;
        self.minted
    }

    /// Between half of a span and all of it.
    pub(crate) fn jittered(&mut self, span: Duration) -> Duration {
        let half = span / 2;
        let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX).max(1);
        half + Duration::from_nanos(self.random.next_u64() % nanos)
    }

    /// The hold wants to be looked at then, and not at any other time.
    pub(crate) fn arm(&mut self, key: Key, at: Option<Time>) {
        let Some(seat) = self.seats.get_mut(&key) else { return };
        if let Some(before) = seat.due {
            self.timers.remove(&(before, Due::Seat(key)));
        }
        seat.due = at;
        if let Some(at) = at {
            self.timers.insert((at, Due::Seat(key)));
        }
    }
}

fn micros(now: Time) -> u64 {
    now.as_nanos() / 1_000
}

#[cfg(feature = "plant")]
impl Machine {
    /// How many votes a hold or a waiter of this client has, and whether it is held; the simulator asks.
    pub fn votes(&self, lock: &crate::name::Name) -> Vec<(usize, bool)> {
        use crate::quorum::seat::Phase;
        let seats = self.seats.values().filter(|seat| seat.ask.lock == *lock);
        seats.map(|seat| (seat.given().count(), seat.phase == Phase::Held)).collect()
    }

    /// What is left in the machine, by kind: nothing when nobody holds or waits; the simulator asks.
    pub fn leftovers(&self) -> Vec<(&'static str, usize)> {
        let mut left = vec![
            ("seats", self.seats.len()),
            ("strays", self.strays.len()),
            ("partings", self.partings.len()),
            ("batches", self.batches.len()),
            ("queries", self.queries.len()),
            ("timers", self.timers.len()),
        ];
        left.retain(|(_, count)| *count > 0);
        left
    }
}
