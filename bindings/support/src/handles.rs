//! Numbers in place of pointers, for hosts that can hold a stale one.

use std::sync::Arc;

use parking_lot::RwLock;

/// A number that names an entry of one table: 8 bits of kind, 24 of generation, 32 of index. Never
/// 0, so that a host may use 0 for none.
pub type Handle = u64;

const GENERATIONS: u32 = 1 << 24;

/// A table whose entries are named by numbers. A number of a removed entry, of another kind, or one
/// that was made up, finds nothing (until a slot was used 16 million times).
pub struct Handles<T> {
    kind: u8,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    entries: Vec<Slot<T>>,
    free: Vec<u32>,
}

struct Slot<T> {
    generation: u32,
    entry: Option<Arc<T>>,
}

impl<T> Handles<T> {
    /// An empty table. `kind` tells the tables of one program apart; it is not 0.
    pub const fn new(kind: u8) -> Handles<T> {
        assert!(kind != 0, "0 would make a handle that is 0");
        Handles { kind, slots: RwLock::new(Slots { entries: Vec::new(), free: Vec::new() }) }
    }

    /// Adds an entry.
    pub fn insert(&self, entry: Arc<T>) -> Handle {
        let mut slots = self.slots.write();
        let index = match slots.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(slots.entries.len()).unwrap_or(u32::MAX);
                slots.entries.push(Slot { generation: 0, entry: None });
                index
            }
        };
        let slot = &mut slots.entries[index as usize];
        slot.entry = Some(entry);
        u64::from(self.kind) << 56 | u64::from(slot.generation) << 32 | u64::from(index)
    }

    /// The entry, if it is still there.
    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        let (index, generation) = self.parts(handle)?;
        let slots = self.slots.read();
        let slot = slots.entries.get(index)?;
        if slot.generation == generation { slot.entry.clone() } else { None }
    }

    /// Takes the entry out. Whoever has it from [`Handles::get`] keeps it alive.
    pub fn remove(&self, handle: Handle) -> Option<Arc<T>> {
        let (index, generation) = self.parts(handle)?;
        let mut slots = self.slots.write();
        let slot = slots.entries.get_mut(index)?;
        if slot.generation != generation {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.generation = (slot.generation + 1) % GENERATIONS;
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        slots.free.push(index);
        Some(entry)
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        let slots = self.slots.read();
        slots.entries.len() - slots.free.len()
    }

    fn parts(&self, handle: Handle) -> Option<(usize, u32)> {
        if handle >> 56 != u64::from(self.kind) {
            return None;
        }
        let generation = (handle >> 32) as u32 & (GENERATIONS - 1);
        Some(((handle & u64::from(u32::MAX)) as usize, generation))
    }
}

impl<T> std::fmt::Debug for Handles<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handles").field("kind", &self.kind).field("count", &self.count()).finish()
    }
}
