//! The replicated tree: its nodes, and what a transaction does to it.

use std::collections::{BTreeMap, BTreeSet};

use crate::zookeeper::op::{Answer, Code, Failure, Mode, Op, SessionId, Stat, Zxid};

/// Whether a node is a container is told by this owner.
pub const CONTAINER: SessionId = 1 << 63;

/// A node.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its content.
    pub data: Vec<u8>,
    /// The session it goes with, [`CONTAINER`], or 0.
    pub owner: SessionId,
    /// The names of its children.
    pub children: BTreeSet<String>,
    czxid: Zxid,
    mzxid: Zxid,
    pzxid: Zxid,
    version: i32,
    /// How many children were ever created, and so the next one's number. It stops at the largest
    /// number: the committed counter only ever grows.
    created: i32,
}

impl Node {
    /// The node's numbers.
    pub fn stat(&self) -> Stat {
        Stat {
            czxid: self.czxid,
            mzxid: self.mzxid,
            pzxid: self.pzxid,
            version: self.version,
            // Clients see changes of the list of children, not creations alone.
            cversion: self.created.wrapping_mul(2).wrapping_sub(self.children.len() as i32),
            // That it is a container is not told.
            owner: if self.owner == CONTAINER { 0 } else { self.owner },
            children: self.children.len(),
            length: self.data.len(),
        }
    }
}

/// One change of the tree, decided by the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Change {
    Create { path: String, data: Vec<u8>, owner: SessionId, created: i32 },
    Delete { path: String },
    Set { path: String, data: Vec<u8>, version: i32 },
    Check { path: String },
    OpenSession { timeout: u64 },
    CloseSession { nodes: Vec<String> },
}

/// What a transaction does: the same on every server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// These changes, in order; of a multi when `many`.
    Changes {
        /// The changes.
        changes: Vec<Change>,
        /// They are a multi's.
        many: bool,
    },
    /// Nothing: the request was wrong.
    Error(Failure),
}

/// A replica's state.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: BTreeMap<String, Node>,
    /// The sessions' timeouts.
    pub sessions: BTreeMap<SessionId, u64>,
    ephemerals: BTreeMap<SessionId, BTreeSet<String>>,
    containers: BTreeSet<String>,
    /// The last transaction.
    pub zxid: Zxid,
    /// A counter of children has wrapped in a leader's view.
    pub wrapped: bool,
}

impl Default for Tree {
    fn default() -> Tree {
        let root = Node::default();
        Tree {
            nodes: BTreeMap::from([(String::new(), root)]),
            sessions: BTreeMap::new(),
            ephemerals: BTreeMap::new(),
            containers: BTreeSet::new(),
            zxid: 0,
            wrapped: false,
        }
    }
}

/// The parent's path and the last name; the root is the empty path.
pub fn split(path: &str) -> Option<(&str, &str)> {
    path.rsplit_once('/')
}

fn is_valid(path: &str) -> bool {
    path.starts_with('/')
        && path.len() > 1
        && path[1..].split('/').all(|part| !matches!(part, "" | "." | ".."))
        && !path.contains('\0')
}

fn key(path: &str) -> &str {
    if path == "/" { "" } else { path }
}

impl Tree {
    /// A node, if it is there.
    pub fn node(&self, path: &str) -> Option<&Node> {
        self.nodes.get(key(path))
    }

    /// The nodes that go with a session.
    pub fn ephemerals(&self, session: SessionId) -> impl Iterator<Item = &String> {
        self.ephemerals.get(&session).into_iter().flatten()
    }

    /// The containers that had children and have none: to be reaped.
    pub fn empty_containers(&self) -> Vec<String> {
        let empty = |path: &&String| {
            let node = self.node(path);
            node.is_some_and(|node| node.created != 0 && node.children.is_empty())
        };
        self.containers.iter().filter(empty).cloned().collect()
    }

