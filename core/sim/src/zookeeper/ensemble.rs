//! The servers together: who leads, how the log spreads, which sessions have expired.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use crate::clock::{Instant, MS, US};
use crate::dice::Dice;
use crate::zookeeper::op::{Op, SessionId, Zxid};
use crate::zookeeper::server::{
    Conn, ConnId, Entry, Lead, Mail, Member, Origin, Role, Said, Sent, Server,
};
use crate::zookeeper::tracker::Tracker;
use crate::zookeeper::tree::{Change, Effect};

/// The numbers of an ensemble, times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many servers.
    pub servers: usize,
    /// The tick: sessions last from two of them to twenty.
    pub tick: u64,
    /// After how many ticks of silence leader and follower give each other up.
    pub sync_limit: u64,
    /// How often empty containers are looked for.
    pub reap: u64,
    /// The shortest and longest delay between two servers.
    pub latency: (u64, u64),
}

/// What the servers say to each other.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Message {
    /// To the leader: a write.
    Forward { session: SessionId, origin: Origin, op: Op },
    /// To the leader: a new session.
    Open { origin: Origin, timeout: u64 },
    /// To the leader: a session that came from elsewhere.
    Revalidate { session: SessionId, origin: Origin, timeout: u64 },
    /// To the leader: a sync.
    Sync { origin: Origin },
    /// To the leader: so much of the log is on disk.
    Ack { has: usize },
    /// To the leader: the answer to a ping, with the sessions heard from.
    Touch { sessions: Vec<SessionId> },
    /// To a follower: one more transaction.
    Propose { entry: Rc<Entry> },
    /// To a follower: so much of the log is committed.
    Commit { upto: usize },
    /// To a follower: a sync is answered.
    Synced { origin: Origin },
    /// To a follower: whether a session goes on.
    Revalidated { session: SessionId, origin: Origin, timeout: u64, valid: bool },
    /// To a follower: a sign of life.
    Ping,
}

/// What happens within the ensemble.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Event {
    /// A message arrives.
    Peer { from: usize, to: usize, term: u64, message: Message },
    /// Half a tick has passed for a server.
    Beat { server: usize, life: u64 },
    /// A leader's tick: sessions expire.
    Tick { server: usize, life: u64 },
    /// A leader looks for empty containers.
    Reap { server: usize, life: u64 },
    /// A server looks for a leader.
    Look { server: usize, life: u64 },
    /// A server's process starts.
    Start { server: usize, life: u64 },
    /// A follower finds the connection to its leader gone.
    Leave { server: usize, life: u64 },
}

/// What the ensemble needs of the world, and what it leaves there.
#[derive(Debug)]
pub struct Env<'a> {
    /// The time.
    pub now: Instant,
    /// Chance.
    pub dice: &'a mut Dice,
    /// What is to happen.
    pub later: Vec<(Instant, Event)>,
    /// What clients are told.
    pub mail: Mail,
}

impl Env<'_> {
    /// An environment at `now`.
    pub fn new(now: Instant, dice: &mut Dice) -> Env<'_> {
        Env { now, dice, later: Vec::new(), mail: Vec::new() }
    }
}

/// The servers.
#[derive(Debug)]
pub struct Ensemble {
    config: Config,
    servers: Vec<Server>,
    /// Pairs between which nothing passes.
    cut: BTreeSet<(usize, usize)>,
    /// What waits for a cut to end.
    stalled: VecDeque<Event>,
    /// Messages between two servers arrive in order.
    lanes: BTreeMap<(usize, usize), Instant>,
    /// How much later a server hears the others.
    lags: Vec<u64>,
    terms: u64,
    sessions: u64,
    /// What was committed and nobody has looked at yet.
    pub news: Vec<Rc<Entry>>,
    /// The last committed transaction.
    pub committed: Zxid,
    /// Where each server's ticks lie.
    phases: Vec<u64>,
    /// How often a leader was elected.
    pub elections: u64,
}

fn pair(one: usize, other: usize) -> (usize, usize) {
    (one.min(other), one.max(other))
}

