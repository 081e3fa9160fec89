//! What is really so: every lock's nodes as committed, and what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use fencelock_engine::reply::Abandoned;
use fencelock_engine::request::Mode;
use fencelock_engine::{Grant, HoldId, How};

use crate::check::{Checks, StoreGrant};
use crate::clock::Instant;
use crate::cover::Cover;
use crate::zookeeper::curator::REVOKE;
use crate::zookeeper::op::{Change as Seen, SessionId, Zxid};
use crate::zookeeper::pool::Pool;
use crate::zookeeper::server::{Entry, Said};
use crate::zookeeper::site::User;
use crate::zookeeper::tree::{Change, Effect, split};

/// A contender's node.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its path.
    pub path: String,
    /// Its session.
    pub session: SessionId,
    /// The transaction that made it.
    pub czxid: Zxid,
    /// It wants to read.
    pub reads: bool,
}

/// How a node that was first went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its own session deleted it along with a note that says nothing is left undone.
    Released,
    /// Its own session deleted it.
    Deleted,
    /// Its session was over.
    Expired,
    /// Somebody else deleted it.
    Broken,
}

#[derive(Debug, Default)]
struct Lock {
    /// In the order of their creation.
    places: Vec<Place>,
    /// The transactions of all that were ever first, or a reader with readers alone before it, since
    /// when, and how they ended.
    firsts: BTreeMap<Zxid, (Instant, Option<End>)>,
    ours: BTreeSet<Zxid>,
    /// Those that wrote and read on: as firsts they ended with the write; how they ended as readers.
    turned: BTreeMap<Zxid, Option<End>>,
    readers: BTreeSet<Zxid>,
    /// Who waits behind the present first node, since when it was noticed, and how many local
    /// hand-overs there were since.
    behind: Option<(Zxid, Instant, u32)>,
}

/// The state of all locks, as committed.
#[derive(Debug)]
pub struct Truth {
    pub(super) parents: Vec<String>,
    locks: Vec<Lock>,
    /// What stands below them where they are semaphores.
    pub(super) pools: Vec<Pool>,
    pub(super) sessions: BTreeMap<SessionId, User>,
    /// Sessions through which an operator breaks a lock, and the latest token that was seen: what
    /// they delete up to it may be a break.
    pub(super) breakers: BTreeMap<(SessionId, usize), u64>,
    /// In the simple recipe all nodes of a lock have one name, so that a deletion which crosses
    /// another takes the next one: the node that each session last saw as its own, for a lock.
    seen: BTreeMap<(SessionId, usize), Zxid>,
    /// The nodes that their own sessions meant to delete there.
    meant: BTreeSet<(SessionId, Zxid)>,
    /// Holders of ours that were asked to let go: the lock, the node's transaction, and the user.
    pub asked: Vec<(usize, Zxid, User)>,
    /// The same of those whose permits somebody took away.
    pub ended: Vec<(usize, Zxid, User)>,
    /// Hard cases that were met.
    pub met: Vec<Cover>,
    /// How many watches fired.
    pub fired: u64,
    /// How many times a lock was given up.
    pub passed: u64,
    /// Both of these when faults ended.
    pub busy: (u64, u64),
    /// How many watches on a lock's children fired for somebody who waits and is not first.
    pub idle: u64,
}

impl Truth {
    /// Locks under these paths, or semaphores, and nobody there.
    pub fn new(parents: Vec<String>, semaphores: bool) -> Truth {
        let locks = parents.iter().map(|_| Lock::default()).collect();
        let pools = parents.iter().filter(|_| semaphores).map(|_| Pool::default()).collect();
        Truth {
            parents,
            locks,
            pools,
            sessions: BTreeMap::new(),
            breakers: BTreeMap::new(),
            seen: BTreeMap::new(),
            meant: BTreeSet::new(),
            fired: 0,
            passed: 0,
            busy: (0, 0),
            idle: 0,
            asked: Vec::new(),
            ended: Vec::new(),
            met: Vec::new(),
        }
    }

    /// The locks' paths.
    pub fn parents(&self) -> &[String] {
        &self.parents
    }

    /// The first contender's node.
    pub fn first(&self, lock: usize) -> Option<&Place> {
        self.locks.get(lock)?.places.first()
    }

