//! Questions that concern no hold of this client: who has a lock, which locks there are.

use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::reply::{Abandoned, Body, Broken, Failure, HoldInfo, LockInfo, WaiterInfo};
use crate::request::{Break, Mode, RequestId, Resize};
use crate::store::other_kind;
use crate::zookeeper::machine::{Aim, Machine, TOKENS};
use crate::zookeeper::name::{LEASES, LOCKS, Participant, holders, lease_of, name_of, queue};
use crate::zookeeper::note::{Badge, Note, REVOKE, encode_permits, parse_permits};
use crate::zookeeper::permits::{check_permits, is_semaphores};
use crate::zookeeper::refusal::{failure, is_missing};
use crate::zookeeper::semaphore::Semaphore;
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
        semaphore: Semaphore,
    },
    List(Walk),
    Resize {
        of: u32,
        resized: bool,
        semaphore: Semaphore,
    },
    Break {
        what: Break,
        /// Whose nodes they are, that are looked at or deleted.
        holders: Vec<Participant>,
        broken: Broken,
        semaphore: Semaphore,
    },
    Revoke {
        /// How many holders there are.
        told: usize,
        semaphore: Semaphore,
    },
    Time,
}

/// What a call of a query is for.
#[derive(Clone, Debug)]
pub(crate) enum Question {
    Sync,
    Queue,
    /// The permits that are out.
    Leases,
    /// Who queues for permits.
    Waiters,
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
        let asked = Asked::Inspect {
            name,
            queue: Vec::new(),
            nodes: Vec::new(),
            note: None,
            semaphore: Semaphore::default(),
        };
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
        let asked = Asked::Break {
            what,
            holders: Vec::new(),
            broken: Broken::NotHeld,
            semaphore: Semaphore::default(),
        };
        self.find_holder(request, path, asked);
    }

    pub(super) fn revoke(&mut self, request: RequestId, name: Name) {
        let Some(path) = self.path(request, &name) else { return };
        let asked = Asked::Revoke { told: 0, semaphore: Semaphore::default() };
        self.find_holder(request, path, asked);
    }

    pub(super) fn resize(&mut self, request: RequestId, resize: Resize) {
        let Some(path) = self.path(request, &resize.lock) else { return };
        let of = resize.of;
        if self.is_simple() {
            return self.fail(request, Failure::Refused(crate::store::mode_unsupported()));
        }
        if let Err(refusal) = check_permits(Mode::Permits { count: 1, of }) {
            return self.fail(request, Failure::Refused(refusal));
        }
        let asked = Asked::Resize { of, resized: false, semaphore: Semaphore::default() };
        self.find_holder(request, path, asked);
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
        match (question.clone(), result) {
            (Question::Queue, Ok(ZkReply::Children { names, .. })) => self.saw_queue(id, &names),
            (Question::Leases | Question::Waiters, Err(ZkError::NoNode)) => {
                self.saw_semaphore(id, &question, &[]);
            }
            (Question::Leases | Question::Waiters, Ok(ZkReply::Children { names, .. })) => {
                self.saw_semaphore(id, &question, &names);
            }
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
            (Question::Act(at), Ok(_)) => match &mut query.asked {
                Asked::Break { broken, holders, .. } => {
                    *broken = match *broken {
                        Broken::Ended(count) => Broken::Ended(count + 1),
                        _ => Broken::Ended(1),
                    };
                    // Its own holder need not wait for a watch or a beat to be told.
                    let broken = holders.get(at).and_then(|holder| holder.hold);
                    if let Some(own) = broken.filter(|hold| self.places.contains_key(hold)) {
                        self.node_gone(own);
                    }
                }
                Asked::Resize { resized, .. } => *resized = true,
                _ => {}
            },
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
                Asked::Revoke { told, .. } => *told -= 1,
                // Whoever was there: whether anybody else is.
                Asked::Resize { .. } => self.look(id),
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
        if all.is_empty() && names.iter().any(|name| is_semaphores(name)) {
            return self.look_at_semaphore(id);
        }
        if let Asked::Resize { of, .. } = query.asked
            && !all.is_empty()
        {
            let refusal = other_kind(0, Mode::Permits { count: 1, of });
            query.failed = Some(Failure::Refused(refusal));
            return;
        }
        self.saw_all(id, &all);
    }

    /// All that hold, and then those that wait.
    pub(super) fn saw_all(&mut self, id: u64, all: &[Participant]) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        let path = query.path.clone();
        let count = query.asked.semaphore().and_then(|it| it.holders());
        let holding = count.unwrap_or_else(|| holders(all));
        match &mut query.asked {
            Asked::Inspect { queue, nodes, .. } => {
                queue.clear();
                queue.extend_from_slice(all);
                *nodes = vec![None; all.len()];
                for (at, one) in all.iter().take(READ).enumerate() {
                    let path = node_of(&path, one);
                    self.put(id, Question::Node(at), ZkOp::GetData { path, watch: false });
                }
            }
            Asked::Break { what, holders: meant, .. } => {
                let many = all.first().is_some_and(|first| first.kind.reads());
                let held = all.iter().take(holding.min(READ)).filter(|one| {
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
                for (at, one) in all.iter().take(holding.min(ASKED)).enumerate() {
                    self.tell(id, at, node_of(&path, one));
                }
            }
            Asked::List(_) | Asked::Time | Asked::Resize { .. } => {}
        }
    }

    /// A semaphore: what is out, and then who queues for it.
    fn look_at_semaphore(&mut self, id: u64) {
        let Some(query) = self.queries.get(&id) else { return };
        let (leases, locks) =
            (format!("{}/{LEASES}", query.path), format!("{}/{LOCKS}", query.path));
        self.put(id, Question::Leases, ZkOp::Children { path: leases, watch: false });
        self.put(id, Question::Waiters, ZkOp::Children { path: locks, watch: false });
    }

    fn saw_semaphore(&mut self, id: u64, question: &Question, names: &[String]) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        let path = query.path.clone();
        let Some(semaphore) = query.asked.semaphore_mut() else { return };
        if matches!(question, Question::Leases) {
            return semaphore.lent(names);
        }
        let all = semaphore.with_waiters(&queue(names).0);
        if let Asked::Resize { of, .. } = query.asked {
            // Whoever is there keeps the number from being another's.
            if let Some(one) = all.first() {
                let check = ZkWrite::Check { path: node_of(&path, one) };
                let set = ZkWrite::Set { path, data: encode_permits(of) };
                self.put(id, Question::Act(0), ZkOp::Multi(vec![check, set]));
            }
            return;
        }
        self.saw_all(id, &all);
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
        let (what, holders, (broken, semaphore)) = match &mut query.asked {
            Asked::Break { what, holders, broken, semaphore } => {
                (what, holders, (broken, semaphore))
            }
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
            let others = semaphore.others(&holder.name);
            let others = others.iter().map(|name| format!("{}/{LEASES}/{name}", query.path));
            let deletes = [path].into_iter().chain(others).map(|path| ZkWrite::Delete { path });
            let parts = note.into_iter().chain(deletes).collect();
            self.put(id, Question::Act(at), ZkOp::Multi(parts));
        }
    }

    /// Tells a holder that the lock is wanted.
    fn tell(&mut self, id: u64, at: usize, path: String) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        if let Asked::Revoke { told, .. } = &mut query.asked {
            *told += 1;
            self.put(id, Question::Act(at), ZkOp::Set { path, data: REVOKE.to_vec() });
        }
    }

    fn saw_note(&mut self, id: u64, data: Vec<u8>, stat: Stat) {
        let simple = self.is_simple();
        let Some(query) = self.queries.get_mut(&id) else { return };
        let Asked::Inspect { queue, nodes, note, semaphore, .. } = &mut query.asked else {
            return;
        };
        if !simple {
            semaphore.of = parse_permits(&data);
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
        if names.iter().any(|name| lease_of(name).is_some())
            && let Some(name) = visit.path.strip_suffix(LEASES).and_then(|it| it.strip_suffix('/'))
            && let Some(name) = name_at(name)
        {
            walk.found(name);
        }
        let is_semaphore = [LOCKS, LEASES].iter().all(|one| names.iter().any(|name| name == one));
        let base = if visit.path == "/" { "" } else { &visit.path };
        let children = names
            .iter()
            .filter(|name| Participant::parse(name).is_none())
            .filter(|name| !(base.is_empty() && *name == "zookeeper"))
            .filter(|name| !(is_semaphore && *name == LOCKS))
            .map(|name| format!("{base}/{name}"));
        let leases = format!("{base}/{LEASES}");
        walk.saw(
            visit,
            // What is out tells of the semaphore, whose name comes before all that lies below it.
            children.filter_map(|child| match is_semaphore && child == leases {
                true => Some((name_at(base)?, child)),
                false => Some((name_at(&child)?, child)),
            }),
        );
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
            Asked::Revoke { told, .. } => Body::Revoke(told > 0),
            Asked::Resize { resized, .. } => Body::Resize(resized),
            Asked::List(walk) => Body::List(walk.names()),
            Asked::Inspect { name, queue, nodes, note, semaphore } => {
                Body::Inspect(info(name, &queue, nodes, note, &semaphore))
            }
        };
        self.answer(query.request, body);
    }
}