impl Ensemble {
    /// Servers that have just been started.
    pub fn new(config: Config, env: &mut Env<'_>) -> Ensemble {
        let phases = (0..config.servers).map(|_| env.dice.below(config.tick)).collect();
        let mut ensemble = Ensemble {
            servers: (0..config.servers).map(|_| Server::default()).collect(),
            cut: BTreeSet::new(),
            stalled: VecDeque::new(),
            lags: vec![0; config.servers],
            lanes: BTreeMap::new(),
            terms: 0,
            sessions: 0,
            news: Vec::new(),
            committed: 0,
            phases,
            elections: 0,
            config,
        };
        for server in 0..ensemble.servers.len() {
            ensemble.look(server, env);
        }
        ensemble
    }

    /// The numbers.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The leader with a majority behind it, if there is one.
    pub fn leader(&self) -> Option<usize> {
        (0..self.servers.len()).find(|&it| self.has_quorum(it))
    }

    /// Whether anybody else has to answer for this server's tree: the newest that is committed.
    pub fn newest(&self) -> &Server {
        let newest = self.servers.iter().max_by_key(|it| it.tree.zxid);
        newest.expect("an ensemble has servers")
    }

    fn majority(&self) -> usize {
        self.servers.len() / 2 + 1
    }

    fn follows(&self, server: usize, leader: usize) -> bool {
        matches!(&self.servers[server].role, Role::Following { leader: it, .. } if *it == leader)
    }

    fn has_quorum(&self, leader: usize) -> bool {
        if !self.servers[leader].up || !matches!(self.servers[leader].role, Role::Leading(_)) {
            return false;
        }
        let followers = (0..self.servers.len()).filter(|&it| self.follows(it, leader)).count();
        followers + 1 >= self.majority()
    }

    fn reachable(&self, one: usize, other: usize) -> bool {
        one == other || !self.cut.contains(&pair(one, other))
    }

    /// Something happens.
    pub fn take(&mut self, event: Event, env: &mut Env<'_>) {
        let server = match &event {
            Event::Peer { to, .. } => *to,
            Event::Beat { server, .. }
            | Event::Tick { server, .. }
            | Event::Reap { server, .. }
            | Event::Look { server, .. }
            | Event::Start { server, .. }
            | Event::Leave { server, .. } => *server,
        };
        if env.now < self.servers[server].paused_until {
            env.later.push((self.servers[server].paused_until, event));
            return;
        }
        match event {
            Event::Peer { from, to, term, message } => {
                if !self.reachable(from, to) {
                    self.stalled.push_back(Event::Peer { from, to, term, message });
                    return;
                }
                if self.servers[to].up {
                    self.hear(from, to, term, message, env);
                }
            }
            Event::Beat { server, life } if self.servers[server].life == life => {
                self.beat(server, env);
            }
            Event::Tick { server, life } if self.servers[server].life == life => {
                self.tick(server, env);
            }
            Event::Reap { server, life } if self.servers[server].life == life => {
                self.reap(server, env);
            }
            Event::Look { server, life } if self.servers[server].life == life => {
                self.seek(server, env);
            }
            Event::Start { server, life } if self.servers[server].life == life => {
                self.servers[server].up = true;
                self.look(server, env);
            }
            Event::Leave { server, life } if self.servers[server].life == life => {
                self.look(server, env);
            }
            _ => {}
        }
    }

    fn send(&mut self, from: usize, to: usize, term: u64, message: Message, env: &mut Env<'_>) {
        let (low, high) = self.config.latency;
        let lane = self.lanes.entry((from, to)).or_default();
        *lane = (env.now + env.dice.between(low, high) + self.lags[to]).max(*lane);
        env.later.push((*lane, Event::Peer { from, to, term, message }));
    }

    /// To the leader of a follower, or straight to it when the server leads.
    fn tell_leader(&mut self, server: usize, message: Message, env: &mut Env<'_>) {
        match &self.servers[server].role {
            Role::Following { leader, term, .. } => {
                let (leader, term) = (*leader, *term);
                self.send(server, leader, term, message, env);
            }
            Role::Leading(_) => self.lead(server, server, message, env),
            Role::Looking => {}
        }
    }

    fn tell_follower(&mut self, leader: usize, server: usize, message: Message, env: &mut Env<'_>) {
        if leader == server {
            self.follow(leader, message, env);
        } else if let Role::Leading(lead) = &self.servers[leader].role
            && let Some(member) = lead.members.get(&server)
        {
            let term = member.term;
            self.send(leader, server, term, message, env);
        }
    }