    /// The node of who holds; of several permits that are out any.
    pub fn holder(&self, lock: usize, any: u64) -> Option<&Place> {
        match self.pools.get(lock) {
            Some(pool) => pool.one(any),
            None => self.first(lock),
        }
    }

    /// Those who may hold: the first, or all readers up to the first who does not read.
    pub fn holders(&self, lock: usize) -> impl Iterator<Item = &Place> {
        let places = self.locks.get(lock).map_or(&[][..], |it| &it.places);
        let readers = places.iter().take_while(|it| it.reads).count();
        places.iter().take(readers.max(1))
    }

    /// Whether the node of this transaction was ever the first.
    pub fn was_first(&self, lock: usize, czxid: Zxid) -> bool {
        self.locks[lock].firsts.contains_key(&czxid)
    }

    /// Whether its own client has deleted the node of this transaction.
    pub fn was_given_up(&self, lock: usize, czxid: Zxid) -> bool {
        let it = &self.locks[lock];
        let wrote = it.firsts.get(&czxid).and_then(|(_, end)| *end);
        let end = it.turned.get(&czxid).map_or(wrote, |end| *end);
        matches!(end, Some(End::Released | End::Deleted))
    }

    /// Since when the node of this transaction is or was the first.
    pub fn first_since(&self, lock: usize, czxid: Zxid) -> Instant {
        self.locks[lock].firsts.get(&czxid).map_or(0, |(since, _)| *since)
    }

    /// The token of a node, as a foreign contender would form it.
    pub fn token_of(&self, path: &str, session: SessionId) -> Option<u64> {
        let places = self.locks.iter().flat_map(|lock| lock.places.iter());
        let place = places.into_iter().find(|it| it.path == path && it.session == session)?;
        Some(place.czxid * 1024)
    }

    /// Counts what a server says to a session.
    pub fn count(&mut self, said: &Said, session: SessionId) {
        let Said::Fired(fired, _) = said else { return };
        self.fired += 1;
        if fired.change != Seen::Children {
            return;
        }
        for (pool, parent) in self.pools.iter().zip(&self.parents) {
            self.idle += u64::from(pool.is_idle(parent, fired, session));
        }
        let Some(lock) = self.parents.iter().position(|it| *it == fired.path) else { return };
        let mut behind = self.locks[lock].places.iter().skip(1);
        self.idle += u64::from(behind.any(|place| place.session == session));
    }

    /// Whether waiters are woken for nothing.
    pub fn herd(&self) -> Result<(), String> {
        let (idle, passed) = (self.idle, self.passed);
        if idle > 3 * passed + 20 {
            return Err(format!("{idle} watches woke waiters for nothing, at {passed} hand-overs"));
        }
        Ok(())
    }

    /// A hand-over within a client: others that wait behind its node must not wait for ever.
    pub fn handed_locally(
        &mut self,
        now: Instant,
        lock: usize,
        run: (u32, u64),
    ) -> Result<(), String> {
        let it = &mut self.locks[lock];
        let Some(second) = it.places.get(1) else { return Ok(()) };
        let (grants, span) = run;
        let since = *it.behind.get_or_insert((second.czxid, now, 0));
        let (_, began, count) = since;
        it.behind = Some((since.0, began, count + 1));
        if count > 2 * grants + 4 && now > began + 2 * span {
            return Err(format!("lock {lock}: {count} local hand-overs while others wait"));
        }
        Ok(())
    }

    /// A session was opened, or anything else was done, by this user.
    pub fn opened(&mut self, entry: &Entry, user: User) {
        self.sessions.entry(entry.session).or_insert(user);
    }

    /// A session is asked to break what was seen of a lock.
    pub fn breaks(&mut self, session: SessionId, lock: usize, token: u64) {
        let seen = self.breakers.entry((session, lock)).or_default();
        *seen = token.max(*seen);
    }

    /// A client of ours hears of a node, by the transaction that made it.
    pub fn sees(&mut self, session: SessionId, czxid: Zxid) {
        if let Some(lock) = self.locks.iter().position(|it| it.ours.contains(&czxid)) {
            self.seen.insert((session, lock), czxid);
        }
    }