    /// Makes a container and its ancestors from nothing, with a counter as if so many children had
    /// been created in it.
    pub fn seed(&mut self, path: &str, created: i32) {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        for end in ends.collect::<Vec<_>>() {
            let path = path[..end].to_owned();
            if self.node(&path).is_none() {
                let change =
                    Change::Create { path, data: Vec::new(), owner: CONTAINER, created: 1 };
                self.change(0, 0, &change, false);
            }
        }
        if let Some(node) = self.nodes.get_mut(key(path)) {
            node.created = created;
        }
    }

    /// Decides what a request does to this state, and does it here: this is the leader's own view,
    /// which runs ahead of what is committed.
    pub fn prepare(&mut self, session: SessionId, zxid: Zxid, op: &Op) -> Effect {
        let effect = match op {
            Op::Multi(ops) => self.prepare_multi(session, zxid, ops),
            op => match self.prepare_one(session, zxid, op) {
                Ok(change) => Effect::Changes { changes: vec![change], many: false },
                Err(code) => Effect::Error(code.into()),
            },
        };
        self.zxid = zxid;
        effect
    }

    fn prepare_multi(&mut self, session: SessionId, zxid: Zxid, ops: &[Op]) -> Effect {
        let before = self.clone();
        let mut changes = Vec::new();
        for (index, op) in ops.iter().enumerate() {
            match self.prepare_one(session, zxid, op) {
                Ok(change) => changes.push(change),
                Err(code) => {
                    *self = before;
                    return Effect::Error(Failure { code, index });
                }
            }
        }
        Effect::Changes { changes, many: true }
    }

    fn prepare_one(&mut self, session: SessionId, zxid: Zxid, op: &Op) -> Result<Change, Code> {
        let change = self.decide(session, op)?;
        self.change(session, zxid, &change, true);
        Ok(change)
    }

    fn decide(&self, session: SessionId, op: &Op) -> Result<Change, Code> {
        match op {
            Op::Create { path, data, mode } => self.decide_create(session, path, data, *mode),
            Op::Delete { path, version } => {
                split(path).ok_or(Code::BadArguments)?;
                let node = self.node(path).filter(|_| path != "/").ok_or(Code::NoNode)?;
                same(node, *version)?;
                if !node.children.is_empty() {
                    return Err(Code::NotEmpty);
                }
                Ok(Change::Delete { path: path.clone() })
            }
            Op::Set { path, .. } | Op::Check { path, .. } if path != "/" && !is_valid(path) => {
                Err(Code::BadArguments)
            }
            Op::Set { path, data, version } => {
                let node = self.node(path).ok_or(Code::NoNode)?;
                same(node, *version)?;
                let version = node.version.wrapping_add(1);
                Ok(Change::Set { path: path.clone(), data: data.clone(), version })
            }
            Op::Check { path, version } => {
                same(self.node(path).ok_or(Code::NoNode)?, *version)?;
                Ok(Change::Check { path: path.clone() })
            }
            Op::Reap { path } => {
                let node = self.node(path).ok_or(Code::NoNode)?;
                if !node.children.is_empty() {
                    return Err(Code::NotEmpty);
                }
                Ok(Change::Delete { path: path.clone() })
            }
            Op::Close => {
                let nodes = self.ephemerals(session).cloned().collect();
                Ok(Change::CloseSession { nodes })
            }
            _ => Err(Code::BadArguments),
        }
    }

    fn decide_create(
        &self,
        session: SessionId,
        path: &str,
        data: &[u8],
        mode: Mode,
    ) -> Result<Change, Code> {
        let (parent, _) = split(path).ok_or(Code::BadArguments)?;
        let parent = self.node(parent).ok_or(Code::NoNode)?;
        let path = match mode.is_sequential() {
            true => format!("{path}{:010}", parent.created),
            false => path.to_owned(),
        };
        if !is_valid(&path) {
            return Err(Code::BadArguments);
        }
        if self.node(&path).is_some() {
            return Err(Code::NodeExists);
        }
        if parent.owner != 0 && parent.owner != CONTAINER {
            return Err(Code::NoChildrenForEphemerals);
        }
        let owner = match mode {
            Mode::Container => CONTAINER,
            mode if mode.is_ephemeral() => session,
            _ => 0,
        };
        let created = parent.created.wrapping_add(1);
        Ok(Change::Create { path, data: data.to_vec(), owner, created })
    }

