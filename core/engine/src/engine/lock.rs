//! One lock as this client sees it: its entry at the store, and the local queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use crate::engine::line::Line;
use crate::engine::shared::Reader;
use crate::engine::slab::Key;
use crate::hold::CallKey;
use crate::name::Name;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Lock {
    pub name: Name,
    /// Handles given out.
    pub pins: u32,
    /// Entries, present and parting, that refer to this lock.
    pub entries: u32,
    /// The highest token that this client ever had for the lock.
    pub floor: u64,
    /// The entry by which local owners have the lock for themselves, one after the other, unless it is
    /// being given up.
    pub entry: Option<Key>,
    /// Local waiters, first come first. Entries whose call has ended are passed over.
    pub waiting: VecDeque<CallKey>,
    /// How many entries of `waiting` still wait.
    pub live: usize,
    /// How many of them each local owner has.
    branches: BTreeMap<u64, u32>,
    /// There is a handle that reads and writes.
    pub read_write: bool,
    /// The entry by which readers that come now read, unless a local writer came after it.
    pub seat: Option<Key>,
    /// The local owners that read, or wait to.
    pub readers: BTreeMap<u64, Reader>,
    /// The entries by which permits are held.
    pub permits: BTreeSet<Key>,
    /// Who waits for permits.
    pub line: Line,
    /// How long the latest tenures lasted of those of this client who had the lock for themselves, or
    /// permits: the longest of them, each one counting half as much as the one after it.
    pub pace: Duration,
}

impl Lock {
    pub fn new(name: Name) -> Lock {
        Lock {
            name,
            pins: 0,
            entries: 0,
            floor: 0,
            entry: None,
            waiting: VecDeque::new(),
            live: 0,
            branches: BTreeMap::new(),
            read_write: false,
            seat: None,
            readers: BTreeMap::new(),
            permits: BTreeSet::new(),
            line: Line::default(),
            pace: Duration::ZERO,
        }
    }

    /// A call of this owner waits from now on; its place in `waiting` is the caller's affair.
    pub fn enter(&mut self, owner: u64) {
        self.live += 1;
        *self.branches.entry(owner).or_default() += 1;
    }

    /// A call of this owner waits no longer.
    pub fn leave(&mut self, owner: u64) {
        self.live -= 1;
        if let Some(count) = self.branches.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.branches.remove(&owner);
            }
        }
    }

    /// An entry is given up.
    pub fn forget_entry(&mut self, key: Key) {
        for entry in [&mut self.entry, &mut self.seat] {
            if *entry == Some(key) {
                *entry = None;
            }
        }
        self.line.seats.retain(|seat| *seat != key);
    }

    /// Whether a call of this owner waits.
    pub fn has_branch(&self, owner: u64) -> bool {
        self.branches.contains_key(&owner)
    }

    /// A tenure of one of this client's holders lasted so long.
    pub fn lasted(&mut self, span: Duration) {
        self.pace = span.max(self.pace / 2);
    }

    pub fn is_unused(&self) -> bool {
        let waits = self.live > 0 || !self.line.is_empty();
        self.pins == 0 && self.entries == 0 && !waits && self.readers.is_empty()
    }
}
