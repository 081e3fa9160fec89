//! Semaphores as the ensemble has them: who queues, what is out, and how many permits there are.

use std::collections::BTreeMap;

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::Mode;
use fencelock_engine::{Grant, HoldId, How};

use crate::check::{Checks, StoreGrant};
use crate::clock::Instant;
use crate::cover::Cover;
use crate::zookeeper::curator::REVOKE;
use crate::zookeeper::op::{Fired, SessionId, Zxid};
use crate::zookeeper::server::Entry;
use crate::zookeeper::site::User;
use crate::zookeeper::tree::{Change, Node, split};
use crate::zookeeper::truth::{End, Place, Truth};

/// Below a semaphore's node.
pub const LOCKS: &str = "locks";
const LEASES: &str = "leases";

/// A semaphore's nodes.
#[derive(Debug, Default)]
pub struct Pool {
    /// Those that stand in line, in the order of their creation, and since when.
    queue: Vec<(Place, Instant)>,
    /// The permits that are out. The transaction that made one is that of all that were taken with it.
    out: Vec<Place>,
    /// How many permits there were from then on; none where nobody has said it.
    sizes: Vec<(Instant, u32)>,
    taken: BTreeMap<Zxid, Taken>,
}

/// What was taken in one step.
#[derive(Debug)]
struct Taken {
    since: Instant,
    count: u32,
    end: Option<End>,
    /// The latest token under which a caller had it.
    delivered: Option<u64>,
}

impl Pool {
    /// One of the permits that are out.
    pub fn one(&self, any: u64) -> Option<&Place> {
        self.out.get(any as usize % self.out.len().max(1))
    }

    /// The most permits that there were since then.
    fn most(&self, since: Instant) -> u32 {
        let first = self.sizes.partition_point(|(at, _)| *at <= since).saturating_sub(1);
        self.sizes[first..].iter().map(|(_, of)| *of).max().unwrap_or(0)
    }

    /// Whether a watch that fired woke somebody who waits and is not first.
    pub fn is_idle(&self, parent: &str, fired: &Fired, session: SessionId) -> bool {
        let at = self.queue.iter().position(|(place, _)| place.session == session);
        below(parent, &fired.path) == Some((LEASES, "")) && at.is_some_and(|at| at > 0)
    }

    /// What is left of a semaphore's nodes that nobody uses: not the empty nodes of the layout.
    pub fn residue<'a>(
        parent: &str,
        own: &Node,
        node: impl Fn(&str) -> Option<&'a Node>,
    ) -> Vec<String> {
        let mut left = Vec::new();
        for name in &own.children {
            let path = format!("{parent}/{name}");
            match node(&path).filter(|_| name == LOCKS || name == LEASES) {
                Some(node) => left.extend(node.children.iter().map(|it| format!("{path}/{it}"))),
                None => left.push(path),
            }
        }
        left
    }
}

impl Truth {
    /// A transaction was committed: what it did to a semaphore.
    pub(super) fn pooled(
        &mut self,
        now: Instant,
        lock: usize,
        entry: &Entry,
        changes: &[Change],
        checks: &mut Checks,
    ) {
        let parent = self.parents[lock].clone();
        let session = entry.session;
        let (mut made, mut left) = (Vec::new(), Vec::new());
        for change in changes {
            match change {
                Change::Create { path, owner, .. } if *owner == session && session != 0 => {
                    let (path, czxid) = (path.clone(), entry.zxid);
                    let place = Place { path, session, czxid, reads: false };
                    match below(&parent, &place.path) {
                        Some((LOCKS, name)) => {
                            // Curator's mutex sorts others behind all of its own.
                            if !name.contains("-lock-") {
                                let what =
                                    format!("lock {lock}: {name} stands in line for permits");
                                checks.fail("queue order", now, || what);
                            }
                            self.pools[lock].queue.push((place, now));
                        }
                        Some((LEASES, _)) => made.push(place),
                        _ => {}
                    }
                }
                Change::Set { path, data, .. } if *path == parent => {
                    let Some(of) = permits_in(data) else { continue };
                    self.pools[lock].sizes.push((now, of));
                    checks.exclusion.sized(now, lock, of);
                }
                Change::Set { path, data, .. } if data == REVOKE => {
                    let met = self.revokes_permits(lock, path);
                    self.met.extend(met);
                }
                Change::Delete { path } if *path == parent => {
                    self.met.push(Cover::ZkReaped);
                    // What stood in it is gone.
                    self.pools[lock].sizes.push((now, 0));
                }
                Change::Delete { path } => {
                    left.extend(self.leaves_line(lock, path));
                    self.returned(now, lock, session, path, false, checks);
                }
                Change::CloseSession { nodes } => {
                    for path in nodes {
                        self.leaves_line(lock, path);
                        self.returned(now, lock, session, path, true, checks);
                    }
                }
                _ => {}
            }
        }
        if !made.is_empty() {
            self.took(now, lock, made, &left, checks);
        }
    }

    /// A node in the line goes: whose it was, at which place, and since when.
    fn leaves_line(&mut self, lock: usize, path: &str) -> Option<(usize, SessionId, Instant)> {
        let queue = &mut self.pools[lock].queue;
        let at = queue.iter().position(|(place, _)| place.path == path)?;
        let (place, since) = queue.remove(at);
        Some((at, place.session, since))
    }