    /// A client of ours deletes what stands at this path.
    pub fn means(&mut self, session: SessionId, path: &str) {
        let lock = self.parents.iter().position(|it| it == path);
        if let Some(czxid) = lock.and_then(|lock| self.seen.get(&(session, lock))) {
            self.meant.insert((session, *czxid));
        }
    }

    /// Whether the node's own session has deleted another than it meant.
    fn crossed(&self, lock: usize, place: &Place) -> bool {
        let simple =
            self.parents[lock] == place.path && self.locks[lock].ours.contains(&place.czxid);
        simple && !self.meant.contains(&(place.session, place.czxid))
    }

    fn lock_of(&self, path: &str) -> Option<usize> {
        // A lock of the simple recipe is its own contender.
        let parent = split(path).map_or("", |(parent, _)| parent);
        self.parents.iter().position(|it| it == parent || it == path)
    }

    /// A transaction was committed.
    pub(crate) fn committed(&mut self, now: Instant, entry: &Entry, checks: &mut Checks) {
        let Effect::Changes { changes, .. } = &entry.effect else { return };
        if !self.pools.is_empty() {
            for lock in 0..self.pools.len() {
                self.pooled(now, lock, entry, changes, checks);
            }
            return;
        }
        let clean = |change: &Change| match change {
            Change::Set { data, .. } => {
                data.starts_with(b"fencelock 1 released") && data.ends_with(b" 0")
            }
            _ => false,
        };
        let own = if changes.iter().any(clean) { End::Released } else { End::Deleted };
        let turn = turn_of(changes);
        for change in changes {
            match change {
                Change::Create { path, .. } if turn.is_some_and(|(_, read)| read == path) => {}
                Change::Delete { path } if turn.is_some_and(|(write, _)| write == path) => {
                    self.turned(turn, own);
                }
                Change::Create { path, owner, .. } if *owner == entry.session && *owner != 0 => {
                    self.created(entry, path);
                }
                Change::Set { path, data, .. } if data == REVOKE => {
                    let Some(lock) = self.lock_of(path) else { continue };
                    let first = self.first(lock).filter(|it| it.path == *path);
                    let Some((session, czxid)) = first.map(|it| (it.session, it.czxid)) else {
                        continue;
                    };
                    self.met.push(Cover::ZkRevoked);
                    if let Some(user @ User::Client { .. }) = self.sessions.get(&session) {
                        self.asked.push((lock, czxid, *user));
                    }
                }
                Change::Delete { path } => {
                    if entry.session == 0 && self.parents.contains(path) {
                        self.met.push(Cover::ZkReaped);
                    }
                    self.deleted(now, entry.session, path, own, checks);
                }
                Change::CloseSession { nodes } => {
                    for path in nodes {
                        self.deleted(now, entry.session, path, End::Expired, checks);
                    }
                }
                _ => {}
            }
        }
        for lock in 0..self.locks.len() {
            self.promote(now, lock, checks);
        }
    }

    /// A writer reads on, at its place in the queue and under its first number's tokens.
    fn turned(&mut self, turn: Option<(&String, &String)>, own: End) {
        let Some((write, read)) = turn else { return };
        let Some(lock) = self.lock_of(write) else { return };
        let it = &mut self.locks[lock];
        let Some(place) = it.places.iter_mut().find(|place| place.path == *write) else { return };
        (place.path, place.reads) = (read.clone(), true);
        it.turned.insert(place.czxid, None);
        if let Some((_, ended)) = it.firsts.get_mut(&place.czxid) {
            *ended = Some(own);
            self.passed += 1;
        }
    }

    fn created(&mut self, entry: &Entry, path: &str) {
        let Some(lock) = self.lock_of(path) else { return };
        let ours = matches!(self.sessions.get(&entry.session), Some(User::Client { .. }));
        let it = &mut self.locks[lock];
        if ours {
            it.ours.insert(entry.zxid);
        }
        let reads = path.contains("__READ__");
        if reads {
            it.readers.insert(entry.zxid);
        }
        let (path, session, czxid) = (path.to_owned(), entry.session, entry.zxid);
        it.places.push(Place { path, session, czxid, reads });
    }

