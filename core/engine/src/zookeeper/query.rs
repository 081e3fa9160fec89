//! Questions that concern no hold of this client: who has a lock, which locks there are.

use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, Body, Failure, HoldInfo, LockInfo, WaiterInfo};
use crate::request::RequestId;
use crate::zookeeper::machine::{Aim, Machine, TOKENS};
use crate::zookeeper::name::{Participant, name_of, queue};
use crate::zookeeper::note::{Badge, Note, REVOKE};
use crate::zookeeper::refusal::{failure, is_missing};
use crate::zookeeper::simple;
use crate::zookeeper::wire::{Stat, ZkError, ZkOp, ZkReply, ZkWrite};

/// Of so many participants the nodes are read for an answer; further ones are named only.
const READ: usize = 1_000;
/// How many nodes are listed at a time.
const WALK: usize = 64;

/// A question until its answer.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub request: RequestId,
    asked: Asked,
    /// The path that it is about.
    path: String,
    pending: u32,
    failed: Option<Failure>,
}

#[derive(Clone, Debug)]
enum Asked {
    Inspect {
        name: Name,
        queue: Vec<Participant>,
        nodes: Vec<Option<(Stat, Vec<u8>)>>,
        note: Option<Note>,
    },
    List {
        prefix: String,
        limit: usize,
        found: Vec<Name>,
        paths: Vec<String>,
    },
    Break {
        holder: Option<String>,
    },
    Revoke {
        holder: Option<String>,
    },
    Time,
}

/// What a call of a query is for.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Sync,
    Queue,
    Note,
    Node(usize),
    /// The children of this path.
    Walk(String),
    /// The holder's end, or the word to it.
    Act,
}

impl Machine {
    fn ask(&mut self, request: RequestId, path: String, asked: Asked) -> u64 {
        self.next += 1;
        let query = Query { request, asked, path, pending: 0, failed: None };
        self.queries.insert(self.next, query);
        self.next
    }

    fn put(&mut self, id: u64, question: Question, op: ZkOp) {
        if let Some(query) = self.queries.get_mut(&id) {
            query.pending += 1;
            self.call(op, Aim::Query { query: id, question });
        }
    }

    pub(super) fn time(&mut self, request: RequestId) {
        let path = "/".to_owned();
        let id = self.ask(request, path.clone(), Asked::Time);
        self.put(id, Question::Sync, ZkOp::Sync { path });
    }

    pub(super) fn inspect(&mut self, request: RequestId, name: Name) {
        let Some(path) = self.path(request, &name) else { return };
        let asked = Asked::Inspect { name, queue: Vec::new(), nodes: Vec::new(), note: None };
        let id = self.ask(request, path.clone(), asked);
        self.put(id, Question::Sync, ZkOp::Sync { path: path.clone() });
        if !self.is_simple() {
            let children = ZkOp::Children { path: path.clone(), watch: false };
            self.put(id, Question::Queue, children);
        }
        self.put(id, Question::Note, ZkOp::GetData { path, watch: false });
    }

    pub(super) fn break_lock(&mut self, request: RequestId, name: Name) {
        self.find_holder(request, &name, Asked::Break { holder: None });
    }

    pub(super) fn revoke(&mut self, request: RequestId, name: Name) {
        self.find_holder(request, &name, Asked::Revoke { holder: None });
    }

    fn find_holder(&mut self, request: RequestId, name: &Name, asked: Asked) {
        let Some(path) = self.path(request, name) else { return };
        let id = self.ask(request, path.clone(), asked);
        self.put(id, Question::Sync, ZkOp::Sync { path: path.clone() });
        let find = match self.is_simple() {
            true => ZkOp::Exists { path, watch: false },
            false => ZkOp::Children { path, watch: false },
        };
        self.put(id, Question::Queue, find);
    }

    pub(super) fn list(&mut self, request: RequestId, prefix: String, limit: usize) {
        let root = self.options.chroot.clone();
        let path = if root.is_empty() { "/".to_owned() } else { root };
        let asked = Asked::List { prefix, limit, found: Vec::new(), paths: Vec::new() };
        let id = self.ask(request, path.clone(), asked);
        self.put(id, Question::Sync, ZkOp::Sync { path: path.clone() });
        let children = ZkOp::Children { path: path.clone(), watch: false };
        self.put(id, Question::Walk(path), children);
    }