    /// Permits were taken, by who was first in the line and left it with that.
    fn took(
        &mut self,
        now: Instant,
        lock: usize,
        made: Vec<Place>,
        left: &[(usize, SessionId, Instant)],
        checks: &mut Checks,
    ) {
        let Some(&Place { session, czxid, .. }) = made.first() else { return };
        let pool = &mut self.pools[lock];
        let first = left.iter().find(|(at, whose, _)| (*at, *whose) == (0, session));
        let Some((_, _, since)) = first else {
            return checks.fail("queue order", now, || {
                format!("lock {lock}: permits are taken past who stands first: {made:?}")
            });
        };
        let count = u32::try_from(made.len()).unwrap_or(u32::MAX);
        pool.out.extend(made);
        // By a number that it may have read just before another was set.
        let of = pool.most(*since);
        if pool.out.len() > of as usize {
            let out = pool.out.len();
            checks.fail("exclusion", now, || {
                format!("lock {lock}: {out} of {of} permits are out, with {count} of {czxid:x}")
            });
        }
        pool.taken.insert(czxid, Taken { since: now, count, end: None, delivered: None });
        let incarnation = match self.sessions.get(&session) {
            Some(User::Client { incarnation, .. }) => *incarnation,
            _ => usize::MAX,
        };
        let grant = StoreGrant {
            incarnation,
            lock,
            hold: HoldId(u128::from(czxid)),
            owner: None,
            token: czxid * 1024,
            mode: Mode::Permits { count, of },
            abandoned: Some(Abandoned::No),
            asked: None,
            joins: None,
        };
        checks.tenure(now, grant);
    }

    /// A permit comes back, or is taken away.
    fn returned(
        &mut self,
        now: Instant,
        lock: usize,
        session: SessionId,
        path: &str,
        expired: bool,
        checks: &mut Checks,
    ) {
        let pool = &mut self.pools[lock];
        let Some(at) = pool.out.iter().position(|place| place.path == path) else { return };
        let place = pool.out.remove(at);
        let Some(taken) = pool.taken.get_mut(&place.czxid) else { return };
        self.passed += 1;
        let seen = self.breakers.get(&(session, lock));
        let breaks = seen.is_some_and(|seen| place.czxid * 1024 <= *seen);
        let whose = |session| self.sessions.get(&session).copied();
        let (by, holder) = (whose(session), whose(place.session));
        let end = match expired {
            true => End::Expired,
            false if by == holder && !breaks => End::Deleted,
            false => End::Broken,
        };
        let ours = matches!(by, Some(User::Client { .. }));
        if end == End::Broken && ours && !breaks {
            checks.fail("only the holder releases", now, || {
                format!("lock {lock}: {by:?} deletes {path}, which is {holder:?}'s")
            });
        }
        if taken.end.replace(taken.end.unwrap_or(end)).is_none() && end == End::Broken {
            self.met.push(Cover::ZkDeleted);
            checks.exclusion.ends(lock, taken.since);
            if let Some(user @ User::Client { .. }) = holder {
                self.ended.push((lock, place.czxid, user));
            }
        }
    }

    /// Somebody asks for a permit back.
    fn revokes_permits(&mut self, lock: usize, path: &str) -> Option<Cover> {
        let place = self.pools[lock].out.iter().find(|place| place.path == path)?;
        if let Some(user @ User::Client { .. }) = self.sessions.get(&place.session) {
            self.asked.push((lock, place.czxid, *user));
        }
        Some(Cover::ZkRevoked)
    }

    /// Permits reached a caller: they were taken for it alone, and its client has not given them back.
    pub(super) fn permitted(
        &mut self,
        lock: usize,
        count: u32,
        czxid: Zxid,
        grant: &Grant,
    ) -> Result<(), (&'static str, String)> {
        let Some(taken) = self.pools[lock].taken.get_mut(&czxid) else {
            return Err(("queue order", format!("lock {lock}: {czxid:x} was never taken")));
        };
        if taken.end == Some(End::Deleted) {
            return Err(("exclusion", format!("lock {lock}: {czxid:x} was given back before")));
        }
        if taken.count != count {
            let out = taken.count;
            return Err(("count", format!("lock {lock}: {czxid:x} is {out} permits, not {count}")));
        }
        // Its first token is the transaction's; each that it is handed on to in its client has a later one.
        let token = grant.token.0;
        let first = token == czxid * 1024 && grant.how != How::Local;
        let follows = |last| token > last && grant.how == How::Local;
        if !taken.delivered.map_or(first, follows) {
            let before = taken.delivered;
            return Err((
                "token order",
                format!("lock {lock}: {czxid:x} is granted as {token} after {before:?}"),
            ));
        }
        taken.delivered = Some(token);
        if grant.abandoned != Abandoned::No {
            let told = grant.abandoned;
            return Err(("abandoned", format!("lock {lock}: who has permits hears {told:?}")));
        }
        Ok(())
    }
}

/// In which part of a semaphore a node stands, and its name there.
fn below<'a>(parent: &str, path: &'a str) -> Option<(&'static str, &'a str)> {
    let rest = path.strip_prefix(parent)?.strip_prefix('/')?;
    let (part, name) = split(rest).unwrap_or((rest, ""));
    [LOCKS, LEASES].into_iter().find(|it| *it == part).map(|it| (it, name))
}

/// How many permits there are, as the semaphore's node says.
fn permits_in(data: &[u8]) -> Option<u32> {
    std::str::from_utf8(data).ok()?.strip_prefix("fencelock 1 permits ")?.parse().ok()
}