    /// Applies a transaction; gives the answer of its request.
    pub fn apply(
        &mut self,
        session: SessionId,
        zxid: Zxid,
        effect: &Effect,
    ) -> Result<Answer, Failure> {
        self.zxid = zxid;
        match effect {
            Effect::Error(failure) => Err(*failure),
            Effect::Changes { changes, many } => {
                let mut answers: Vec<Answer> =
                    changes.iter().map(|it| self.change(session, zxid, it, false)).collect();
                Ok(match (many, answers.pop()) {
                    (false, Some(answer)) => answer,
                    (true, last) => {
                        answers.extend(last);
                        Answer::Multi(answers)
                    }
                    (false, None) => Answer::Done,
                })
            }
        }
    }

    /// Makes a change. `ahead`: in the leader's view, where the counter of children wraps for as
    /// long as the change is not committed.
    fn change(&mut self, session: SessionId, zxid: Zxid, change: &Change, ahead: bool) -> Answer {
        match change {
            Change::Create { path, data, owner, created } => {
                let (parent, name) = split(path).unwrap_or(("", path));
                if let Some(parent) = self.nodes.get_mut(parent) {
                    self.wrapped |= *created < parent.created;
                    if *created > parent.created || ahead {
                        parent.created = *created;
                        parent.pzxid = zxid;
                    }
                    parent.children.insert(name.to_owned());
                }
                let node = Node {
                    data: data.clone(),
                    owner: *owner,
                    czxid: zxid,
                    mzxid: zxid,
                    pzxid: zxid,
                    ..Node::default()
                };
                let stat = node.stat();
                self.nodes.insert(path.clone(), node);
                match *owner {
                    0 => {}
                    CONTAINER => {
                        self.containers.insert(path.clone());
                    }
                    owner => {
                        self.ephemerals.entry(owner).or_default().insert(path.clone());
                    }
                }
                Answer::Created { path: path.clone(), stat }
            }
            Change::Delete { path } => {
                self.remove(path, zxid);
                Answer::Done
            }
            Change::Set { path, data, version } => match self.nodes.get_mut(key(path)) {
                Some(node) => {
                    node.data.clone_from(data);
                    node.mzxid = zxid;
                    node.version = *version;
                    Answer::Set(node.stat())
                }
                None => Answer::Done,
            },
            Change::Check { .. } => Answer::Done,
            Change::OpenSession { timeout } => {
                self.sessions.insert(session, *timeout);
                Answer::Done
            }
            Change::CloseSession { nodes } => {
                for path in nodes {
                    self.remove(path, zxid);
                }
                self.sessions.remove(&session);
                self.ephemerals.remove(&session);
                Answer::Done
            }
        }
    }

    fn remove(&mut self, path: &str, zxid: Zxid) {
        let Some(node) = self.nodes.remove(key(path)) else { return };
        match node.owner {
            0 => {}
            CONTAINER => {
                self.containers.remove(path);
            }
            owner => {
                if let Some(paths) = self.ephemerals.get_mut(&owner) {
                    paths.remove(path);
                }
            }
        }
        if let Some((parent, name)) = split(path)
            && let Some(parent) = self.nodes.get_mut(parent)
        {
            parent.children.remove(name);
            parent.pzxid = parent.pzxid.max(zxid);
        }
    }

    /// Answers a request that changes nothing.
    pub fn read(&self, op: &Op) -> Result<Answer, Failure> {
        let found = |path: &str| self.node(path).ok_or(Failure::from(Code::NoNode));
        Ok(match op {
            Op::Data { path, .. } => {
                let node = found(path)?;
                Answer::Data { data: node.data.clone(), stat: node.stat() }
            }
            Op::Exists { path, .. } => Answer::Stat(found(path)?.stat()),
            Op::Children { path, .. } => {
                let node = found(path)?;
                let names = node.children.iter().cloned().collect();
                Answer::Children { names, stat: node.stat() }
            }
            _ => Answer::Done,
        })
    }
}

fn same(node: &Node, version: i32) -> Result<(), Code> {
    if version == -1 || version == node.version { Ok(()) } else { Err(Code::BadVersion) }
}
