//! The client library: one session after another, the connection of the moment, and the watches
//! that it sets again. It repeats nothing by itself.

use std::collections::{BTreeSet, VecDeque};

use crate::clock::{Instant, MS, US};
use crate::dice::Dice;
use crate::zookeeper::op::{Answer, Change, Code, Failure, Fired, Op, SessionId, Zxid};
use crate::zookeeper::server::{ConnId, Said, Sent};

/// What the library tells whoever uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Told {
    Connected {
        session: SessionId,
        timeout: u64,
        since: Instant,
    },
    Reattached,
    Disconnected,
    Expired,
    /// Nobody was reached for a while.
    Unreachable,
    Result {
        token: u64,
        result: Result<Answer, Lost>,
    },
    Fired(Fired),
}

/// Why a request has no answer of a server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The server's own word.
    Failure(Failure),
    /// The same, of a part of a multi.
    Part(Failure),
    /// It was never sent.
    NotSent,
}

/// What the library wants of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Action {
    Connect { server: usize },
    Send { conn: ConnId, sent: Sent },
    HangUp { conn: ConnId },
    Wake { at: Instant, generation: u64 },
}

#[derive(Debug)]
struct Flight {
    xid: u64,
    token: Option<u64>,
    op: Op,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Between connections.
    Down,
    /// A connection was asked for, or waits for its first answer.
    Connecting(Option<ConnId>),
    Up(ConnId),
    /// Closed for good.
    Closed,
}

/// A client library with its session.
#[derive(Debug)]
pub struct Library {
    wish: u64,
    servers: usize,
    server: usize,
    state: State,
    session: SessionId,
    timeout: u64,
    seen: Zxid,
    asked: Instant,
    xid: u64,
    flights: VecDeque<Flight>,
    data: BTreeSet<String>,
    exist: BTreeSet<String>,
    child: BTreeSet<String>,
    /// When the server was last heard, and when it last heard of us.
    heard: Instant,
    spoke: Instant,
    down_since: Instant,
    tries: u32,
    generation: u64,
    /// What is to be told.
    pub told: VecDeque<Told>,
    /// What is to be done.
    pub actions: VecDeque<Action>,
}

impl Library {
    /// A library that wants a session with this timeout, and begins to connect.
    pub fn new(now: Instant, wish: u64, servers: usize, dice: &mut Dice) -> Library {
        let mut library = Library {
            wish,
            servers,
            server: dice.below(servers as u64) as usize,
            state: State::Down,
            session: 0,
            timeout: wish,
            seen: 0,
            asked: now,
            xid: 0,
            flights: VecDeque::new(),
            data: BTreeSet::new(),
            exist: BTreeSet::new(),
            child: BTreeSet::new(),
            heard: now,
            spoke: now,
            down_since: now,
            tries: 0,
            generation: 0,
            told: VecDeque::new(),
            actions: VecDeque::new(),
        };
        library.wake_in(now, dice.below(2 * MS));
        library
    }

    /// The session, or 0.
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The connection that is up.
    pub fn conn(&self) -> Option<ConnId> {
        match self.state {
            State::Up(conn) => Some(conn),
            _ => None,
        }
    }

    /// The server that it is connected to, or was.
    pub fn server(&self) -> usize {
        self.server
    }

    fn wake_in(&mut self, now: Instant, span: u64) {
        self.generation += 1;
        self.actions.push_back(Action::Wake { at: now + span, generation: self.generation });
    }

    /// Sends requests in one go. Their answers come under their tokens.
    pub fn request(&mut self, now: Instant, token: u64, op: Op) {
        let State::Up(conn) = self.state else {
            self.told.push_back(Told::Result { token, result: Err(Lost::NotSent) });
            return;
        };
        self.send(now, conn, Some(token), op);
    }

    fn send(&mut self, now: Instant, conn: ConnId, token: Option<u64>, op: Op) {
        self.xid += 1;
        let xid = self.xid;
        self.spoke = now;
        self.flights.push_back(Flight { xid, token, op: op.clone() });
        self.actions.push_back(Action::Send { conn, sent: Sent::Request { xid, op } });
    }

    /// Gives the connection up and takes the session up again by another, which knows nothing of the
    /// watches, nor of what was seen.
    pub fn reconnect(&mut self, now: Instant, dice: &mut Dice) {
        for table in [&mut self.data, &mut self.exist, &mut self.child] {
            table.clear();
        }
        self.seen = 0;
        if let State::Up(conn) | State::Connecting(Some(conn)) = self.state {
            self.actions.push_back(Action::HangUp { conn });
            self.lose(now, dice);
        }
    }

