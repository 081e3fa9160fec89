//! One server: its log, its replica of the tree, and the clients that are connected to it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use crate::clock::Instant;
pub use crate::zookeeper::op::ConnId;
use crate::zookeeper::op::{Answer, Change, Code, Failure, Fired, Op, SessionId, Zxid};
use crate::zookeeper::tracker::Tracker;
use crate::zookeeper::tree::{Effect, Tree};
use crate::zookeeper::watch::Watches;

/// A request's way back: the server that took it, the connection, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Origin {
    pub server: usize,
    pub conn: ConnId,
    pub xid: u64,
}

/// A transaction in a log.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Entry {
    pub zxid: Zxid,
    pub session: SessionId,
    pub origin: Option<Origin>,
    pub effect: Effect,
}

/// What a server says to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The session is open or goes on; with session 0 it is over.
    Connected {
        /// The session.
        session: SessionId,
        /// Its timeout, as granted.
        timeout: u64,
    },
    /// A request was answered, when the server had done this much.
    Reply {
        /// The request's number.
        xid: u64,
        /// The last transaction that the server had applied.
        zxid: Zxid,
        /// The answer.
        result: Result<Answer, Failure>,
    },
    /// A watch fired.
    Fired(Fired, Zxid),
    /// A ping was answered.
    Pong,
    /// The server closes the connection.
    Closed,
}

/// What a client sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The first message of a connection.
    Connect {
        /// The session to go on with; 0 for a new one.
        session: SessionId,
        /// The wished timeout.
        timeout: u64,
        /// The last transaction that the client has seen.
        seen: Zxid,
    },
    /// A request.
    Request {
        /// Its number.
        xid: u64,
        /// What is asked.
        op: Op,
    },
    /// A sign of life.
    Ping,
}

#[derive(Debug)]
enum Asked {
    Op(Op),
    Ping,
}

#[derive(Debug)]
struct Pending {
    xid: u64,
    asked: Asked,
    /// It went to the leader, and no answer came yet.
    waits: bool,
    result: Option<Result<Answer, Failure>>,
}

/// A client's connection, at its server.
#[derive(Debug)]
pub struct Conn {
    /// The session; 0 until it is open.
    pub session: SessionId,
    queue: VecDeque<Pending>,
}

impl Conn {
    /// The connection of a session; 0 where one is to be opened.
    pub fn of(session: SessionId) -> Conn {
        Conn { session, queue: VecDeque::new() }
    }
}

/// What a server is at present.
#[derive(Debug)]
pub enum Role {
    /// It looks for a leader, and serves nobody.
    Looking,
    /// It follows.
    Following {
        /// Whom.
        leader: usize,
        /// Numbers this following.
        term: u64,
        /// When the leader was last heard.
        heard: Instant,
    },
    /// It leads.
    Leading(Box<Lead>),
}

/// A follower, as its leader sees it.
#[derive(Debug)]
pub struct Member {
    /// Numbers this following.
    pub term: u64,
    /// How much of the log it has.
    pub has: usize,
    /// When it was last heard.
    pub heard: Instant,
}

/// What only a leader has.
#[derive(Debug)]
pub struct Lead {
    /// Its epoch.
    pub epoch: u64,
    /// The last transaction's number within the epoch.
    pub counter: u64,
    /// The tree with everything that was proposed.
    pub ahead: Tree,
    /// The sessions.
    pub tracker: Tracker,
    /// The followers.
    pub members: BTreeMap<usize, Member>,
    /// Syncs that wait until so much of the log is committed.
    pub syncs: Vec<(usize, Origin)>,
}

