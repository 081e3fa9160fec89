//! Holds that local owners share with others.

use std::collections::BTreeSet;

use crate::engine::call::Call;
use crate::engine::slab::Key;
use crate::engine::words::contended;
use crate::engine::{Acquired, Engine};
use crate::error::Error;
use crate::event::Outcome;
use crate::hold::{Ask, CallKey, Patience};
use crate::request::Mode;
use crate::time::Time;

/// A local owner that reads, or waits to.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Reader {
    /// The entry under which it reads: one, however many holds it has. Others may read under it, too.
    pub held: Option<Key>,
    /// Its calls that wait to read. Each stands behind an entry, or is about to.
    pub waiting: BTreeSet<CallKey>,
}

impl<C: Clone> Engine<C> {
    /// Whoever has the lock already, for itself or shared, may read at once. Anybody else reads with
    /// others of this client, where nobody is passed so, or gets an entry.
    pub(super) fn acquire_shared(
        &mut self,
        now: Time,
        lock: u32,
        owner: u64,
        ask: Ask,
        call: C,
    ) -> Result<Acquired, Error> {
        if let Some(key) = self.lock_ref(lock).and_then(|lock| lock.entry)
            && let Some(holder) = self.live_holder(now, key)
        {
            if holder == Some(owner) {
                return self.reenter(now, key, ask, call);
            } else if ask.patience == Patience::Try {
                return Err(contended(ask.mode));
            }
        }
        if let Some(key) = self.reads(now, lock, owner)
            && !planted!(NestedReadQueues)
        {
            return self.reenter(now, key, ask, call);
        }
        self.take_seat(now, lock, ask, call)
    }

    /// The local owner that has the entry, if anybody has; holds whose time is over end.
    pub(super) fn live_holder(&mut self, now: Time, key: Key) -> Option<Option<u64>> {
        let entry = self.entries.get(key)?;
        let owner = entry.tenants.first()?.owner;
        if now >= entry.ends_at() && !planted!(ReentryAfterEnd) {
            self.expire(now, key);
            return None;
        }
        Some(owner)
    }

    /// The entry under which a local owner reads now.
    pub(super) fn reads(&mut self, now: Time, lock: u32, owner: u64) -> Option<Key> {
        let key = self.lock_ref(lock)?.readers.get(&owner)?.held?;
        if now >= self.entries.get(key)?.ends_for(Some(owner)) && !planted!(ReentryAfterEnd) {
            self.expire(now, key);
            return None;
        }
        Some(key)
    }

    /// A local owner's call waits to read from now on.
    pub(super) fn begin_to_read(&mut self, call: CallKey) {
        let Some(item) = self.calls.get(call.key()) else { return };
        let (Some(owner), lock) = (item.reader(), item.lock) else { return };
        if let Some(lock) = self.lock_mut(lock) {
            lock.readers.entry(owner).or_default().waiting.insert(call);
        }
    }

    /// A local owner's call waits to read no longer.
    pub(super) fn end_wait_to_read(&mut self, lock: u32, owner: u64, call: CallKey) {
        self.change_reader(lock, owner, |reader| {
            reader.waiting.remove(&call);
        });
    }

    /// A local owner reads under this entry from now on, or under none.
    pub(super) fn set_reader(&mut self, lock: u32, owner: u64, entry: Option<Key>) {
        self.change_reader(lock, owner, |reader| reader.held = entry);
    }

    fn change_reader(&mut self, lock: u32, owner: u64, change: impl FnOnce(&mut Reader)) {
        let Some(lock) = self.lock_mut(lock) else { return };
        let reader = lock.readers.entry(owner).or_default();
        change(reader);
        if reader.held.is_none() && reader.waiting.is_empty() {
            lock.readers.remove(&owner);
        }
    }

    /// Branches of one owner do not exclude each other: who has the lock for it has it for all of its
    /// calls that wait, but for those that want more than it has.
    pub(super) fn serve_owner(&mut self, now: Time, key: Key, owner: u64) {
        let Some(entry) = self.entries.get(key) else { return };
        let lock = entry.lock;
        if entry.mode == Mode::Exclusive {
            self.serve_branches(now, key, owner);
        } else {
            self.set_reader(lock, owner, Some(key));
            self.refuse_upgrades(now, lock, owner);
        }
        self.serve_readers(now, key, owner);
    }

    /// The owner's calls in the local queue.
    pub(super) fn branches_of(&self, lock: u32, owner: u64) -> Vec<CallKey> {
        let Some(lock) = self.lock_ref(lock).filter(|lock| lock.has_branch(owner)) else {
            return Vec::new();
        };
        let is_branch = |call: &CallKey| {
            self.calls.get(call.key()).is_some_and(|call| call.local_owner() == Some(owner))
        };
        lock.waiting.iter().copied().filter(is_branch).collect()
    }

    /// A local owner has the lock now: its calls that wait to read have it too. What they have in the
    /// queue goes: behind a writer they would wait for their own owner.
    fn serve_readers(&mut self, now: Time, key: Key, owner: u64) {
        if planted!(ReadBranchesWait) {
            return;
        }
        let Some(lock) = self.entries.get(key).map(|entry| entry.lock) else { return };
        let Some(reader) = self.lock_ref(lock).and_then(|lock| lock.readers.get(&owner)) else {
            return;
        };
        let calls = &self.calls;
        let mut waiting: Vec<CallKey> = reader.waiting.iter().copied().collect();
        waiting.sort_by_key(|call| calls.get(call.key()).map(Call::age));
        for call in waiting {
            self.end_wait_to_read(lock, owner, call);
            let own = self.calls.get_mut(call.key()).and_then(|call| call.entry.take());
            self.join(now, key, call, None);
            if let Some(own) = own {
                self.leave_seat(now, own, call);
            }
        }
    }

    /// A local owner reads now: its calls that wait for the lock for itself would wait for it.
    fn refuse_upgrades(&mut self, now: Time, lock: u32, owner: u64) {
        if planted!(UpgradeWaitsOn) {
            return;
        }
        for call in self.branches_of(lock, owner) {
            if let Some(call) = self.withdraw(now, call) {
                let error = super::reply::would_deadlock();
                self.complete(call.call, Outcome::Failed(error));
            }
        }
    }

    /// Calls that stood behind entries, or were to join holds, that have ended get others.
    pub(super) fn open_strays(&mut self, now: Time, strays: Vec<CallKey>) {
        for call in strays {
            let is_stray = |call: &Call<C>| call.waits() && call.entry.is_none();
            if self.calls.get(call.key()).is_some_and(is_stray) {
                self.open_seat(now, call);
            }
        }
    }
}
