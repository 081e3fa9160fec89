//! A client of the cluster: the engine, the keeper of the map and the machines of each connection, as the
//! host in `core/backends/redis/src/cluster.rs` drives them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencelock_engine::event::{Effect, Event, Outcome};
use fencelock_engine::redis::cluster::{self, Input, Output, Redirected, Topology};
use fencelock_engine::redis::session::{
    self, Asked, Guarded as _, Hearing, NoSession, Protocol, Server,
};
use fencelock_engine::redis::{Codec, Node};
use fencelock_engine::reply::{Failure, Refusal, RefusalKind};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::{ClientId, Engine, LaneId, LossReason, Options, Time};

use crate::clock::{ClientClock, Instant};
use crate::cluster::lane::Lane;
use crate::dice::Dice;
use crate::store::client_number;

/// A caller's handle: the caller above, a serial number below.
pub(super) type Tag = u64;

/// What a client wants of the world, or has to tell.
pub(super) enum Wish {
    /// A connection to the server of this lane.
    Dial(LaneId, Node),
    /// Bytes on their way.
    Say(usize, Vec<u8>),
    /// A connection is closed; whether a session was up on it, which nobody had told to be broken.
    Hang(usize, bool),
    /// A server's map.
    Fetch(Node),
    /// A request left for this lane's server.
    Asked(LaneId, Op),
    /// A server sent a request elsewhere.
    SentOn,
    Ended(Tag, Outcome),
    Lost(Tag, LossReason),
}

/// One client.
pub(super) struct Client {
    id: ClientId,
    pub engine: Engine<Tag>,
    keeper: cluster::Machine,
    pub lanes: BTreeMap<LaneId, Lane>,
    clock: ClientClock,
    dice: Dice,
    /// What happened that the keeper is to be told.
    inputs: Vec<Input>,
    redirects: Vec<(LaneId, Redirected)>,
    wishes: Vec<Wish>,
    backoff: [Duration; 2],
}

/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(1);

impl Client {
    /// Knows the servers `seeds` to begin with.
    pub fn new(slot: usize, options: Options, seeds: Vec<Node>, dice: &mut Dice) -> Client {
        let id =
            ClientId::new(client_number(slot, dice.bits() >> 16), "sim").expect("a short label");
        let clock = ClientClock::new(dice.between(1, 1_000_000_000_000), 0);
        let mut engine = Engine::new(options, dice.seed()).expect("options in range");
        engine.set_places(cluster::place);
        let terms = cluster::Terms { seeds, map: BTreeMap::new(), limit: CONNECT };
        Client {
            id,
            engine,
            keeper: cluster::Machine::new(clock.read(0), terms, dice.seed()),
            lanes: BTreeMap::new(),
            clock,
            dice: Dice::new(dice.bits()),
            inputs: Vec::new(),
            redirects: Vec::new(),
            wishes: Vec::new(),
            backoff: [Duration::from_millis(10), Duration::from_millis(500)],
        }
    }

    /// What its clock reads.
    pub fn now(&self, at: Instant) -> Time {
        self.clock.read(at)
    }

    fn codec(&self) -> Codec {
        Codec::new(self.id.clone(), "fl:").expect("the default prefix").in_cluster()
    }

    /// When it wants to be woken.
    pub fn next_wake(&self) -> Instant {
        let sessions = self.lanes.values().filter_map(|lane| lane.session.as_ref()?.next_wake());
        let wakes = sessions.chain(self.engine.next_wake()).chain([self.keeper.next_wake()]);
        wakes.min().map_or(Instant::MAX, |at| self.clock.when(at))
    }

    pub fn wake(&mut self, at: Instant) {
        let now = self.now(at);
        self.keeper.wake(now);
        for session in self.lanes.values_mut().filter_map(|lane| lane.session.as_mut()) {
            session.wake(now);
        }
        if self.engine.next_wake().is_some_and(|due| due <= now) {
            self.engine.wake(now);
        }
    }