    fn hear(&mut self, from: usize, to: usize, term: u64, message: Message, env: &mut Env<'_>) {
        let now = env.now;
        match &mut self.servers[to].role {
            Role::Following { leader, term: mine, heard } if *leader == from && *mine == term => {
                *heard = now;
                self.follow(to, message, env);
            }
            Role::Leading(lead) => {
                let Some(member) = lead.members.get_mut(&from) else { return };
                if member.term == term {
                    member.heard = now;
                    self.lead(to, from, message, env);
                }
            }
            _ => {}
        }
    }

    /// A leader takes a message, perhaps its own.
    fn lead(&mut self, me: usize, from: usize, message: Message, env: &mut Env<'_>) {
        let Role::Leading(lead) = &mut self.servers[me].role else { return };
        match message {
            Message::Forward { session, origin, op } => match lead.tracker.check(session, from) {
                Ok(()) => {
                    if op == Op::Close {
                        lead.tracker.close(session);
                    }
                    self.propose(me, session, Some(origin), &op, env);
                }
                Err(code) => {
                    self.log(me, session, Some(origin), Effect::Error(code.into()), env);
                }
            },
            Message::Open { origin, timeout } => {
                self.sessions += 1;
                let session = (origin.server as u64 + 1) << 56 | self.sessions;
                lead.tracker.open(env.now, session, timeout, Some(from));
                let changes = vec![Change::OpenSession { timeout }];
                lead.ahead.sessions.insert(session, timeout);
                self.log(me, session, Some(origin), Effect::Changes { changes, many: false }, env);
            }
            Message::Revalidate { session, origin, timeout } => {
                let valid = lead.tracker.touch(env.now, session);
                if valid {
                    lead.tracker.own(session, from);
                }
                let answer = Message::Revalidated { session, origin, timeout, valid };
                self.tell_follower(me, from, answer, env);
            }
            Message::Sync { origin } => {
                let upto = self.servers[me].log.len();
                let Role::Leading(lead) = &mut self.servers[me].role else { return };
                lead.syncs.push((upto, origin));
                self.answer_syncs(me, env);
            }
            Message::Ack { has } => {
                if let Some(member) = lead.members.get_mut(&from) {
                    member.has = member.has.max(has);
                }
                self.advance(me, env);
            }
            Message::Touch { sessions } => {
                for session in sessions {
                    lead.tracker.touch(env.now, session);
                }
            }
            _ => {}
        }
    }

    /// A server takes a message of its leader.
    fn follow(&mut self, me: usize, message: Message, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        match message {
            Message::Propose { entry } => {
                server.log.push(entry);
                let has = server.log.len();
                self.tell_leader(me, Message::Ack { has }, env);
            }
            Message::Commit { upto } => server.commit(me, upto, &mut env.mail),
            Message::Synced { origin } => {
                let done = Ok(crate::zookeeper::op::Answer::Done);
                server.resolve(origin.conn, origin.xid, done, &mut env.mail);
            }
            Message::Revalidated { session, origin, timeout, valid } => {
                if !server.conns.contains_key(&origin.conn) {
                    return;
                }
                if !valid {
                    server.drop_conn(origin.conn);
                    env.mail.push((origin.conn, Said::Connected { session: 0, timeout: 0 }));
                    env.mail.push((origin.conn, Said::Closed));
                    return;
                }
                let stale = server.conns.iter().find(|(_, it)| it.session == session);
                if let Some(stale) = stale.map(|(conn, _)| *conn) {
                    server.drop_conn(stale);
                    env.mail.push((stale, Said::Closed));
                }
                server.conns.insert(origin.conn, Conn::of(session));
                server.touched.insert(session);
                env.mail.push((origin.conn, Said::Connected { session, timeout }));
            }
            Message::Ping => {
                let sessions = std::mem::take(&mut server.touched).into_iter().collect();
                self.tell_leader(me, Message::Touch { sessions }, env);
            }
            _ => {}
        }
    }

    /// The leader decides a write, and proposes what it came to.
    fn propose(
        &mut self,
        me: usize,
        session: SessionId,
        origin: Option<Origin>,
        op: &Op,
        env: &mut Env<'_>,
    ) {
        let Role::Leading(lead) = &mut self.servers[me].role else { return };
        let zxid = lead.epoch << 32 | (lead.counter + 1);
        let effect = lead.ahead.prepare(session, zxid, op);
        self.log(me, session, origin, effect, env);
    }