    /// Ends the session, and the library with it.
    pub fn close(&mut self, now: Instant) {
        if let State::Up(conn) = self.state {
            self.send(now, conn, None, Op::Close);
        }
        self.state = State::Closed;
        self.generation += 1;
    }

    /// The process is gone, or the library is dropped: the connection ends if the host lives.
    pub fn abandon(&mut self) -> Option<ConnId> {
        let conn = match self.state {
            State::Up(conn) | State::Connecting(Some(conn)) => Some(conn),
            _ => None,
        };
        self.state = State::Closed;
        self.generation += 1;
        conn
    }

    /// Gives the session up by its own clock, though the servers may keep it still: so does a library
    /// on a host that was suspended.
    pub fn give_up(&mut self, now: Instant, dice: &mut Dice) {
        self.reconnect(now, dice);
        if self.session != 0 && self.state == State::Down {
            self.expire(now, dice);
        }
    }

    /// The network made a connection.
    pub fn connected(&mut self, now: Instant, conn: ConnId) {
        if self.state != State::Connecting(None) {
            self.actions.push_back(Action::HangUp { conn });
            return;
        }
        self.state = State::Connecting(Some(conn));
        self.asked = now;
        let (session, timeout, seen) = (self.session, self.wish, self.seen);
        let sent = Sent::Connect { session, timeout, seen };
        self.actions.push_back(Action::Send { conn, sent });
    }

    /// The connection broke, or could not be made.
    pub fn broken(&mut self, now: Instant, conn: Option<ConnId>, dice: &mut Dice) {
        let mine = match self.state {
            State::Connecting(it) => it == conn,
            State::Up(it) => Some(it) == conn,
            _ => false,
        };
        if mine {
            self.lose(now, dice);
        }
    }

    fn lose(&mut self, now: Instant, dice: &mut Dice) {
        if let State::Up(_) = self.state {
            self.down_since = now;
            let first = dice.chance(500);
            if first {
                self.told.push_back(Told::Disconnected);
            }
            for flight in std::mem::take(&mut self.flights) {
                if let Some(token) = flight.token {
                    let result = Err(Lost::Failure(Code::ConnectionLoss.into()));
                    self.told.push_back(Told::Result { token, result });
                }
            }
            if !first {
                self.told.push_back(Told::Disconnected);
            }
        }
        self.state = State::Down;
        self.server = (self.server + 1) % self.servers;
        self.tries += 1;
        if self.tries.is_multiple_of(8) && self.session == 0 {
            self.told.push_back(Told::Unreachable);
        }
        let most = if (self.tries as usize) < self.servers { MS } else { self.timeout / 16 };
        self.wake_in(now, dice.between(100 * US, most.max(MS)));
    }

    fn expire(&mut self, now: Instant, dice: &mut Dice) {
        self.told.push_back(Told::Expired);
        self.state = State::Down;
        self.session = 0;
        self.seen = 0;
        self.flights.clear();
        self.data.clear();
        self.exist.clear();
        self.child.clear();
        self.timeout = self.wish;
        self.down_since = now;
        self.wake_in(now, dice.below(MS));
    }

    /// A server said something.
    pub fn hear(&mut self, now: Instant, conn: ConnId, said: Said, dice: &mut Dice) {
        if !matches!(self.state, State::Up(it) | State::Connecting(Some(it)) if it == conn) {
            return;
        }
        self.heard = now;
        match said {
            Said::Connected { session: 0, .. } => {
                self.actions.push_back(Action::HangUp { conn });
                self.expire(now, dice);
            }
            Said::Connected { session, timeout } => self.up(now, conn, session, timeout),
            Said::Reply { xid, zxid, result } => {
                self.seen = self.seen.max(zxid);
                let Some(at) = self.flights.iter().position(|it| it.xid == xid) else { return };
                let Some(flight) = self.flights.remove(at) else { return };
                self.note_watch(&flight.op, &result);
                if let Some(token) = flight.token {
                    let result = outcome(&flight.op, result);
                    self.told.push_back(Told::Result { token, result });
                }
            }
            Said::Fired(fired, zxid) => {
                self.seen = self.seen.max(zxid);
                if self.forget_watch(&fired) {
                    self.told.push_back(Told::Fired(fired));
                }
            }
            Said::Pong => {}
            Said::Closed => self.lose(now, dice),
        }
    }