    /// Which lane a connection is of.
    fn lane_of(&self, conn: usize) -> Option<LaneId> {
        let is = |lane: &Lane| lane.main == Some(conn) || lane.making == Some(conn);
        self.lanes.iter().find(|(_, lane)| is(lane)).map(|(id, _)| *id)
    }

    /// A connection is made.
    pub fn dialled(&mut self, at: Instant, conn: usize) {
        self.tell_session(at, conn, session::Input::Dialled);
    }

    fn tell_session(&mut self, at: Instant, conn: usize, input: session::Input<'_>) {
        let now = self.now(at);
        let lane = self.lane_of(conn).and_then(|lane| self.lanes.get_mut(&lane));
        if let Some(session) = lane.and_then(|lane| lane.session.as_mut()) {
            session.handle(now, input);
        }
    }

    /// Bytes have come.
    pub fn received(&mut self, at: Instant, conn: usize, bytes: &[u8]) {
        let now = self.now(at);
        let Some(id) = self.lane_of(conn) else { return };
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if lane.making == Some(conn) {
            return self.tell_session(at, conn, session::Input::Received(bytes));
        }
        let Some(hearing) = &mut lane.hearing else { return };
        let end = hearing.receive(now, bytes, &lane.line).err();
        self.heard(now, id);
        let spent = || self.lanes.get(&id)?.hearing.as_ref()?.spent();
        if let Some(reason) = end.or_else(spent) {
            self.finish(now, id, reason, true);
            self.lost(now, id);
        }
    }

    /// A connection is refused, or broken.
    pub fn broken(&mut self, at: Instant, conn: usize) {
        let now = self.now(at);
        let Some(id) = self.lane_of(conn) else { return };
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        if lane.main == Some(conn) {
            lane.main = None;
            self.finish(now, id, "cut".to_owned(), false);
            return self.lost(now, id);
        }
        lane.making = None;
        if let Some(session) = &mut lane.session {
            session.handle(now, session::Input::Failed(NoSession::Later("cut".to_owned())));
        }
    }

    fn lost(&mut self, now: Time, id: LaneId) {
        if let Some(session) = self.lanes.get_mut(&id).and_then(|lane| lane.session.as_mut()) {
            session.handle(now, session::Input::Lost);
        }
    }

    /// A server has answered for its map, or will not.
    pub fn fetched(&mut self, at: Instant, node: Node, answer: Result<Topology, NoSession>) {
        let doubted = |(id, lane): (&LaneId, &Lane)| lane.is_doubted().then_some(*id);
        let silent: BTreeSet<LaneId> = self.lanes.iter().filter_map(doubted).collect();
        self.keeper.handle(self.now(at), Input::Fetched { node, answer, silent });
    }

    /// Does what its parts want of each other; gives what they want of the world.
    pub fn settle(&mut self, at: Instant) -> Vec<Wish> {
        let now = self.now(at);
        while self.step(now) {}
        std::mem::take(&mut self.wishes)
    }

    fn step(&mut self, now: Time) -> bool {
        if let Some(output) = self.keeper.poll_output() {
            self.obey_keeper(now, output);
            return true;
        }
        if !self.redirects.is_empty() {
            // The engine hears where a lock is before it asks again: the keeper's outputs come first.
            let (lane, Redirected { request, .. }) = self.redirects.remove(0);
            let message = "the slot is elsewhere".to_owned();
            let result = Err(Failure::Refused(Refusal { kind: RefusalKind::Again, message }));
            self.deliver(now, lane, vec![Event::Reply { request, result }]);
            return true;
        }
        if !self.inputs.is_empty() {
            let input = self.inputs.remove(0);
            if let Input::Redirected(lane, redirected) = &input {
                self.redirects.push((*lane, redirected.clone()));
                self.wishes.push(Wish::SentOn);
            }
            self.keeper.handle(now, input);
            return true;
        }
        let output =
            |(id, lane): (&LaneId, &mut Lane)| Some((*id, lane.session.as_mut()?.poll_output()?));
        if let Some((id, output)) = self.lanes.iter_mut().find_map(output) {
            self.obey_session(now, id, output);
            return true;
        }
        if let Some(effect) = self.engine.poll_effect() {
            self.obey_engine(now, effect);
            return true;
        }
        self.flush(now)
    }