    fn log(
        &mut self,
        me: usize,
        session: SessionId,
        origin: Option<Origin>,
        effect: Effect,
        env: &mut Env<'_>,
    ) {
        let server = &mut self.servers[me];
        let Role::Leading(lead) = &mut server.role else { return };
        lead.counter += 1;
        let zxid = lead.epoch << 32 | lead.counter;
        lead.ahead.zxid = zxid;
        let entry = Rc::new(Entry { zxid, session, origin, effect });
        server.log.push(Rc::clone(&entry));
        let followers: Vec<usize> = lead.members.keys().copied().collect();
        for follower in followers {
            let message = Message::Propose { entry: Rc::clone(&entry) };
            self.tell_follower(me, follower, message, env);
        }
        self.advance(me, env);
    }

    /// Commits what a majority has.
    fn advance(&mut self, me: usize, env: &mut Env<'_>) {
        let majority = self.majority();
        let server = &mut self.servers[me];
        let Role::Leading(lead) = &server.role else { return };
        let mut has: Vec<usize> = lead.members.values().map(|it| it.has).collect();
        has.push(server.log.len());
        has.sort_unstable_by(|a, b| b.cmp(a));
        let Some(&upto) = has.get(majority - 1) else { return };
        if upto <= server.applied {
            return;
        }
        self.settle(me, upto, env);
        let Role::Leading(lead) = &self.servers[me].role else { return };
        let followers: Vec<usize> = lead.members.keys().copied().collect();
        for follower in followers {
            self.tell_follower(me, follower, Message::Commit { upto }, env);
        }
        self.answer_syncs(me, env);
    }

    /// The leader applies what is committed.
    fn settle(&mut self, me: usize, upto: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        for entry in &server.log[server.applied..upto] {
            if entry.zxid > self.committed {
                self.committed = entry.zxid;
                self.news.push(Rc::clone(entry));
            }
        }
        let from = server.applied;
        server.commit(me, upto, &mut env.mail);
        let Server { role: Role::Leading(lead), log, applied, tree, .. } = server else { return };
        for entry in &log[from..*applied] {
            if let Effect::Changes { changes, .. } = &entry.effect
                && matches!(changes.first(), Some(Change::CloseSession { .. }))
            {
                lead.tracker.forget(entry.session);
            }
        }
        // A counter that wrapped falls back when its change is committed, as on the real server.
        if *applied == log.len() && lead.ahead.wrapped {
            lead.ahead = tree.clone();
        }
    }

    fn answer_syncs(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        let applied = server.applied;
        let Role::Leading(lead) = &mut server.role else { return };
        let (ready, rest) =
            std::mem::take(&mut lead.syncs).into_iter().partition(|(upto, _)| *upto <= applied);
        lead.syncs = rest;
        for (_, origin) in ready {
            self.tell_follower(me, origin.server, Message::Synced { origin }, env);
        }
    }

    /// Every half tick: pings, and a look whether the other side is still there.
    fn beat(&mut self, me: usize, env: &mut Env<'_>) {
        let patience = self.config.tick * self.config.sync_limit;
        let majority = self.majority();
        let server = &mut self.servers[me];
        let gone = match &mut server.role {
            Role::Looking => return,
            Role::Following { heard, .. } => env.now > *heard + patience,
            Role::Leading(lead) => {
                lead.members.retain(|_, it| env.now <= it.heard + patience);
                lead.members.len() + 1 < majority
            }
        };
        if gone {
            return self.look(me, env);
        }
        if let Role::Leading(lead) = &server.role {
            let followers: Vec<usize> = lead.members.keys().copied().collect();
            for follower in followers {
                self.tell_follower(me, follower, Message::Ping, env);
            }
        }
        let life = self.servers[me].life;
        env.later.push((env.now + self.config.tick / 2, Event::Beat { server: me, life }));
    }

    fn tick(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        let life = server.life;
        let Role::Leading(lead) = &mut server.role else { return };
        let over = lead.tracker.expire(env.now);
        env.later.push((lead.tracker.next_tick(env.now), Event::Tick { server: me, life }));
        for session in over {
            self.propose(me, session, None, &Op::Close, env);
        }
    }