impl Asked {
    fn semaphore(&self) -> Option<&Semaphore> {
        match self {
            Asked::Inspect { semaphore, .. }
            | Asked::Resize { semaphore, .. }
            | Asked::Break { semaphore, .. }
            | Asked::Revoke { semaphore, .. } => Some(semaphore),
            Asked::List(_) | Asked::Time => None,
        }
    }

    fn semaphore_mut(&mut self) -> Option<&mut Semaphore> {
        match self {
            Asked::Inspect { semaphore, .. }
            | Asked::Resize { semaphore, .. }
            | Asked::Break { semaphore, .. }
            | Asked::Revoke { semaphore, .. } => Some(semaphore),
            Asked::List(_) | Asked::Time => None,
        }
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
    semaphore: &Semaphore,
) -> Option<LockInfo> {
    if queue.is_empty() && note.is_none() {
        return None;
    }
    let abandoned = match note {
        Some(Note { released: true, abandoned, .. }) => abandoned,
        Some(_) if queue.is_empty() => Abandoned::Yes,
        None if semaphore.holders().is_some() => Abandoned::No,
        _ => Abandoned::Unknown,
    };
    let newest = nodes.iter().flatten().map(|(stat, _)| token(stat)).max().unwrap_or(0);
    let mut holds = Vec::new();
    let mut waiters = Vec::new();
    let mut held = 0;
    let holding = semaphore.holders().unwrap_or_else(|| holders(queue));
    for (at, (one, node)) in queue.iter().zip(nodes).enumerate() {
        let (stat, data) = node.unwrap_or_default();
        let badge = Badge::parse(&data).unwrap_or_else(|| Badge::stranger(&data));
        let hold = one.hold.unwrap_or(HoldId(0));
        let mode = semaphore.mode(at, &badge).unwrap_or(one.kind.mode());
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