/// A server.
#[derive(Debug)]
pub struct Server {
    /// Its process runs.
    pub up: bool,
    /// Its process stands still until then.
    pub paused_until: Instant,
    /// Counts its lives and its changes of role: old timers are void.
    pub life: u64,
    /// What it is.
    pub role: Role,
    /// The highest epoch that it has promised to follow.
    pub epoch: u64,
    /// Its log.
    pub log: Vec<Rc<Entry>>,
    /// How much of it is committed and applied.
    pub applied: usize,
    /// The tree up to there.
    pub tree: Tree,
    /// Its clients.
    pub conns: BTreeMap<ConnId, Conn>,
    /// Their watches.
    pub watches: Watches,
    /// Sessions heard from since the last word to the leader.
    pub touched: BTreeSet<SessionId>,
}

impl Default for Server {
    fn default() -> Server {
        Server {
            up: true,
            paused_until: 0,
            life: 0,
            role: Role::Looking,
            epoch: 0,
            log: Vec::new(),
            applied: 0,
            tree: Tree::default(),
            conns: BTreeMap::new(),
            watches: Watches::default(),
            touched: BTreeSet::new(),
        }
    }
}

/// Messages to clients.
pub type Mail = Vec<(ConnId, Said)>;

impl Server {
    /// Closes every connection.
    pub fn drop_clients(&mut self, mail: &mut Mail) {
        for conn in std::mem::take(&mut self.conns).into_keys() {
            mail.push((conn, Said::Closed));
        }
        self.watches.clear();
        self.touched.clear();
    }

    /// Closes one connection, if it is there.
    pub fn drop_conn(&mut self, conn: ConnId) {
        if self.conns.remove(&conn).is_some() {
            self.watches.drop_conn(conn);
        }
    }

    /// Closes what a session has open here.
    pub fn close_session(&mut self, session: SessionId, mail: &mut Mail) {
        let of_it = |(conn, it): (&ConnId, &Conn)| (it.session == session).then_some(*conn);
        for conn in self.conns.iter().filter_map(of_it).collect::<Vec<_>>() {
            self.drop_conn(conn);
            mail.push((conn, Said::Closed));
        }
    }

    /// Queues a request of a connection. `waits`: its answer comes from the leader.
    pub fn queue(&mut self, conn: ConnId, xid: u64, op: Op, waits: bool, mail: &mut Mail) {
        if let Some(it) = self.conns.get_mut(&conn) {
            it.queue.push_back(Pending { xid, asked: Asked::Op(op), waits, result: None });
            self.answer(conn, mail);
        }
    }

    /// Queues a ping: it is answered in its turn.
    pub fn queue_ping(&mut self, conn: ConnId, mail: &mut Mail) {
        if let Some(it) = self.conns.get_mut(&conn) {
            it.queue.push_back(Pending { xid: 0, asked: Asked::Ping, waits: false, result: None });
            self.answer(conn, mail);
        }
    }

    /// The leader's answer to a request of a connection.
    pub fn resolve(
        &mut self,
        conn: ConnId,
        xid: u64,
        result: Result<Answer, Failure>,
        mail: &mut Mail,
    ) {
        let Some(it) = self.conns.get_mut(&conn) else { return };
        let pending = it.queue.iter_mut().find(|it| it.xid == xid && it.waits);
        if let Some(pending) = pending {
            pending.waits = false;
            pending.result = Some(result);
        }
        self.answer(conn, mail);
    }

    /// Answers what can be answered, in the order in which it was asked.
    fn answer(&mut self, conn: ConnId, mail: &mut Mail) {
        loop {
            let Some(it) = self.conns.get_mut(&conn) else { return };
            if it.queue.front().is_none_or(|it| it.waits) {
                return;
            }
            let Some(pending) = it.queue.pop_front() else { return };
            let zxid = self.tree.zxid;
            let said = match (pending.asked, pending.result) {
                (Asked::Ping, _) => Said::Pong,
                (Asked::Op(_), Some(result)) => Said::Reply { xid: pending.xid, zxid, result },
                (Asked::Op(op), None) => {
                    let result = self.read(conn, &op, mail);
                    Said::Reply { xid: pending.xid, zxid, result }
                }
            };
            mail.push((conn, said));
        }
    }