    pub(super) fn query_heard(
        &mut self,
        id: u64,
        question: Question,
        result: Result<ZkReply, ZkError>,
    ) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        query.pending -= 1;
        match (question, result) {
            (Question::Queue, Ok(ZkReply::Children { names, .. })) => self.saw_queue(id, &names),
            (Question::Queue, Ok(ZkReply::Exists(Some(stat)))) if stat.ephemeral_owner != 0 => {
                let path = query.path.clone();
                self.act(id, path, None);
            }
            (Question::Note, Ok(ZkReply::Data { data, stat })) => self.saw_note(id, data, stat),
            (Question::Node(at), Ok(ZkReply::Data { data, stat })) => {
                if let Asked::Inspect { nodes, .. } = &mut query.asked
                    && let Some(node) = nodes.get_mut(at)
                {
                    *node = Some((stat, data));
                }
            }
            (Question::Walk(path), Ok(ZkReply::Children { names, stat })) => {
                self.walked(id, &path, &names, stat);
            }
            (Question::Act, Err(ZkError::At(0, error))) if *error == ZkError::NoAuth => {
                // The note may not be written: then without it.
                if let Asked::Break { holder: Some(path) } = &query.asked {
                    let delete = ZkOp::Delete { path: path.clone() };
                    self.put(id, Question::Act, delete);
                }
            }
            (Question::Act, Err(error)) if is_missing(&error) => {
                // It went by itself meanwhile.
                if let Asked::Break { holder } | Asked::Revoke { holder } = &mut query.asked {
                    *holder = None;
                }
            }
            // What is not there, or may not be read, is not told.
            (_, Err(ZkError::NoNode)) | (Question::Node(_), Err(ZkError::NoAuth)) => {}
            (Question::Walk(_), Err(ZkError::NoAuth)) => {}
            (_, Err(error)) => query.failed = Some(failure(&error, &query.path)),
            _ => {}
        }
        self.finish_query(id);
    }

    fn saw_queue(&mut self, id: u64, names: &[String]) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        let (all, _) = queue(names);
        let path = query.path.clone();
        match &mut query.asked {
            Asked::Inspect { queue, nodes, .. } => {
                queue.clone_from(&all);
                *nodes = vec![None; all.len()];
                for (at, one) in all.iter().take(READ).enumerate() {
                    let path = format!("{path}/{}", one.name);
                    self.put(id, Question::Node(at), ZkOp::GetData { path, watch: false });
                }
            }
            Asked::Break { .. } | Asked::Revoke { .. } => {
                if let Some(first) = all.first() {
                    let holder = format!("{path}/{}", first.name);
                    self.act(id, holder, Some(first.sequence));
                }
            }
            Asked::List { .. } | Asked::Time => {}
        }
    }

    /// Ends the holder's hold, or tells it that the lock is wanted.
    fn act(&mut self, id: u64, path: String, sequence: Option<i32>) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        let op = match &mut query.asked {
            Asked::Break { holder } => {
                *holder = Some(path.clone());
                let note = sequence.map(|sequence| {
                    let abandoned = Abandoned::Yes;
                    let note = Note { released: true, sequence, abandoned };
                    ZkWrite::Set { path: query.path.clone(), data: note.encode() }
                });
                ZkOp::Multi(note.into_iter().chain([ZkWrite::Delete { path }]).collect())
            }
            Asked::Revoke { holder } => {
                *holder = Some(path.clone());
                ZkOp::Set { path, data: REVOKE.to_vec() }
            }
            _ => return,
        };
        self.put(id, Question::Act, op);
    }

    fn saw_note(&mut self, id: u64, data: Vec<u8>, stat: Stat) {
        let simple = self.is_simple();
        let Some(query) = self.queries.get_mut(&id) else { return };
        let Asked::Inspect { queue, nodes, note, .. } = &mut query.asked else { return };
        if !simple {
            *note = Note::parse(&data);
        } else if stat.ephemeral_owner != 0 {
            let hold = simple::owner(&data).map(|(hold, _)| hold);
            let badge =
                simple::owner(&data).map_or_else(|| data.clone(), |(_, rest)| rest.to_vec());
            queue.push(Participant { name: String::new(), hold, sequence: 0 });
            nodes.push(Some((stat, badge)));
        }
    }

    /// A node's children: participants make it a lock, others are looked into.
    fn walked(&mut self, id: u64, path: &str, names: &[String], stat: Stat) {
        let simple = self.is_simple();
        let root = self.options.chroot.len();
        let Some(query) = self.queries.get_mut(&id) else { return };
        let Asked::List { prefix, limit, found, paths } = &mut query.asked else { return };
        let own = path.get(root + 1..).and_then(name_of);
        let is_lock = match simple {
            true => stat.ephemeral_owner != 0,
            false => names.iter().any(|name| Participant::parse(name).is_some()),
        };
        if let Some(name) = own
            && is_lock
            && name.as_str().starts_with(&**prefix)
        {
            found.push(name);
        }
        let base = if path == "/" { "" } else { path };
        for name in names {
            if Participant::parse(name).is_some() || base.is_empty() && name == "zookeeper" {
                continue;
            }
            let child = format!("{base}/{name}");
            let Some(below) = child.get(root + 1..).and_then(name_of) else { continue };
            let may_match =
                below.as_str().starts_with(&**prefix) || prefix.starts_with(&format!("{below}/"));
            if may_match {
                paths.push(child);
            }
        }
        let full = found.len() >= *limit;
        let next: Vec<String> = match (full, query.pending) {
            (true, _) => Vec::new(),
            (false, 0) => paths.drain(..paths.len().min(WALK)).collect(),
            (false, _) => return,
        };
        for path in next {
            let children = ZkOp::Children { path: path.clone(), watch: false };
            self.put(id, Question::Walk(path), children);
        }
    }

    fn finish_query(&mut self, id: u64) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        if query.pending > 0 {
            return;
        }
        if let Asked::List { limit, found, paths, .. } = &mut query.asked
            && query.failed.is_none()
            && found.len() < *limit
            && !paths.is_empty()
        {
            // A round ended with a node that was gone.
            let next: Vec<String> = paths.drain(..paths.len().min(WALK)).collect();
            for path in next {
                let children = ZkOp::Children { path: path.clone(), watch: false };
                self.put(id, Question::Walk(path), children);
            }
            return;
        }
        let Some(query) = self.queries.remove(&id) else { return };
        if let Some(failure) = query.failed {
            return self.fail(query.request, failure);
        }
        let body = match query.asked {
            Asked::Time => Body::Time,
            Asked::Break { holder } => Body::Break(usize::from(holder.is_some())),
            Asked::Revoke { holder } => Body::Revoke(holder.is_some()),
            Asked::List { limit, mut found, .. } => {
                found.sort();
                found.truncate(limit);
                Body::List(found)
            }
            Asked::Inspect { name, queue, nodes, note } => {
                Body::Inspect(info(name, &queue, nodes, note))
            }
        };
        self.answer(query.request, body);
    }
}