    fn deleted(
        &mut self,
        now: Instant,
        session: SessionId,
        path: &str,
        own: End,
        checks: &mut Checks,
    ) {
        let Some(lock) = self.lock_of(path) else { return };
        let it = &mut self.locks[lock];
        let Some(at) = it.places.iter().position(|place| place.path == path) else { return };
        let place = it.places.remove(at);
        let seen = self.breakers.get(&(session, lock));
        let seen = seen.is_some_and(|seen| place.czxid.saturating_mul(1024) <= *seen);
        let breaks = own != End::Expired && seen;
        let mine = place.session == session && !breaks;
        // A client of ours ends nobody else's node but one that an operator saw.
        let ours = matches!(self.sessions.get(&session), Some(User::Client { .. }));
        // In the simple recipe a deletion names no node: one that crosses another takes the next.
        let simple = self.parents[lock] == place.path;
        let may = !ours || mine || breaks || simple;
        let meant = own == End::Expired || !self.crossed(lock, &place);
        let end = if mine && meant { own } else { End::Broken };
        let it = &mut self.locks[lock];
        if let Some((_, ended)) = it.firsts.get_mut(&place.czxid) {
            match it.turned.get_mut(&place.czxid) {
                Some(read) => *read = Some(end),
                None => *ended = Some(end),
            }
            self.passed += 1;
        }
        if end == End::Broken && it.firsts.contains_key(&place.czxid) {
            self.met.push(Cover::ZkDeleted);
            if may {
                checks.breaks(now, Some(lock));
            }
            checks.abandoned.spoiled(now, Some(lock));
        }
    }

    /// A lock's first node may be another than before.
    fn promote(&mut self, now: Instant, lock: usize, checks: &mut Checks) {
        let new: Vec<Place> = self
            .holders(lock)
            .filter(|place| !self.locks[lock].firsts.contains_key(&place.czxid))
            .cloned()
            .collect();
        for place in new {
            self.may_hold(now, lock, &place, checks);
        }
    }

    fn may_hold(&mut self, now: Instant, lock: usize, place: &Place, checks: &mut Checks) {
        let it = &mut self.locks[lock];
        it.firsts.insert(place.czxid, (now, None));
        it.behind = None;
        let incarnation = match self.sessions.get(&place.session) {
            Some(User::Client { incarnation, .. }) => *incarnation,
            _ => usize::MAX,
        };
        let grant = StoreGrant {
            incarnation,
            lock,
            hold: HoldId(u128::from(place.czxid)),
            owner: None,
            token: place.czxid * 1024,
            mode: if place.reads { Mode::Shared } else { Mode::Exclusive },
            abandoned: Some(Abandoned::Unknown),
            asked: None,
            joins: None,
        };
        checks.tenure(now, grant);
    }

    /// Whether what a grant says of the holder before fits.
    pub fn abandoned(&self, lock: usize, czxid: Zxid, grant: &Grant) -> Result<(), String> {
        if matches!(grant.how, How::Reentry | How::Local) || grant.reentry {
            return Ok(());
        }
        let it = &self.locks[lock];
        // A node that somebody deleted before its holder heard of the grant.
        if it.firsts.get(&czxid).is_some_and(|(_, end)| end.is_some()) {
            return Ok(());
        }
        // A reader leaves nothing half done, however it ends.
        let mut before = it.firsts.range(..czxid).filter(|(first, _)| !it.readers.contains(first));
        let Some((before, (_, Some(end)))) = before.next_back() else { return Ok(()) };
        let foreign = !it.ours.contains(before);
        let told = grant.abandoned;
        let fits = match end {
            // Of whoever came before it nobody was told.
            _ if foreign => told != Abandoned::No,
            End::Released => told != Abandoned::Yes,
            _ => true,
        };
        if fits {
            return Ok(());
        }
        let whose = if foreign { "a foreign holder" } else { "one of ours" };
        Err(format!("lock {lock}: {before:x} was {whose} and {end:?}, the next hears {told:?}"))
    }
}

/// The writer's node and the reader's of the same number that takes its place, if this is that.
fn turn_of(changes: &[Change]) -> Option<(&String, &String)> {
    let number = |path: &str| path.get(path.len().checked_sub(10)?..).map(str::to_owned);
    changes.iter().find_map(|made| {
        let Change::Create { path: read, .. } = made else { return None };
        let written = changes.iter().find_map(|gone| match gone {
            Change::Delete { path } if number(path) == number(read) => Some(path),
            _ => None,
        })?;
        read.contains("__READ__").then_some((written, read))
    })
}