    fn reap(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &self.servers[me];
        let life = server.life;
        let empty = server.tree.empty_containers();
        for path in empty {
            self.propose(me, 0, None, &Op::Reap { path }, env);
        }
        let at = env.now + self.config.reap;
        env.later.push((at, Event::Reap { server: me, life }));
    }

    /// Leaves whatever it was in, and looks for a leader. Clients are sent away.
    fn look(&mut self, me: usize, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        server.drop_clients(&mut env.mail);
        server.role = Role::Looking;
        server.life += 1;
        let life = server.life;
        let after = env.dice.between(self.config.tick / 8, self.config.tick / 2);
        env.later.push((env.now + after, Event::Look { server: me, life }));
    }

    /// Joins a leader, or makes one.
    fn seek(&mut self, me: usize, env: &mut Env<'_>) {
        let there = |it: usize| {
            self.servers[it].up
                && env.now >= self.servers[it].paused_until
                && self.reachable(me, it)
        };
        let leads = |it: &usize| {
            *it != me
                && there(*it)
                && self.has_quorum(*it)
                && match &self.servers[*it].role {
                    Role::Leading(lead) => lead.epoch >= self.servers[me].epoch,
                    _ => false,
                }
        };
        if let Some(leader) = (0..self.servers.len()).find(leads) {
            self.join(leader, me, env);
            let life = self.servers[me].life;
            env.later.push((env.now + self.config.tick / 2, Event::Beat { server: me, life }));
            return;
        }
        let looking = |it: &usize| there(*it) && matches!(self.servers[*it].role, Role::Looking);
        let voters: Vec<usize> = (0..self.servers.len()).filter(looking).collect();
        let whole = voters.iter().all(|&a| voters.iter().all(|&b| self.reachable(a, b)));
        if voters.len() < self.majority() || !whole {
            let life = self.servers[me].life;
            let after = env.dice.between(self.config.tick / 8, self.config.tick / 2);
            env.later.push((env.now + after, Event::Look { server: me, life }));
            return;
        }
        self.elect(&voters, env);
    }

    fn elect(&mut self, voters: &[usize], env: &mut Env<'_>) {
        let last = |it: usize| self.servers[it].log.last().map_or(0, |entry| entry.zxid);
        let leader = voters.iter().copied().max_by_key(|&it| (last(it), it)).unwrap_or(0);
        let epoch = voters.iter().map(|&it| self.servers[it].epoch).max().unwrap_or(0) + 1;
        self.elections += 1;
        for &voter in voters {
            self.servers[voter].epoch = epoch;
            self.servers[voter].life += 1;
        }
        let upto = self.servers[leader].log.len();
        // What the new leader has is committed: a majority takes it over before anybody is served.
        self.settle(leader, upto, env);
        let (tick, phase) = (self.config.tick, self.phases[leader]);
        let server = &mut self.servers[leader];
        let tracker = Tracker::new(env.now, tick, phase, &server.tree.sessions);
        let next = tracker.next_tick(env.now);
        server.role = Role::Leading(Box::new(Lead {
            epoch,
            counter: 0,
            ahead: server.tree.clone(),
            tracker,
            members: BTreeMap::new(),
            syncs: Vec::new(),
        }));
        for &voter in voters {
            if voter != leader {
                self.join(leader, voter, env);
            }
            let life = self.servers[voter].life;
            let at = env.now + self.config.tick / 2;
            env.later.push((at, Event::Beat { server: voter, life }));
        }
        let life = self.servers[leader].life;
        env.later.push((next, Event::Tick { server: leader, life }));
        let at = env.now + self.config.reap;
        env.later.push((at, Event::Reap { server: leader, life }));
    }

    /// A server follows from now on, with the leader's log.
    fn join(&mut self, leader: usize, me: usize, env: &mut Env<'_>) {
        self.terms += 1;
        let term = self.terms;
        let server = &self.servers[leader];
        let Role::Leading(lead) = &server.role else { return };
        let (epoch, log, upto) = (lead.epoch, server.log.clone(), server.applied);
        let has = log.len();
        let server = &mut self.servers[me];
        server.epoch = epoch;
        server.life += 1;
        server.log = log;
        server.role = Role::Following { leader, term, heard: env.now };
        server.commit(me, upto, &mut env.mail);
        if let Role::Leading(lead) = &mut self.servers[leader].role {
            lead.members.insert(me, Member { term, has, heard: env.now });
        }
        self.advance(leader, env);
    }

