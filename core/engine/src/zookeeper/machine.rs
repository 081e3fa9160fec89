//! The lock machine of one client: the engine's requests on one side, ZooKeeper on the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::error::Error;
use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::reply::{Body, Failure, Push, Reply, Standing, State};
use crate::request::{Mode, Op, Request, RequestId};
use crate::time::Time;
use crate::zookeeper::beat::Job;
use crate::zookeeper::lasting::Look;
use crate::zookeeper::name::path_of;
use crate::zookeeper::next::Last;
use crate::zookeeper::options::Options;
use crate::zookeeper::place::{Part, Place, Step};
use crate::zookeeper::query::{Query, Question};
use crate::zookeeper::refusal::misplaced;
use crate::zookeeper::session::Session;
use crate::zookeeper::stray::Stray;
use crate::zookeeper::wire::{Call, CallId, Input, Output, ZkError, ZkOp, ZkReply};

/// A czxid leaves so much room for tokens of local hand-offs: there is no number between two of
/// them.
pub(crate) const TOKENS: u64 = 1024;

/// What the result of a call is for.
#[derive(Clone, Debug)]
pub(crate) enum Aim {
    Place {
        hold: HoldId,
        serial: u32,
        part: Part,
    },
    /// The round trip through the leader that left at this time.
    Pace(Time),
    Beat {
        job: u64,
        index: usize,
        own: bool,
    },
    Lasting {
        hold: HoldId,
        look: Look,
    },
    Query {
        query: u64,
        question: Question,
    },
    Stray(HoldId),
    Litter(String),
    /// The writer's node at this path becomes a reader's; whether with a note.
    Turn {
        path: String,
        noted: bool,
    },
}

/// When something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Due {
    /// The next round trip through the leader.
    Pace,
    /// A hold has lasted long enough to be worth a note.
    Lasting(HoldId),
}

/// The lock machine of one client.
///
/// It reads no clock and does no I/O: each call is one mutation, after which
/// [`Machine::poll_output`] is drained and [`Machine::next_wake`] looked at.
#[derive(Clone, Debug)]
pub struct Machine {
    pub(crate) options: Options,
    pub(crate) client: ClientId,
    pub(crate) now: Time,
    /// The wall's clock minus the machine's, in microseconds.
    pub(crate) ahead: u64,
    pub(crate) session: Option<Session>,
    pub(crate) connected: bool,
    /// The engine was told that it may ask.
    pub(crate) up: bool,
    pub(crate) places: BTreeMap<HoldId, Place>,
    /// Who wants to hear of a node.
    pub(crate) watched: BTreeMap<String, BTreeSet<HoldId>>,
    pub(crate) strays: BTreeMap<HoldId, Stray>,
    /// How locks were last released here.
    pub(crate) lasts: BTreeMap<String, Last>,
    /// Nodes that are to be gone.
    pub(crate) litter: BTreeSet<String>,
    /// Locks whose node may not be written to.
    pub(crate) denied: BTreeSet<String>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Grants that wait for news of the session.
    pub(crate) stale: Vec<HoldId>,
    pub(crate) queries: BTreeMap<u64, Query>,
    pub(crate) timers: BTreeSet<(Time, Due)>,
    pub(crate) calls: BTreeMap<CallId, Aim>,
    pub(crate) next: u64,
    batch: Vec<Call>,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// A client without a session.
    ///
    /// # Errors
    /// When an option is out of its range.
    pub fn new(options: Options, client: ClientId) -> Result<Machine, Error> {
        options.check()?;
        Ok(Machine {
            options,
            client,
            now: Time::ZERO,
            ahead: 0,
            session: None,
            connected: false,
            up: false,
            places: BTreeMap::new(),
            watched: BTreeMap::new(),
            strays: BTreeMap::new(),
            lasts: BTreeMap::new(),
            litter: BTreeSet::new(),
            denied: BTreeSet::new(),
            jobs: BTreeMap::new(),
            stale: Vec::new(),
            queries: BTreeMap::new(),
            timers: BTreeSet::new(),
            calls: BTreeMap::new(),
            next: 0,
            batch: Vec::new(),
            outputs: VecDeque::new(),
        })
    }

