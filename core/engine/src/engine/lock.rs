//! One lock as this client sees it: its seat at the store, and the local queue.

use std::collections::VecDeque;

use crate::engine::slab::Key;
use crate::hold::CallKey;
use crate::name::Name;

#[derive(Clone, Debug, Hash)]
pub(crate) struct Lock {
    pub name: Name,
    /// Handles given out.
    pub pins: u32,
    /// Seats, present and parting, that refer to this lock.
    pub seats: u32,
    /// The highest token that this client ever had for the lock.
    pub floor: u64,
    /// The seat that local owners share, unless it is being given up.
    pub seat: Option<Key>,
    /// Local waiters, first come first. Entries whose call has ended are passed over.
    pub waiting: VecDeque<CallKey>,
    /// How many entries of `waiting` still wait.
    pub live: usize,
}

impl Lock {
    pub fn new(name: Name) -> Lock {
        Lock { name, pins: 0, seats: 0, floor: 0, seat: None, waiting: VecDeque::new(), live: 0 }
    }

    pub fn is_unused(&self) -> bool {
        self.pins == 0 && self.seats == 0 && self.live == 0
    }
}
