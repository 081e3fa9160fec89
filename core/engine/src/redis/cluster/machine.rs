//! What follows from what servers say: which lanes there are, which slots each has, and when somebody is
//! asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::error::Error;
use crate::event::Event;
use crate::lane::LaneId;
use crate::name::Name;
use crate::redis::cluster::fetching::Fetching;
use crate::redis::cluster::map::{Change, Map};
use crate::redis::cluster::redirect::Redirected;
use crate::redis::cluster::topology::Topology;
use crate::redis::node::Node;
use crate::redis::session::NoSession;
use crate::time::Time;

/// Whom to ask first, and how the servers are reached.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Some of the servers.
    pub seeds: Vec<Node>,
    /// By which address a server is reached that the others see by another.
    pub map: BTreeMap<Node, Node>,
    /// How long one may take to say which slots are whose.
    pub limit: Duration,
}

/// What happened. [`LaneId::FIRST`] is no server: the others are one each.
#[derive(Debug)]
pub enum Input {
    /// A lane's server is connected. `now` is its time.
    Up(LaneId, u64),
    /// It is not, for this reason.
    Down(LaneId, String),
    /// It cannot be until an operator mends something.
    Misconfigured(LaneId, Error),
    /// A lane's server said that it is not the one to ask.
    Redirected(LaneId, Redirected),
    /// A lane's server refused as one does that serves no more, or it is silent.
    Suspect(LaneId),
    /// Whom [`Output::Fetch`] named has answered, or not.
    Fetched {
        /// It.
        node: Node,
        /// Its answer.
        answer: Result<Topology, NoSession>,
        /// Which lanes are silent now.
        silent: BTreeSet<LaneId>,
    },
}

/// What the host is to do, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Ask this server for its map.
    Fetch(Node),
    /// Connect this lane to its server, and again whenever the connection breaks.
    Open(LaneId, Node),
    /// Close it: what is under way there is lost, for this reason.
    Close(LaneId, String),
    /// Requests about these locks go to this lane with ASKING before them.
    Asking(LaneId, Vec<Name>),
    /// None do there any more.
    Settled(LaneId),
    /// For the engine, as [`LaneId::FIRST`]'s.
    Event(Event),
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    open: bool,
    up: bool,
    silent: bool,
}