    fn up(&mut self, now: Instant, conn: ConnId, session: SessionId, timeout: u64) {
        let again = self.session == session;
        self.state = State::Up(conn);
        self.session = session;
        self.timeout = timeout;
        self.tries = 0;
        self.spoke = now;
        if !again {
            let since = self.asked;
            self.told.push_back(Told::Connected { session, timeout, since });
        } else {
            if !(self.data.is_empty() && self.exist.is_empty() && self.child.is_empty()) {
                let list = |of: &BTreeSet<String>| of.iter().cloned().collect();
                let (data, exist, child) = (list(&self.data), list(&self.exist), list(&self.child));
                let op = Op::SetWatches { since: self.seen, data, exist, child };
                self.send(now, conn, None, op);
            }
            self.told.push_back(Told::Reattached);
        }
        self.wake_in(now, timeout / 3);
    }

    fn note_watch(&mut self, op: &Op, result: &Result<Answer, Failure>) {
        match op {
            Op::Data { path, watch: true } if result.is_ok() => {
                self.data.insert(path.clone());
            }
            Op::Exists { path, watch: true } => {
                let table = if result.is_ok() { &mut self.data } else { &mut self.exist };
                table.insert(path.clone());
            }
            Op::Children { path, watch: true } if result.is_ok() => {
                self.child.insert(path.clone());
            }
            _ => {}
        }
    }

    /// Drops the watches on a node. The server's own stays: nobody is told when it fires.
    pub fn unwatch(&mut self, path: &str) {
        for table in [&mut self.data, &mut self.exist, &mut self.child] {
            table.remove(path);
        }
    }

    /// Gives whether anything was watched that fired.
    fn forget_watch(&mut self, fired: &Fired) -> bool {
        let (data, exist, child) = (&mut self.data, &mut self.exist, &mut self.child);
        let tables = match fired.change {
            Change::Children => vec![child],
            Change::Deleted => vec![data, exist, child],
            Change::Created | Change::Data => vec![data, exist],
        };
        let gone = tables.into_iter().filter_map(|table| table.take(&fired.path));
        gone.count() > 0
    }

    /// A timer went off.
    pub fn wake(&mut self, now: Instant, generation: u64, dice: &mut Dice) {
        if generation != self.generation {
            return;
        }
        match self.state {
            State::Closed => {}
            State::Down => {
                // The library itself gives a session up that it could not reach for so long.
                if self.session != 0 && now > self.down_since + self.timeout * 7 / 5 {
                    return self.expire(now, dice);
                }
                self.state = State::Connecting(None);
                self.actions.push_back(Action::Connect { server: self.server });
                self.wake_in(now, self.timeout / self.servers as u64);
            }
            State::Connecting(conn) => {
                if let Some(conn) = conn {
                    self.actions.push_back(Action::HangUp { conn });
                }
                self.lose(now, dice);
            }
            State::Up(conn) => {
                if now >= self.heard + self.timeout * 2 / 3 {
                    self.actions.push_back(Action::HangUp { conn });
                    return self.lose(now, dice);
                }
                if now >= self.spoke + self.timeout / 3 {
                    self.spoke = now;
                    self.actions.push_back(Action::Send { conn, sent: Sent::Ping });
                }
                let ping = self.spoke + self.timeout / 3;
                let quiet = self.heard + self.timeout * 2 / 3;
                let at = ping.min(quiet).max(now + US);
                self.wake_in(now, at - now);
            }
        }
    }
}

/// A server's answer as a library gives it: a node that is not there is an answer to the question
/// whether it is, and a part of a multi that failed is named.
fn outcome(op: &Op, result: Result<Answer, Failure>) -> Result<Answer, Lost> {
    match (op, result) {
        (Op::Exists { .. }, Err(it)) if it.code == Code::NoNode => Ok(Answer::Missing),
        (_, Ok(answer)) => Ok(answer),
        (_, Err(it)) if matches!(it.code, Code::SessionExpired | Code::SessionMoved) => {
            Err(Lost::Failure(it))
        }
        (Op::Multi(_), Err(it)) => Err(Lost::Part(it)),
        (_, Err(it)) => Err(Lost::Failure(it)),
    }
}
