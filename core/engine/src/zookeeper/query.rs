//! Questions that concern no hold of this client: who has a lock, which locks there are.

use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, Body, Broken, Failure, HoldInfo, LockInfo, WaiterInfo};
use crate::request::{Break, RequestId};
use crate::zookeeper::machine::{Aim, Machine, TOKENS};
use crate::zookeeper::name::{Participant, holders, name_of, queue};
use crate::zookeeper::note::{Badge, Note, REVOKE};
use crate::zookeeper::refusal::{failure, is_missing};
use crate::zookeeper::simple;
use crate::zookeeper::walk::{Visit, Walk};
use crate::zookeeper::wire::{Stat, ZkError, ZkOp, ZkReply, ZkWrite};

/// Of so many participants the nodes are read for an answer; further ones are named only.
const READ: usize = 1_000;

/// So many holders are asked to let go.
const ASKED: usize = 64;

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
    List(Walk),
    Break {
        what: Break,
        /// Whose nodes they are, that are looked at or deleted.
        holders: Vec<Participant>,
        broken: Broken,
    },
    Revoke {
        /// How many holders there are.
        told: usize,
    },
    Time,
}

/// What a call of a query is for.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Sync,
    Queue,
    /// Since when this one has the lock.
    Holder(usize),
    Note,
    Node(usize),
    /// The children of this node.
    Walk(Visit),
    /// The end of this holder, or the word to it.
    Act(usize),
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

    pub(super) fn break_lock(&mut self, request: RequestId, what: Break) {
        let Some(path) = self.path(request, &what.lock) else { return };
        let asked = Asked::Break { what, holders: Vec::new(), broken: Broken::NotHeld };
        self.find_holder(request, path, asked);
    }

    pub(super) fn revoke(&mut self, request: RequestId, name: Name) {
        let Some(path) = self.path(request, &name) else { return };
        self.find_holder(request, path, Asked::Revoke { told: 0 });
    }

    fn find_holder(&mut self, request: RequestId, path: String, asked: Asked) {
        let id = self.ask(request, path.clone(), asked);
        self.put(id, Question::Sync, ZkOp::Sync { path });
        self.look(id);
    }

    /// Who has the lock?
    fn look(&mut self, id: u64) {
        let simple = self.is_simple();
        let Some(query) = self.queries.get(&id) else { return };
        let path = query.path.clone();
        let by_hold = matches!(&query.asked, Asked::Break { what, .. } if what.hold.is_some());
        let find = match (simple, by_hold) {
            (false, _) => ZkOp::Children { path, watch: false },
            (true, false) => ZkOp::Exists { path, watch: false },
            (true, true) => ZkOp::GetData { path, watch: false },
        };
        self.put(id, Question::Queue, find);
    }

    pub(super) fn list(&mut self, request: RequestId, prefix: String, limit: usize) {
        let root = self.options.chroot.clone();
        let path = if root.is_empty() { "/".to_owned() } else { root };
        let id = self.ask(request, path.clone(), Asked::List(Walk::new(prefix, limit)));
        self.put(id, Question::Sync, ZkOp::Sync { path: path.clone() });
        self.visit(id, Visit::all(path));
    }

    fn visit(&mut self, id: u64, visit: Visit) {
        let children = ZkOp::Children { path: visit.path.clone(), watch: false };
        self.put(id, Question::Walk(visit), children);
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
                self.saw_simple(id, None, stat);
            }
            (Question::Queue, Ok(ZkReply::Data { data, stat })) if stat.ephemeral_owner != 0 => {
                self.saw_simple(id, simple::owner(&data).map(|(hold, _)| hold), stat);
            }
            (Question::Holder(at), Ok(ZkReply::Exists(Some(stat)))) => {
                self.saw_holder(id, at, stat);
            }
            (Question::Holder(at), Ok(ZkReply::Exists(None))) => self.look_on(id, at),
            (Question::Note, Ok(ZkReply::Data { data, stat })) => self.saw_note(id, data, stat),
            (Question::Node(at), Ok(ZkReply::Data { data, stat })) => {
                if let Asked::Inspect { nodes, .. } = &mut query.asked
                    && let Some(node) = nodes.get_mut(at)
                {
                    *node = Some((stat, data));
                }
            }
            (Question::Walk(visit), Ok(ZkReply::Children { names, stat })) => {
                self.walked(id, &visit, &names, stat);
            }
            (Question::Act(_), Ok(_)) => {
                if let Asked::Break { broken, .. } = &mut query.asked {
                    *broken = match *broken {
                        Broken::Ended(count) => Broken::Ended(count + 1),
                        _ => Broken::Ended(1),
                    };
                }
            }
            (Question::Act(at), Err(ZkError::At(0, error))) if *error == ZkError::NoAuth => {
                // The note may not be written: then without it.
                if let Asked::Break { holders, .. } = &query.asked
                    && let Some(holder) = holders.get(at).filter(|one| !one.kind.reads())
                {
                    let delete = ZkOp::Delete { path: node_of(&query.path, holder) };
                    self.put(id, Question::Act(at), delete);
                }
            }
            (Question::Act(at), Err(error)) if is_missing(&error) => match &mut query.asked {
                // It went by itself meanwhile.
                Asked::Revoke { told } => *told -= 1,
                _ => self.look_on(id, at),
            },
            (Question::Node(at), Err(ZkError::NoAuth)) => {
                // What the holder's node says may not be read; when it was made can be known.
                if let Asked::Inspect { queue, .. } = &query.asked
                    && at < holders(queue)
                {
                    let path = node_of(&query.path, &queue[at]);
                    self.put(id, Question::Holder(at), ZkOp::Exists { path, watch: false });
                }
            }
            // What is not there, or may not be read, is not told.
            (_, Err(ZkError::NoNode)) => {}
            (Question::Walk(_), Err(ZkError::NoAuth)) => {}
            (_, Err(error)) => query.failed = Some(failure(&error, &query.path)),
            _ => {}
        }
        self.finish_query(id);
    }

    /// A holder went by itself: beside one that reads there may be others; otherwise somebody else may
    /// have the lock now.
    fn look_on(&mut self, id: u64, at: usize) {
        let Some(Query { asked: Asked::Break { holders, .. }, .. }) = self.queries.get(&id) else {
            return;
        };
        if holders.get(at).is_none_or(|one| !one.kind.reads()) {
            self.look(id);
        }
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
                    let path = node_of(&path, one);
                    self.put(id, Question::Node(at), ZkOp::GetData { path, watch: false });
                }
            }
            Asked::Break { what, holders: meant, .. } => {
                let many = all.first().is_some_and(|first| first.kind.reads());
                let held = all.iter().take(holders(&all).min(READ)).filter(|one| {
                    // Of many only the one that is named is looked at.
                    !many || what.hold.is_none_or(|hold| one.hold == Some(hold))
                });
                *meant = held.cloned().collect();
                let paths: Vec<String> = meant.iter().map(|one| node_of(&path, one)).collect();
                for (at, path) in paths.into_iter().enumerate() {
                    self.put(id, Question::Holder(at), ZkOp::Exists { path, watch: false });
                }
            }
            Asked::Revoke { .. } => {
                for (at, one) in all.iter().take(holders(&all).min(ASKED)).enumerate() {
                    self.tell(id, at, node_of(&path, one));
                }
            }
            Asked::List(_) | Asked::Time => {}
        }
    }

    /// The one node that stands for the lock in the simple recipe.
    fn saw_simple(&mut self, id: u64, hold: Option<HoldId>, stat: Stat) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        match &mut query.asked {
            Asked::Break { holders, .. } => {
                *holders = vec![simple::participant(hold)];
                self.saw_holder(id, 0, stat);
            }
            Asked::Revoke { .. } => {
                let path = query.path.clone();
                self.tell(id, 0, path);
            }
            _ => {}
        }
    }

    /// Since when the holder has the lock: its tenure is ended if it is the one that was seen.
    fn saw_holder(&mut self, id: u64, at: usize, stat: Stat) {
        let simple = self.is_simple();
        let Some(query) = self.queries.get_mut(&id) else { return };
        let (what, holders, broken) = match &mut query.asked {
            Asked::Break { what, holders, broken } => (what, holders, broken),
            // The holder's node could not be read.
            Asked::Inspect { nodes, .. } => {
                if let Some(node) = nodes.get_mut(at) {
                    *node = Some((stat, Vec::new()));
                }
                return;
            }
            _ => return,
        };
        let Some(holder) = holders.get(at) else { return };
        if token(&stat) > what.token && !planted!(ZkBreakEndsAnybody) {
            if !matches!(broken, Broken::Ended(_)) {
                *broken = Broken::ChangedHands(token(&stat));
            }
        } else if what.hold.is_none_or(|hold| holder.hold == Some(hold)) {
            let path = node_of(&query.path, holder);
            let (released, sequence, abandoned) = (true, holder.sequence, Abandoned::Yes);
            // A reader leaves nothing half done.
            let note = (!simple && !holder.kind.reads()).then(|| ZkWrite::Set {
                path: query.path.clone(),
                data: Note { released, sequence, abandoned }.encode(),
            });
            let parts = note.into_iter().chain([ZkWrite::Delete { path }]).collect();
            self.put(id, Question::Act(at), ZkOp::Multi(parts));
        }
    }

    /// Tells a holder that the lock is wanted.
    fn tell(&mut self, id: u64, at: usize, path: String) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        if let Asked::Revoke { told } = &mut query.asked {
            *told += 1;
            self.put(id, Question::Act(at), ZkOp::Set { path, data: REVOKE.to_vec() });
        }
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
            queue.push(simple::participant(hold));
            nodes.push(Some((stat, badge)));
        }
    }

    /// A node's children: participants make it a lock, others are looked into.
    fn walked(&mut self, id: u64, visit: &Visit, names: &[String], stat: Stat) {
        let simple = self.is_simple();
        let root = self.options.chroot.len();
        let Some(query) = self.queries.get_mut(&id) else { return };
        let Asked::List(walk) = &mut query.asked else { return };
        let name_at = |path: &str| path.get(root + 1..).and_then(name_of);
        let is_lock = match simple {
            true => stat.ephemeral_owner != 0,
            false => names.iter().any(|name| Participant::parse(name).is_some()),
        };
        if is_lock && let Some(name) = name_at(&visit.path) {
            walk.found(name);
        }
        let base = if visit.path == "/" { "" } else { &visit.path };
        let children = names
            .iter()
            .filter(|name| Participant::parse(name).is_none())
            .filter(|name| !(base.is_empty() && *name == "zookeeper"))
            .map(|name| format!("{base}/{name}"));
        walk.saw(visit, children.filter_map(|child| Some((name_at(&child)?, child))));
    }

    fn finish_query(&mut self, id: u64) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        if query.pending > 0 {
            return;
        }
        if let Asked::List(walk) = &mut query.asked
            && query.failed.is_none()
        {
            let next = walk.next();
            if !next.is_empty() {
                return next.into_iter().for_each(|visit| self.visit(id, visit));
            }
        }
        let Some(query) = self.queries.remove(&id) else { return };
        if let Some(failure) = query.failed {
            return self.fail(query.request, failure);
        }
        let body = match query.asked {
            Asked::Time => Body::Time,
            Asked::Break { broken, .. } => Body::Break(broken),
            Asked::Revoke { told } => Body::Revoke(told > 0),
            Asked::List(walk) => Body::List(walk.names()),
            Asked::Inspect { name, queue, nodes, note } => {
                Body::Inspect(info(name, &queue, nodes, note))
            }
        };
        self.answer(query.request, body);
    }
}