/// Keeps the map of slots, without I/O: each call is one change, after which [`Machine::poll_output`] is
/// drained and [`Machine::next_wake`] looked at.
#[derive(Debug)]
pub struct Machine {
    seeds: Vec<Node>,
    random: ChaCha8Rng,
    map: Map,
    lanes: BTreeMap<LaneId, Lane>,
    /// Which lock's slot is moving, and where the lock is asked for meanwhile.
    detours: BTreeMap<Name, (u16, LaneId)>,
    fetching: Fetching,
    /// A map of a server that thinks that the cluster does not serve, while there is no better one.
    poor: Option<Topology>,
    /// Whether the engine was told that the cluster is there.
    up: bool,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// Begins to ask.
    pub fn new(now: Time, terms: Terms, seed: [u8; 32]) -> Machine {
        let mut machine = Machine {
            seeds: terms.seeds,
            random: ChaCha8Rng::from_seed(seed),
            map: Map::new(terms.map),
            lanes: BTreeMap::new(),
            detours: BTreeMap::new(),
            fetching: Fetching::new(now, terms.limit),
            poor: None,
            up: false,
            outputs: VecDeque::new(),
        };
        machine.wake(now);
        machine
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine next wants [`Machine::wake`].
    pub fn next_wake(&self) -> Time {
        self.fetching.next()
    }

    /// The servers that have slots.
    pub fn masters(&self) -> Vec<Node> {
        let lanes = self.map.serving();
        lanes.into_iter().filter_map(|lane| self.map.node(lane).cloned()).collect()
    }

    /// The time has come, or perhaps not yet.
    pub fn wake(&mut self, now: Time) {
        if let Some((node, why)) = self.fetching.late(now) {
            self.fetched(now, &node, Err(why));
        }
        self.fetch(now);
    }

    /// Takes what happened.
    pub fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Up(lane, store) => self.lane_up(lane, store),
            Input::Down(lane, reason) => {
                self.lane_down(lane, reason);
                self.suspect(now);
            }
            Input::Misconfigured(lane, error) => {
                self.lane(lane).up = false;
                if !self.up {
                    self.outputs.push_back(Output::Event(Event::Misconfigured(error)));
                }
                self.suspect(now);
            }
            Input::Redirected(lane, redirected) => self.redirected(now, lane, redirected),
            Input::Suspect(lane) => {
                self.lane(lane).silent = true;
                self.suspect(now);
            }
            Input::Fetched { node, answer, silent } => {
                for (lane, state) in &mut self.lanes {
                    state.silent = silent.contains(lane);
                }
                self.fetched(now, &node, answer);
            }
        }
        self.fetch(now);
    }

    fn lane(&mut self, lane: LaneId) -> &mut Lane {
        self.lanes.entry(lane).or_default()
    }

    fn jitter(&mut self) -> f64 {
        self.random.next_u64() as f64 / u64::MAX as f64
    }

    fn suspect(&mut self, now: Time) {
        let jitter = self.jitter();
        self.fetching.suspect(now, jitter);
    }

    // ----- lanes -----

    fn lane_up(&mut self, lane: LaneId, store: u64) {
        let state = self.lane(lane);
        if !state.open {
            return;
        }
        state.up = true;
        if !std::mem::replace(&mut self.up, true) {
            self.outputs.push_back(Output::Event(Event::Up { now: store }));
        }
    }

    fn lane_down(&mut self, lane: LaneId, reason: String) {
        self.lane(lane).up = false;
        if !self.lanes.values().any(|lane| lane.up) {
            self.up = false;
            self.outputs.push_back(Output::Event(Event::Down { reason }));
        }
    }

    fn open(&mut self, lane: LaneId) {
        let Some(node) = self.map.node(lane).cloned() else { return };
        if !std::mem::replace(&mut self.lane(lane).open, true) {
            self.outputs.push_back(Output::Open(lane, node));
        }
    }

    /// Lanes that have no slots any more are closed, however silent their servers: what is under way there
    /// is to be asked elsewhere.
    fn close_idle(&mut self, serving: &BTreeSet<LaneId>) {
        let mut idle: Vec<LaneId> = self.lanes.keys().copied().collect();
        idle.retain(|lane| self.lanes[lane].open && !serving.contains(lane));
        for lane in idle {
            self.lane(lane).open = false;
            let reason = match self.map.node(lane) {
                Some(node) => format!("{node} has no slots of the cluster any more"),
                None => continue,
            };
            self.outputs.push_back(Output::Close(lane, reason.clone()));
            self.lane_down(lane, reason);
        }
    }

    // ----- redirects -----

    fn redirected(&mut self, now: Time, from: LaneId, redirected: Redirected) {
        let Some(said) = self.map.node(from).cloned() else { return };
        let Redirected { locks, to, .. } = redirected;
        let lane = self.map.lane(&to.node(&said));
        self.open(lane);
        if to.ask {
            let insert = |lock: &Name| self.detours.insert(lock.clone(), (to.slot, lane));
            let before: BTreeSet<LaneId> =
                locks.iter().filter_map(insert).map(|(_, lane)| lane).collect();
            self.settle(before);
            self.outputs.push_back(Output::Asking(lane, locks.clone()));
            for lock in locks {
                self.outputs.push_back(Output::Event(Event::Detour(lock, lane)));
            }
            let jitter = self.jitter();
            return self.fetching.soon(now, jitter);
        }
        let ended = self.end_detours(|slot| slot == to.slot);
        if self.map.at(to.slot) != lane || !ended.is_empty() {
            self.map.patch(now, to.slot, lane);
            let places = to.slot..=to.slot;
            self.outputs.push_back(Output::Event(Event::Map(vec![(places, lane)])));
            self.suspect(now);
        }
    }

    /// Forgets where locks of some slots were asked for while these moved; gives the slots.
    fn end_detours(&mut self, of: impl Fn(u16) -> bool) -> BTreeSet<u16> {
        let before: BTreeSet<LaneId> = self.detours.values().map(|(_, lane)| *lane).collect();
        let mut slots = BTreeSet::new();
        self.detours.retain(|_, (slot, _)| {
            let ends = of(*slot);
            if ends {
                slots.insert(*slot);
            }
            !ends
        });
        self.settle(before);
        slots
    }

    /// Lanes of which some had detours, and perhaps have none any more.
    fn settle(&mut self, lanes: BTreeSet<LaneId>) {
        for lane in lanes {
            if !self.detours.values().any(|(_, other)| *other == lane) {
                self.outputs.push_back(Output::Settled(lane));
            }
        }
    }

    // ----- maps -----

    /// Whom to ask: those that are up and answer, and all others.
    fn whom(&self) -> [Vec<Node>; 2] {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.open);
        let (good, bad): (Vec<_>, Vec<_>) = lanes.partition(|(_, lane)| lane.up && !lane.silent);
        let nodes = |lanes: Vec<(&LaneId, &Lane)>| -> Vec<Node> {
            lanes.into_iter().filter_map(|(lane, _)| self.map.node(*lane).cloned()).collect()
        };
        let (good, mut rest) = (nodes(good), nodes(bad));
        rest.extend(self.seeds.iter().filter(|seed| !good.contains(seed)).cloned());
        [good, rest]
    }

    fn fetch(&mut self, now: Time) {
        let (whom, random) = (self.whom(), self.random.next_u64());
        let whom = [&whom[0][..], &whom[1]];
        if let Some(node) = self.fetching.begin(now, whom, random) {
            self.outputs.push_back(Output::Fetch(node));
        } else if self.fetching.is_exhausted(whom) {
            self.exhausted(now);
        }
    }

    /// Nobody has a map that can be believed.
    fn exhausted(&mut self, now: Time) {
        let jitter = self.jitter();
        let why = self.fetching.give_up(now, jitter);
        if self.map.serving() == [LaneId::FIRST]
            && let Some(poor) = self.poor.take()
        {
            // Whoever asks for a lock is to hear from the servers why it is not served.
            return self.take(now, &poor);
        }
        if !self.up {
            self.outputs.push_back(Output::Event(match why {
                NoSession::Later(reason) => Event::Down { reason },
                NoSession::Misconfigured(error) => Event::Misconfigured(error),
            }));
        }
    }

    fn fetched(&mut self, now: Time, node: &Node, answer: Result<Topology, NoSession>) {
        let is_map = answer.as_ref().is_ok_and(|map| map.sound && !map.ranges.is_empty());
        if !self.fetching.answered(node, is_map) {
            return;
        }
        let jitter = self.jitter();
        match answer {
            Ok(topology) if topology.ranges.is_empty() => {
                let why = format!("{node} knows of no server that has a slot");
                self.fetching.failed(now, NoSession::Later(why), jitter);
            }
            Ok(topology) if !topology.sound => {
                self.poor = Some(topology);
                let why = format!("{node} says that the cluster is down (cluster_state:fail)");
                self.fetching.failed(now, NoSession::Later(why), jitter);
            }
            Ok(topology) => {
                self.poor = None;
                self.take(now, &topology);
                let serving = self.map.serving();
                let served = |lane: &LaneId| {
                    self.lanes.get(lane).is_some_and(|lane| lane.up && !lane.silent)
                };
                self.fetching.done(now, serving.iter().all(served), jitter);
            }
            Err(why) => self.fetching.failed(now, why, jitter),
        }
    }

    fn take(&mut self, now: Time, topology: &Topology) {
        let mut changes = self.map.take(now, topology);
        // A server that slots move to may have none yet, and is asked again soon.
        let mut serving: BTreeSet<LaneId> = self.detours.values().map(|(_, lane)| *lane).collect();
        let ended = self.end_detours(|_| true);
        changes
            .extend(ended.into_iter().map(|slot| -> Change { (slot..=slot, self.map.at(slot)) }));
        serving.extend(self.map.serving());
        for lane in &serving {
            self.open(*lane);
        }
        if !changes.is_empty() {
            self.outputs.push_back(Output::Event(Event::Map(changes)));
        }
        self.close_idle(&serving);
    }
}