    /// Takes a request of the engine. [`Event::Reply`] answers it, once.
    pub fn request(&mut self, now: Time, request: Request) {
        self.now = self.now.max(now);
        let Request { id, op } = request;
        if self.connected && self.session.is_some() {
            match op {
                Op::Acquire(acquire) => self.acquire(id, acquire),
                Op::Release(release) => self.release(id, release),
                Op::Beat(beats) => self.beat(id, beats),
                Op::Inspect(name) => self.inspect(id, name),
                Op::List { prefix, limit } => self.list(id, prefix, limit),
                Op::Convert(convert) => self.convert(id, convert),
                Op::Resize(resize) => self.resize(id, resize),
                Op::Break(what) => self.break_lock(id, what),
                Op::Revoke(name) => self.revoke(id, name),
                Op::Time => self.time(id),
            }
        } else {
            self.fail(id, Failure::NotSent);
        }
        self.flush();
    }

    /// Takes what happened at ZooKeeper's side.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.now = self.now.max(now);
        match input {
            Input::Connected { session, timeout, since, wall } => {
                self.new_session(session, timeout, since, wall);
            }
            Input::Reattached => self.reattached(),
            Input::Disconnected { reason } => self.disconnected(reason),
            Input::Unreachable { reason } => {
                self.connected = false;
                self.event(Event::Down { reason });
            }
            Input::Expired => self.expired(),
            Input::AuthFailed { reason } => self.auth_failed(reason),
            Input::Result { call, result } => self.ended(call, result),
            Input::Fired { path, what } => self.fired(&path, what),
        }
        self.flush();
    }

    /// Gives up the connection, and takes the session up again by another.
    pub fn reconnect(&mut self) {
        self.outputs.push_back(Output::Reconnect);
    }

    /// The next thing to do; call until `None` after each of the other calls.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine next wants [`Machine::wake`].
    pub fn next_wake(&self) -> Option<Time> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Whether anybody waits for word of a node. A watch may be asked for and be wanted no more by
    /// the time of its answer.
    pub fn is_watched(&self, path: &str) -> bool {
        self.watched.contains_key(path)
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&(at, due)) = self.timers.first() {
            if at > self.now {
                break;
            }
            self.timers.pop_first();
            match due {
                Due::Pace => self.pace(),
                Due::Lasting(hold) => self.lasts(hold),
            }
        }
        self.flush();
    }

    fn ended(&mut self, id: CallId, result: Result<ZkReply, ZkError>) {
        // Unknown: it belonged to a session that is over.
        let Some(aim) = self.calls.remove(&id) else { return };
        match aim {
            Aim::Place { hold, serial, part } => self.place_heard(hold, serial, part, result),
            Aim::Pace(sent) => self.paced(sent, result.is_ok()),
            Aim::Beat { job, index, own } => self.beat_heard(job, index, own, result),
            Aim::Lasting { hold, look } => self.lasting_heard(hold, look, result),
            Aim::Query { query, question } => self.query_heard(query, question, result),
            Aim::Stray(hold) => self.stray_heard(hold, result),
            Aim::Litter(path) => self.litter_gone(&path, &result),
            Aim::Turn { path, noted } => self.turn_heard(&path, noted, result),
        }
    }

    fn place_heard(
        &mut self,
        hold: HoldId,
        serial: u32,
        part: Part,
        result: Result<ZkReply, ZkError>,
    ) {
        let Some(place) = self.places.get_mut(&hold).filter(|place| place.serial == serial) else {
            return;
        };
        place.heard.push((part, result));
        place.pending -= 1;
        if place.pending == 0 {
            self.concluded(hold);
        }
    }

    /// A batch of calls for a place: the next step begins when all are answered.
    pub(crate) fn batch(&mut self, hold: HoldId, step: Step, parts: Vec<(Part, ZkOp)>) {
        let Some(place) = self.places.get_mut(&hold) else { return };
        place.step = step;
        place.serial = place.serial.wrapping_add(1);
        place.pending = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        place.heard.clear();
        place.again = false;
        let serial = place.serial;
        for (part, op) in parts {
            self.call(op, Aim::Place { hold, serial, part });
        }
    }

    pub(crate) fn call(&mut self, op: ZkOp, aim: Aim) {
        self.next += 1;
        let id = CallId(self.next);
        self.calls.insert(id, aim);
        self.batch.push(Call { id, op });
    }

    fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.outputs.push_back(Output::Calls(std::mem::take(&mut self.batch)));
        }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    pub(crate) fn push(&mut self, push: Push) {
        self.event(Event::Push(push));
    }

    pub(crate) fn answer(&mut self, request: RequestId, body: Body) {
        let result = Ok(Reply { now: self.store_time(), body });
        self.event(Event::Reply { request, result });
    }

    pub(crate) fn fail(&mut self, request: RequestId, failure: Failure) {
        self.event(Event::Reply { request, result: Err(failure) });
    }

    /// ZooKeeper tells no time: this machine's, which never goes back.
    pub(crate) fn store_time(&self) -> u64 {
        self.ahead.saturating_add(self.now.as_nanos() / 1_000)
    }

    pub(crate) fn at(&mut self, after: Duration, due: Due) {
        self.timers.insert((self.now + after, due));
    }

    /// The lock's path; refuses the request when it can have none.
    pub(crate) fn path(&mut self, request: RequestId, name: &Name) -> Option<String> {
        match path_of(&self.options.chroot, name) {
            Ok(path) => Some(path),
            Err(refusal) => {
                self.fail(request, misplaced(refusal.message));
                None
            }
        }
    }

    pub(crate) fn is_simple(&self) -> bool {
        self.options.recipe.is_simple()
    }

    /// What the engine is told of a hold that is granted, counted from `from`.
    pub(crate) fn granted(&self, place: &Place, from: Time) -> State {
        let first = place.node.as_ref().map(|node| node.token).or(place.shared);
        let token = place.given.or(first).unwrap_or(0);
        // Who reads is not handed on within a client.
        let end = if place.mode == Mode::Shared {
            token
        } else if planted!(ZkTokensCollide) {
            token + 4 * TOKENS
        } else {
            token + TOKENS - 1
        };
        State {
            token,
            end,
            lease: self.session.as_ref().map_or(Duration::ZERO, |session| session.lease(from)),
            abandoned: place.verdict,
            others_waiting: place.others,
            ..State::bare(Standing::Granted)
        }
    }

    pub(crate) fn queued(&self, place: &Place) -> State {
        let ticket = place.node.as_ref().map_or(0, |node| node.token);
        State { others_waiting: place.others, ticket, ..State::bare(Standing::Queued) }
    }

    /// Drops all that is known of a hold.
    pub(crate) fn forget(&mut self, hold: HoldId) -> Option<Place> {
        let place = self.places.remove(&hold)?;
        if let Some(node) = &place.node {
            self.unwatch(&node.path.clone(), hold);
        }
        if let Some(before) = &place.before {
            self.unwatch(&before.path.clone(), hold);
        }
        self.unwatch(&place.parent.clone(), hold);
        self.unwatch_permits(&place, hold);
        self.stale.retain(|other| *other != hold);
        Some(place)
    }

    pub(crate) fn watch(&mut self, path: String, hold: HoldId) {
        self.watched.entry(path).or_default().insert(hold);
    }

    pub(crate) fn unwatch(&mut self, path: &str, hold: HoldId) {
        if let Some(holds) = self.watched.get_mut(path) {
            holds.remove(&hold);
            if holds.is_empty() {
                self.watched.remove(path);
                self.outputs.push_back(Output::Unwatch { path: path.to_owned() });
            }
        }
    }
}
