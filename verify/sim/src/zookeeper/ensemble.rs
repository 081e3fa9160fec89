//! The servers together: who leads, how the log spreads, which sessions have expired.

mod election;
mod log;
mod message;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use crate::clock::Instant;
use crate::zookeeper::op::{Op, SessionId, Zxid};
use crate::zookeeper::server::{Conn, ConnId, Entry, Origin, Role, Said, Sent, Server};

pub use message::{Env, Event, Message};

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

/// What has reached a server that stands still.
#[derive(Debug)]
enum Arrival {
    Event(Event),
    Sent(ConnId, Sent),
    HangUp(ConnId),
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
    /// What waits, for each server, until it goes on: in the order in which it came.
    held: Vec<VecDeque<Arrival>>,
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
            held: (0..config.servers).map(|_| VecDeque::new()).collect(),
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

    fn reachable(&self, one: usize, other: usize) -> bool {
        one == other || !self.cut.contains(&pair(one, other))
    }

    /// Something happens.
    pub fn take(&mut self, event: Event, env: &mut Env<'_>) {
        match event {
            Event::Peer { from, to, .. } if !self.reachable(from, to) => {
                self.stalled.push_back(event);
            }
            Event::Resume { server } => self.resume(server, env),
            event => self.arrive(event.server(), Arrival::Event(event), env),
        }
    }

    /// Something reaches a server: one that stands still reads it later.
    fn arrive(&mut self, server: usize, arrival: Arrival, env: &mut Env<'_>) {
        let until = self.servers[server].paused_until;
        let held = &mut self.held[server];
        if held.is_empty() && env.now >= until {
            return self.read(server, arrival, env);
        }
        if held.is_empty() {
            env.later.push((until, Event::Resume { server }));
        }
        held.push_back(arrival);
    }

    fn resume(&mut self, server: usize, env: &mut Env<'_>) {
        let until = self.servers[server].paused_until;
        if env.now < until {
            env.later.push((until, Event::Resume { server }));
            return;
        }
        for arrival in std::mem::take(&mut self.held[server]) {
            self.read(server, arrival, env);
        }
    }

    fn read(&mut self, server: usize, arrival: Arrival, env: &mut Env<'_>) {
        match arrival {
            Arrival::Event(event) => self.act(event, env),
            Arrival::Sent(conn, sent) => self.serve(conn, server, sent, env),
            Arrival::HangUp(conn) => self.servers[server].drop_conn(conn),
        }
    }

    fn act(&mut self, event: Event, env: &mut Env<'_>) {
        match event {
            Event::Peer { from, to, term, message } if self.servers[to].up => {
                self.hear(from, to, term, message, env);
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

    /// A message of a client arrives at a server.
    pub fn client(&mut self, conn: ConnId, me: usize, sent: Sent, env: &mut Env<'_>) {
        self.arrive(me, Arrival::Sent(conn, sent), env);
    }

    /// A client's connection ended.
    pub fn hang_up(&mut self, conn: ConnId, server: usize, env: &mut Env<'_>) {
        self.arrive(server, Arrival::HangUp(conn), env);
    }

    fn serve(&mut self, conn: ConnId, me: usize, sent: Sent, env: &mut Env<'_>) {
        let server = &mut self.servers[me];
        match sent {
            Sent::Connect { session, timeout, seen } => {
                let serving = server.up && !matches!(server.role, Role::Looking);
                if !serving || seen > server.tree.zxid {
                    env.mail.push((conn, Said::Closed));
                    return;
                }
                // A session has one connection to a server: what arrives on an older one is lost.
                if session != 0 {
                    server.close_session(session, &mut env.mail);
                }
                server.conns.insert(conn, Conn::of(session));
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