/// What is known of a lock, for people. How long a holder's session has yet to live is known to
/// the server alone: its whole timeout is told.
fn info(
    name: Name,
    queue: &[Participant],
    nodes: Vec<Option<(Stat, Vec<u8>)>>,
    note: Option<Note>,
) -> Option<LockInfo> {
    if queue.is_empty() && note.is_none() {
        return None;
    }
    let abandoned = match note {
        Some(Note { released: true, abandoned, .. }) => abandoned,
        Some(_) if queue.is_empty() => Abandoned::Yes,
        _ => Abandoned::Unknown,
    };
    let token = |stat: &Stat| u64::try_from(stat.czxid).unwrap_or(0).saturating_mul(TOKENS);
    let newest = nodes.iter().flatten().map(|(stat, _)| token(stat)).max().unwrap_or(0);
    let mut holds = Vec::new();
    let mut waiters = Vec::new();
    let mut held = 0;
    for (at, (one, node)) in queue.iter().zip(nodes).enumerate() {
        let (stat, data) = node.unwrap_or_default();
        let badge = Badge::parse(&data).unwrap_or_else(|| Badge::stranger(&data));
        let hold = one.hold.unwrap_or(HoldId(0));
        if at == 0 {
            held = token(&stat);
            holds.push(HoldInfo {
                hold,
                client: badge.client,
                label: badge.label,
                expires_in: badge.timeout,
                lease: badge.timeout,
                claim: false,
            });
        } else {
            waiters.push(WaiterInfo {
                hold,
                client: badge.client,
                label: badge.label,
                owner: None,
                heard_ago: Duration::ZERO,
                silent: false,
            });
        }
    }
    let last_token = if newest > 0 { newest + TOKENS - 1 } else { 0 };
    Some(LockInfo { name, owner: None, holds, token: held, last_token, abandoned, waiters })
}