    /// Answers a read from what is applied here, however old that is, and leaves its watch.
    fn read(&mut self, conn: ConnId, op: &Op, mail: &mut Mail) -> Result<Answer, Failure> {
        let result = self.tree.read(op);
        match op {
            Op::Data { path, watch: true } if result.is_ok() => self.watches.watch_data(conn, path),
            Op::Exists { path, watch: true } => self.watches.watch_data(conn, path),
            Op::Children { path, watch: true } if result.is_ok() => {
                self.watches.watch_children(conn, path);
            }
            Op::SetWatches { since, data, exist, child } => {
                self.set_watches(conn, *since, [data, exist, child], mail);
            }
            _ => {}
        }
        result
    }

    fn set_watches(&mut self, conn: ConnId, since: Zxid, of: [&[String]; 3], mail: &mut Mail) {
        let [data, exist, child] = of;
        let zxid = self.tree.zxid;
        let stat = |path: &String| self.tree.node(path).map(|node| node.stat());
        let mut fire = |path: &String, change| {
            mail.push((conn, Said::Fired(Fired { path: path.clone(), change }, zxid)));
        };
        for path in data {
            match stat(path) {
                None => fire(path, Change::Deleted),
                Some(stat) if stat.mzxid > since => fire(path, Change::Data),
                Some(_) => self.watches.watch_data(conn, path),
            }
        }
        for path in exist {
            match stat(path) {
                Some(_) => fire(path, Change::Created),
                None => self.watches.watch_data(conn, path),
            }
        }
        for path in child {
            match stat(path) {
                None => fire(path, Change::Deleted),
                Some(stat) if stat.pzxid > since => fire(path, Change::Children),
                Some(_) => self.watches.watch_children(conn, path),
            }
        }
    }

    /// Applies the log up to `upto`; `me` is this server's number.
    pub fn commit(&mut self, me: usize, upto: usize, mail: &mut Mail) {
        while self.applied < upto.min(self.log.len()) {
            let entry = Rc::clone(&self.log[self.applied]);
            self.applied += 1;
            self.apply(me, &entry, mail);
        }
    }

    fn apply(&mut self, me: usize, entry: &Entry, mail: &mut Mail) {
        use crate::zookeeper::tree::Change as Txn;
        let result = self.tree.apply(entry.session, entry.zxid, &entry.effect);
        let none = Vec::new();
        let changes = match &entry.effect {
            Effect::Changes { changes, .. } => changes,
            Effect::Error(_) => &none,
        };
        for change in changes {
            for (conn, fired) in self.watches.fire(change) {
                mail.push((conn, Said::Fired(fired, entry.zxid)));
            }
        }
        let origin = entry.origin.filter(|origin| origin.server == me);
        if let (Some(origin), Err(Failure { code: Code::SessionMoved, .. })) = (origin, &result) {
            // An old attempt may have taken the session back here: the client must come anew.
            if self.conns.contains_key(&origin.conn) {
                self.drop_conn(origin.conn);
                mail.push((origin.conn, Said::Closed));
            }
            return;
        }
        match changes.first() {
            Some(Txn::OpenSession { timeout }) => {
                if let Some(origin) = origin
                    && let Some(conn) = self.conns.get_mut(&origin.conn)
                {
                    conn.session = entry.session;
                    let said = Said::Connected { session: entry.session, timeout: *timeout };
                    mail.push((origin.conn, said));
                }
            }
            Some(Txn::CloseSession { .. }) => {
                if let Some(origin) = origin {
                    self.resolve(origin.conn, origin.xid, result, mail);
                }
                self.close_session(entry.session, mail);
            }
            _ => {
                if let Some(origin) = origin {
                    self.resolve(origin.conn, origin.xid, result, mail);
                }
            }
        }
    }

    /// A failure of a request that this server could not even pass on.
    pub fn refuse(&mut self, conn: ConnId, xid: u64, code: Code, mail: &mut Mail) {
        self.resolve(conn, xid, Err(code.into()), mail);
    }
}