/// A participant's node, or in the simple recipe the lock's own.
fn node_of(path: &str, participant: &Participant) -> String {
    match participant.name.is_empty() {
        true => path.to_owned(),
        false => format!("{path}/{}", participant.name),
    }
}

/// The first token of the tenure that a node stands for.
fn token(stat: &Stat) -> u64 {
    u64::try_from(stat.czxid).unwrap_or(0).saturating_mul(TOKENS)
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
    let newest = nodes.iter().flatten().map(|(stat, _)| token(stat)).max().unwrap_or(0);
    let mut holds = Vec::new();
    let mut waiters = Vec::new();
    let mut held = 0;
    let holding = holders(queue);
    for (at, (one, node)) in queue.iter().zip(nodes).enumerate() {
        let (stat, data) = node.unwrap_or_default();
        let badge = Badge::parse(&data).unwrap_or_else(|| Badge::stranger(&data));
        let hold = one.hold.unwrap_or(HoldId(0));
        let mode = one.kind.mode();
        if at < holding {
            let token = token(&stat);
            held = held.max(token);
            holds.push(HoldInfo {
                hold,
                client: badge.client,
                label: badge.label,
                expires_in: badge.timeout,
                lease: badge.timeout,
                mode,
                token,
                owner: None,
                claim: false,
                local_waiters: None,
            });
        } else {
            waiters.push(WaiterInfo {
                hold,
                client: badge.client,
                label: badge.label,
                owner: None,
                heard_ago: Duration::ZERO,
                silent: false,
                mode,
                local_waiters: None,
            });
        }
    }
    let last_token = if newest > 0 { newest + TOKENS - 1 } else { 0 };
    let waiting = waiters.len();
    Some(LockInfo {
        name,
        owner: None,
        holds,
        token: held,
        last_token,
        abandoned,
        waiters,
        waiting,
    })
}