    /// A message of a client arrives at a server.
    pub fn client(&mut self, conn: ConnId, me: usize, sent: Sent, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        match sent {
            Sent::Connect { session, timeout, seen } => {
                let serving = server.up && !matches!(server.role, Role::Looking);
                if !serving || seen > server.tree.zxid {
                    env.mail.push((conn, Said::Closed));
                    return;
                }
                server.conns.insert(conn, Conn::default());
                let origin = Origin { server: me, conn, xid: 0 };
                let tick = self.config.tick;
                let timeout = timeout.clamp(2 * tick, 20 * tick);
                let message = match session {
                    0 => Message::Open { origin, timeout },
                    session => Message::Revalidate { session, origin, timeout },
                };
                self.tell_leader(me, message, env);
            }
            Sent::Request { xid, op } => {
                let Some(session) = server.conns.get(&conn).map(|it| it.session) else { return };
                self.touch(me, session, env.now);
                let waits = op.is_write() || op == Op::Sync;
                self.servers[me].queue(conn, xid, op.clone(), waits, &mut env.mail);
                let origin = Origin { server: me, conn, xid };
                if op == Op::Sync {
                    self.tell_leader(me, Message::Sync { origin }, env);
                } else if waits {
                    self.tell_leader(me, Message::Forward { session, origin, op }, env);
                }
            }
            Sent::Ping => {
                let Some(session) = server.conns.get(&conn).map(|it| it.session) else { return };
                self.touch(me, session, env.now);
                self.servers[me].queue_ping(conn, &mut env.mail);
            }
        }
    }

    fn touch(&mut self, me: usize, session: SessionId, now: Instant) {
        let server = &mut self.servers[me];
        match &mut server.role {
            Role::Leading(lead) => {
                lead.tracker.touch(now, session);
            }
            _ => {
                server.touched.insert(session);
            }
        }
    }

    /// A client's connection ended.
    pub fn hang_up(&mut self, conn: ConnId, server: usize) {
        self.servers[server].drop_conn(conn);
    }

    /// Kills a server; it starts again after `span`.
    pub fn crash(&mut self, server: usize, span: u64, env: &mut Env<'_>) {
        let it = &mut self.servers[server];
        it.drop_clients(&mut env.mail);
        it.up = false;
        it.role = Role::Looking;
        it.life += 1;
        let life = it.life;
        env.later.push((env.now + span, Event::Start { server, life }));
        // Its peers notice soon: their connections to it are gone.
        for other in 0..self.servers.len() {
            if let Role::Leading(lead) = &mut self.servers[other].role {
                lead.members.remove(&server);
            }
            if self.follows(other, server) && self.reachable(other, server) {
                let life = self.servers[other].life;
                let at = env.now + env.dice.between(10 * US, 5 * MS);
                env.later.push((at, Event::Leave { server: other, life }));
            }
        }
    }

    /// A server hears the others so much later from now on.
    pub fn lag(&mut self, server: usize, by: u64) {
        self.lags[server] = by;
    }

    /// Makes a container on every server before the first client comes, with a counter as if so
    /// many children had been created in it.
    pub fn seed(&mut self, path: &str, created: i32) {
        for server in &mut self.servers {
            server.tree.seed(path, created);
        }
    }

    /// Lets a server stand still.
    pub fn pause(&mut self, server: usize, until: Instant) {
        let it = &mut self.servers[server];
        it.paused_until = it.paused_until.max(until);
    }

    /// Whether a server stands still, and until when.
    pub fn paused_until(&self, server: usize) -> Instant {
        self.servers[server].paused_until
    }

    /// Cuts servers off from all others, or mends that.
    pub fn part(&mut self, island: &[usize], apart: bool, env: &mut Env<'_>) {
        for one in 0..self.servers.len() {
            for other in one + 1..self.servers.len() {
                if island.contains(&one) == island.contains(&other) {
                    continue;
                }
                if apart {
                    self.cut.insert((one, other));
                } else {
                    self.cut.remove(&(one, other));
                }
            }
        }
        if !apart {
            // What TCP kept arrives after all, in its order and before what was sent later.
            for event in std::mem::take(&mut self.stalled) {
                self.take(event, env);
            }
        }
    }
}
