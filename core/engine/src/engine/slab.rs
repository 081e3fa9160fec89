//! Slots with generations: a key that outlived its entry finds nothing.

/// Names an entry; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub index: u32,
    pub serial: u32,
}

#[derive(Clone, Debug, Hash)]
struct Slot<T> {
    serial: u32,
    entry: Option<T>,
}

/// A vector with a free list and generations.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The key that the next insertion will get.
    pub fn next_key(&self) -> Key {
        match self.free.last() {
            Some(&index) => Key { index, serial: self.slots[index as usize].serial },
            None => Key { index: u32::try_from(self.slots.len()).unwrap_or(u32::MAX), serial: 0 },
        }
    }

    pub fn insert(&mut self, entry: T) -> Key {
        let key = self.next_key();
        match self.free.pop() {
            Some(index) => self.slots[index as usize].entry = Some(entry),
            None => self.slots.push(Slot { serial: 0, entry: Some(entry) }),
        }
        key
    }

    pub fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.serial != key.serial {
            return None;
        }
        let entry = slot.entry.take()?;
        slot.serial = slot.serial.wrapping_add(1);
        self.free.push(key.index);
        Some(entry)
    }

    pub fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index as usize)?;
        if slot.serial == key.serial { slot.entry.as_ref() } else { None }
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index as usize)?;
        if slot.serial == key.serial { slot.entry.as_mut() } else { None }
    }

    /// The entry at an index, whatever its generation.
    pub fn at(&self, index: u32) -> Option<(Key, &T)> {
        let slot = self.slots.get(index as usize)?;
        slot.entry.as_ref().map(|entry| (Key { index, serial: slot.serial }, entry))
    }

    /// The keys of all entries, by index.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::with_capacity(self.len());
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.entry.is_some() {
                keys.push(Key { index: index as u32, serial: slot.serial });
            }
        }
        keys
    }
}
