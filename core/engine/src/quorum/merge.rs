//! One picture of what several servers say of a lock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::id::HoldId;
use crate::name::Name;
use crate::quorum::seat::Key;
use crate::reply::{Abandoned, Body, HoldInfo, LockInfo, WaiterInfo};

/// What is known better of this client's own holds: their id, and their token.
pub(crate) type Own = Option<(HoldId, u64)>;

/// What servers say of a lock.
pub(crate) struct View {
    infos: BTreeMap<usize, Option<LockInfo>>,
    servers: usize,
    quorum: usize,
}

/// The names that any of them knows, in order.
pub(crate) fn names(answers: BTreeMap<usize, Body>, limit: usize) -> Vec<Name> {
    let mut names = BTreeSet::new();
    for body in answers.into_values() {
        if let Body::List(some) = body {
            names.extend(some);
        }
    }
    names.into_iter().take(limit).collect()
}

impl View {
    pub fn new(answers: BTreeMap<usize, Body>, servers: usize, quorum: usize) -> View {
        let infos = answers.into_iter().filter_map(|(server, body)| match body {
            Body::Inspect(info) => Some((server, info)),
            _ => None,
        });
        View { infos: infos.collect(), servers, quorum }
    }

    /// How many servers it is of.
    pub fn seen(&self) -> usize {
        self.infos.len()
    }

    fn infos(&self) -> impl Iterator<Item = (usize, &LockInfo)> {
        self.infos.iter().filter_map(|(server, info)| Some((*server, info.as_ref()?)))
    }

    /// The votes of a hold: where, under which id, with which token.
    pub fn votes(&self, key: Key) -> Vec<(usize, HoldId, u64)> {
        let held = self.held();
        let votes = held.into_iter().filter(|(_, hold)| Key::of_vote(hold.hold) == key);
        votes.map(|(server, hold)| (server, hold.hold, hold.token)).collect()
    }

    fn held(&self) -> Vec<(usize, &HoldInfo)> {
        let mut held = Vec::new();
        for (server, info) in self.infos() {
            held.extend(info.holds.iter().map(|hold| (server, hold)));
        }
        held
    }

    /// Who has the lock: whose votes, with those of servers that were not seen, may be enough. Its
    /// token is the largest of them.
    pub fn holder(&self, own: impl Fn(Key) -> Own) -> Option<(Key, u64)> {
        let mut votes: BTreeMap<Key, (usize, u64)> = BTreeMap::new();
        for (_, hold) in self.held() {
            let (count, token) = votes.entry(Key::of_vote(hold.hold)).or_default();
            (*count, *token) = (*count + 1, (*token).max(hold.token));
        }
        let unseen = self.servers - self.seen();
        let enough = votes.into_iter().filter(|(_, (count, _))| count + unseen >= self.quorum);
        let (key, (_, token)) = enough.max_by_key(|(_, votes)| *votes)?;
        // A vote that came late may have a larger one than the hold.
        let known = own(key).map(|(_, known)| known).filter(|known| *known > 0);
        Some((key, known.unwrap_or(token)))
    }

    /// All of it, for people. Who has some votes and not enough waits, before all others.
    pub fn info(&self, name: &Name, own: impl Fn(Key) -> Own) -> Option<LockInfo> {
        self.infos().next()?;
        let id = |key: Key| own(key).map_or(key.hold(), |(hold, _)| hold);
        let holder = self.holder(&own);
        let mut known: BTreeSet<Key> = holder.iter().map(|(key, _)| *key).collect();
        let mut waiters = Vec::new();
        for (_, hold) in self.held() {
            let key = Key::of_vote(hold.hold);
            if known.insert(key) {
                waiters.push(WaiterInfo {
                    hold: id(key),
                    client: hold.client.clone(),
                    label: hold.label.clone(),
                    owner: hold.owner.clone(),
                    heard_ago: Duration::ZERO,
                    silent: false,
                    mode: hold.mode,
                    local_waiters: hold.local_waiters,
                });
            }
        }
        let gathering = waiters.len();
        for waiter in self.infos().flat_map(|(_, info)| &info.waiters) {
            let key = Key::of_vote(waiter.hold);
            if known.insert(key) {
                waiters.push(WaiterInfo { hold: id(key), ..waiter.clone() });
            }
        }
        let mut said = self.infos().map(|(_, info)| info.abandoned);
        let first = said.next().unwrap_or(Abandoned::Unknown);
        let infos = || self.infos().map(|(_, info)| info);
        Some(LockInfo {
            name: name.clone(),
            owner: None,
            holds: holder
                .and_then(|(key, token)| self.hold(key, id(key), token))
                .into_iter()
                .collect(),
            token: holder.map_or_else(
                || infos().map(|info| info.token).max().unwrap_or(0),
                |(_, token)| token,
            ),
            last_token: infos().map(|info| info.last_token).max().unwrap_or(0),
            abandoned: if said.all(|other| other == first) { first } else { Abandoned::Unknown },
            waiting: infos().map(|info| info.waiting).max().unwrap_or(0) + gathering,
            waiters,
        })
    }

    /// A hold by its votes: it lasts as long as enough of them.
    fn hold(&self, key: Key, id: HoldId, token: u64) -> Option<HoldInfo> {
        let held = self.held();
        let mut votes: Vec<&HoldInfo> = held
            .iter()
            .filter(|(_, hold)| Key::of_vote(hold.hold) == key)
            .map(|(_, hold)| *hold)
            .collect();
        votes.sort_by_key(|vote| core::cmp::Reverse(vote.expires_in));
        let last = votes.get(self.quorum - 1).or(votes.last())?;
        Some(HoldInfo { hold: id, token, ..(*last).clone() })
    }
}