    /// What a lane has for the engine, and for the keeper.
    fn heard(&mut self, now: Time, id: LaneId) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let Some(hearing) = &mut lane.hearing else { return };
        let events = std::mem::take(&mut hearing.events);
        let (redirected, suspect) = (hearing.redirected(), hearing.is_suspect());
        self.deliver(now, id, events);
        self.inputs.extend(redirected.into_iter().map(|it| Input::Redirected(id, it)));
        if suspect {
            self.inputs.push(Input::Suspect(id));
        }
    }

    fn deliver(&mut self, now: Time, id: LaneId, events: Vec<Event>) {
        if let Some(lane) = self.lanes.get(&id) {
            lane.line.with(|asked| asked.tells(&events));
        }
        for event in events {
            match &event {
                Event::Up { now } => self.inputs.push(Input::Up(id, *now)),
                Event::Down { reason } => self.inputs.push(Input::Down(id, reason.clone())),
                Event::Misconfigured(error) => {
                    self.inputs.push(Input::Misconfigured(id, error.clone()));
                }
                _ => {}
            }
            self.engine.handle_on(now, id, event);
        }
    }

    /// The session that is up ends. `ours` is whether that is the client's own doing.
    fn finish(&mut self, now: Time, id: LaneId, reason: String, ours: bool) {
        self.heard(now, id);
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let Some(mut hearing) = lane.hearing.take() else { return };
        lane.line.with(|asked| hearing.end(reason, asked));
        if let Some(conn) = lane.main.take() {
            self.wishes.push(Wish::Hang(conn, ours));
        }
        self.deliver(now, id, hearing.events);
    }

    fn obey_session(&mut self, now: Time, id: LaneId, output: session::Output) {
        use session::Output;
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        match output {
            Output::Login => {
                if let Some(session) = &mut lane.session {
                    session.handle(now, session::Input::Login(None));
                }
            }
            Output::Dial(..) => self.wishes.push(Wish::Dial(id, lane.node.clone())),
            Output::Say(_, bytes) => {
                if let Some(conn) = lane.making.filter(|_| !bytes.is_empty()) {
                    self.wishes.push(Wish::Say(conn, bytes));
                }
            }
            Output::Abandon => {
                if let Some(conn) = lane.making.take() {
                    self.wishes.push(Wish::Hang(conn, false));
                }
            }
            Output::GiveUp(reason) => self.finish(now, id, reason, true),
            Output::Up(session) => {
                let mut codec = session.codec;
                codec.set_wide(lane.line.with(|asked| asked.wide()));
                lane.line.with(|asked| asked.begin(session.inbox));
                lane.main = lane.making.take();
                lane.hearing = Some(Hearing::new(now, codec, session.main, None).in_cluster());
                self.heard(now, id);
            }
            Output::Event(event) => self.deliver(now, id, vec![event]),
            Output::Seek | Output::Note(_) => {}
        }
    }

    fn obey_keeper(&mut self, now: Time, output: Output) {
        match output {
            Output::Fetch(node) => self.wishes.push(Wish::Fetch(node)),
            Output::Open(id, node) => self.open(now, id, node),
            Output::Close(id, reason) => {
                let Some(lane) = self.lanes.get_mut(&id) else { return };
                let mut events = Vec::new();
                (lane.session, lane.hearing) = (None, None);
                let (main, making) = (lane.main.take(), lane.making.take());
                lane.line.with(|asked| asked.end(&mut events));
                events.push(Event::Down { reason });
                self.wishes.extend(making.map(|conn| Wish::Hang(conn, false)));
                self.wishes.extend(main.map(|conn| Wish::Hang(conn, true)));
                self.deliver(now, id, events);
            }
            Output::Asking(id, locks) => {
                if let Some(lane) = self.lanes.get(&id) {
                    lane.line.with(|asked| asked.add_asking(locks));
                }
            }
            Output::Settled(id) => {
                if let Some(lane) = self.lanes.get(&id) {
                    lane.line.with(Asked::end_asking);
                }
            }
            Output::Event(event) => self.engine.handle_on(now, LaneId::FIRST, event),
        }
    }

    fn open(&mut self, now: Time, id: LaneId, node: Node) {
        let terms = session::Terms {
            client: self.id.clone(),
            prefix: "fl:".to_owned(),
            db: 0,
            protocol: Protocol::Auto,
            server: Server::Fixed(node.to_string()),
            cluster: true,
            charter: None,
            sync: None,
            tls: false,
            connect_timeout: CONNECT,
            backoff_min: self.backoff[0],
            backoff_max: self.backoff[1],
        };
        let asked = Asked::new(self.codec());
        let lane = self.lanes.entry(id).or_insert_with(|| Lane::new(node, asked));
        lane.session = Some(session::Machine::new(now, terms, self.dice.seed()));
    }

    fn obey_engine(&mut self, now: Time, effect: Effect<Tag>) {
        match effect {
            Effect::Send(request) => self.send(now, request),
            Effect::Reconnect(doubt) => {
                let id = doubt.owed.lane();
                if let Some(lane) = self.lanes.get(&id) {
                    lane.line.with(|asked| asked.doubt(doubt));
                    self.inputs.push(Input::Suspect(id));
                }
            }
            Effect::Complete(tag, outcome) => self.wishes.push(Wish::Ended(tag, outcome)),
            Effect::Lost(tag, reason) => self.wishes.push(Wish::Lost(tag, reason)),
            Effect::Wanted(_) | Effect::Note(_) => {}
        }
    }

    fn send(&mut self, now: Time, request: Request) {
        let id = request.id.lane();
        let Some(lane) = self.lanes.get_mut(&id) else {
            let message = "no server of the cluster serves this now".to_owned();
            let result = Err(Failure::Refused(Refusal { kind: RefusalKind::Retry, message }));
            let request = request.id;
            return self.engine.handle_on(now, LaneId::FIRST, Event::Reply { request, result });
        };
        if lane.hearing.is_none() {
            return lane.refused.push(request.id);
        }
        self.wishes.push(Wish::Asked(id, request.op.clone()));
        lane.line.with(|asked| asked.ask(now, request));
    }

    /// Writes what was asked, and answers for what cannot be; true when that led to something.
    fn flush(&mut self, now: Time) -> bool {
        let mut refused: Vec<(LaneId, Vec<RequestId>)> = Vec::new();
        for (id, lane) in &mut self.lanes {
            if !lane.refused.is_empty() {
                refused.push((*id, std::mem::take(&mut lane.refused)));
            }
            if let Some(conn) = lane.main {
                let bytes = lane.line.with(|asked| match asked.outbox().is_empty() {
                    true => Vec::new(),
                    false => asked.outbox().take(),
                });
                if !bytes.is_empty() {
                    self.wishes.push(Wish::Say(conn, bytes));
                }
            }
            let doubted = lane.hearing.is_some() && lane.is_doubted();
            if let Some(session) = &mut lane.session
                && lane.hearing.is_some()
                && doubted != session.is_doubting()
            {
                session.handle(now, session::Input::Doubt(doubted));
                refused.push((*id, Vec::new()));
            }
        }
        let more = !refused.is_empty();
        for (id, requests) in refused {
            let failed = |request| Event::Reply { request, result: Err(Failure::NotSent) };
            self.deliver(now, id, requests.into_iter().map(failed).collect());
        }
        more
    }
}
