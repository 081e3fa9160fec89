//! Who waits: their order, and who is heard from.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::id::{HoldId, OwnerId};
use crate::request::Mode;
use crate::store::record::StoredWaiter;

/// A waiter is forgotten when it was not heard from for so many times its `silence`.
const FORGET: u64 = 10;
/// How many parked waiters a contact looks at.
const SWEEP: usize = 2;

impl StoredWaiter {
    /// Whether the waiter may be handed the lock.
    pub(super) fn is_live(&self, now: u64) -> bool {
        !self.silent && self.heard <= now && now < self.heard.saturating_add(self.silence)
    }

    fn is_forgotten(&self, now: u64) -> bool {
        now >= self.heard.saturating_add(self.silence.saturating_mul(FORGET))
    }
}

/// What hearing a caller came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It does not wait.
    Nobody,
    /// It waits, and whoever holds the lock knows that somebody does.
    Waiter,
    /// It was parked, and nobody else was listed: to whoever holds the lock it is a newcomer.
    Newcomer,
}

/// The entries of those who wait. They are served by ticket, equal ones by id; whoever was found
/// silent is parked beside that order until it is heard again, so that it is met only once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    entries: BTreeMap<HoldId, StoredWaiter>,
    listed: VecDeque<(u64, HoldId)>,
    parked: BTreeSet<(u64, Reverse<HoldId>)>,
    /// The listed entries of explicit owners.
    owned: BTreeMap<OwnerId, BTreeSet<(u64, HoldId)>>,
}

impl Queue {
    /// How many wait, parked ones included.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All of them: those to be served, first come first, then the parked ones.
    pub fn iter(&self) -> impl Iterator<Item = &StoredWaiter> {
        let listed = self.listed.iter().map(|(_, hold)| hold);
        let parked = self.parked.iter().map(|(_, Reverse(hold))| hold);
        listed.chain(parked).filter_map(|hold| self.entries.get(hold))
    }

    /// Puts an entry at its place; one of the same hold goes.
    pub fn insert(&mut self, waiter: StoredWaiter) {
        self.remove(waiter.hold);
        self.place(&waiter);
        self.entries.insert(waiter.hold, waiter);
    }

    /// Forgets everybody.
    pub fn clear(&mut self) {
        *self = Queue::default();
    }

    pub(super) fn get(&self, hold: HoldId) -> Option<&StoredWaiter> {
        self.entries.get(&hold)
    }

    pub(super) fn remove(&mut self, hold: HoldId) -> Option<StoredWaiter> {
        let waiter = self.entries.remove(&hold)?;
        self.unplace(&waiter);
        Some(waiter)
    }

    /// Counts a waiter as heard.
    pub(super) fn hear(
        &mut self,
        now: u64,
        polling: bool,
        hold: HoldId,
        silence: Option<u64>,
        local_waiters: u32,
    ) -> Heard {
        let alone = self.listed.is_empty();
        let Some(waiter) = self.entries.get_mut(&hold) else { return Heard::Nobody };
        waiter.heard = now;
        waiter.polling = polling;
        waiter.local_waiters = local_waiters;
        if !planted!(SilenceNotStretched) {
            waiter.silence = silence.unwrap_or(waiter.silence);
        }
        if waiter.silent
            && let Some(waiter) = self.remove(hold)
        {
            self.insert(StoredWaiter { silent: false, ..waiter });
            if alone {
                return Heard::Newcomer;
            }
        }
        Heard::Waiter
    }

    /// Passes a waiter over until it is heard again.
    pub(super) fn park(&mut self, now: u64, hold: HoldId) {
        let Some(mut waiter) = self.remove(hold) else { return };
        waiter.heard = waiter.heard.min(now);
        waiter.silent = true;
        self.insert(waiter);
    }

    /// Forgets, of the parked ones looked at, those long silent.
    pub(super) fn sweep(&mut self, now: u64) {
        let some: Vec<HoldId> = self.parked.iter().take(SWEEP).map(|(_, hold)| hold.0).collect();
        for hold in some {
            let Some(waiter) = self.entries.get_mut(&hold) else { continue };
            waiter.heard = waiter.heard.min(now);
            if waiter.is_forgotten(now) {
                self.remove(hold);
            }
        }
    }

    /// Changes how those who wait want to share the lock; nobody's place.
    pub(super) fn change_modes(&mut self, change: impl Fn(&mut Mode)) {
        self.entries.values_mut().for_each(|waiter| change(&mut waiter.mode));
    }

    /// How many are to be served.
    pub(super) fn listed(&self) -> usize {
        self.listed.len()
    }

    /// Who is to be served first, live or not.
    pub(super) fn first(&self) -> Option<&StoredWaiter> {
        self.listed.front().and_then(|(_, hold)| self.entries.get(hold))
    }

    /// Who is to be served last.
    pub(super) fn last(&self) -> Option<&StoredWaiter> {
        self.listed.back().and_then(|(_, hold)| self.entries.get(hold))
    }

    /// How many with a smaller ticket are to be served.
    pub(super) fn ahead_of(&self, ticket: u64) -> usize {
        self.listed.partition_point(|&(other, _)| other < ticket)
    }

    /// The first live waiter of an explicit owner in one of the modes.
    pub(super) fn first_of(
        &self,
        owner: &OwnerId,
        now: u64,
        mode: impl Fn(Mode) -> bool,
    ) -> Option<&StoredWaiter> {
        let own = self.owned.get(owner)?.iter();
        own.filter_map(|(_, hold)| self.entries.get(hold))
            .find(|waiter| waiter.is_live(now) && mode(waiter.mode))
    }

    fn place(&mut self, waiter: &StoredWaiter) {
        let place = (waiter.ticket, waiter.hold);
        if waiter.silent {
            self.parked.insert((waiter.ticket, Reverse(waiter.hold)));
            return;
        }
        if let Err(at) = self.listed.binary_search(&place) {
            self.listed.insert(at, place);
        }
        if let Some(owner) = &waiter.owner {
            self.owned.entry(owner.clone()).or_default().insert(place);
        }
    }

    fn unplace(&mut self, waiter: &StoredWaiter) {
        let place = (waiter.ticket, waiter.hold);
        if waiter.silent {
            self.parked.remove(&(waiter.ticket, Reverse(waiter.hold)));
            return;
        }
        if let Ok(at) = self.listed.binary_search(&place) {
            self.listed.remove(at);
        }
        if let Some(owner) = &waiter.owner
            && let Some(own) = self.owned.get_mut(owner)
        {
            own.remove(&place);
            if own.is_empty() {
                self.owned.remove(owner);
            }
        }
    }
}

impl FromIterator<StoredWaiter> for Queue {
    fn from_iter<I: IntoIterator<Item = StoredWaiter>>(waiters: I) -> Queue {
        let mut queue = Queue::default();
        for waiter in waiters {
            queue.insert(waiter);
        }
        queue
    }
}
