//! The tables behind the handles.
//!
//! A handle is not an address but a number: the kind of what it names, the index of a slot, and how
//! often that slot had been used before. One that is freed, of another kind or made up is seen as
//! such, and nothing is read through it. Neither making, using nor freeing one takes a mutex: the
//! cheap calls stay cheap, and a signal handler may use one.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// The handle's lowest bits say its kind: no address of an aligned object has any of them set.
const KIND_BITS: u32 = 4;
const INDEX_BITS: u32 = 28;

/// A slot's state: its generation above, then whether its handle is live, then how many use it.
const LIVE: u64 = 1 << 31;
const PINS: u64 = LIVE - 1;

/// The first block has so many slots, each further one twice as many as the one before.
const FIRST: u32 = 64;
const BLOCKS: usize = 22;

/// What handles of one kind name.
pub struct Table<T> {
    kind: u64,
    blocks: [AtomicPtr<Slot<T>>; BLOCKS],
    /// How many slots were ever used.
    used: AtomicU32,
    /// The first free slot's index and 1, and above it a number that changes with each taking.
    free: AtomicU64,
}

/// In a cache line of its own: neighbours belong to different threads.
#[repr(align(64))]
struct Slot<T> {
    state: AtomicU64,
    /// The next free slot's index and 1.
    next: AtomicU32,
    value: UnsafeCell<MaybeUninit<T>>,
}

impl<T> Slot<T> {
    /// One that was never used.
    fn new(generation: u64) -> Slot<T> {
        Slot {
            state: AtomicU64::new(generation << 32),
            next: AtomicU32::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }
}

/// 1, so that no small number is a handle. In a debug build the environment may say another one: a
/// program would take weeks to come to those that, as a signed number, are below zero.
fn first_generation() -> u64 {
    let said = cfg!(debug_assertions).then(|| std::env::var("FENCELOCK_TEST_GENERATION").ok());
    let said = said.flatten().and_then(|text| text.parse::<u32>().ok());
    said.map_or(1, |generation| u64::from(generation.max(1)))
}

// SAFETY: a value is moved in by one thread, shared by those that pinned it, and dropped by
// whichever is the last; the slot's state orders these.
unsafe impl<T: Send + Sync> Sync for Table<T> {}

impl<T> Table<T> {
    /// An empty table of a kind from 1 to 15.
    pub const fn new(kind: u64) -> Table<T> {
        assert!(kind > 0 && kind < 1 << KIND_BITS);
        Table {
            kind,
            blocks: [const { AtomicPtr::new(ptr::null_mut()) }; BLOCKS],
            used: AtomicU32::new(0),
            free: AtomicU64::new(0),
        }
    }

    /// Puts a value in; gives its handle, which is never 0. `None` when 2^28 slots are in use.
    pub fn insert(&self, value: T) -> Option<u64> {
        let index = match self.pop() {
            Some(index) => index,
            None => self.fresh()?,
        };
        let slot = self.slot(index)?;
        // SAFETY: the slot was taken off the free list, or never used: nobody else has it, as its
        // state is not live.
        unsafe { (*slot.value.get()).write(value) };
        let generation = slot.state.load(Ordering::Relaxed) >> 32;
        slot.state.store(generation << 32 | LIVE, Ordering::Release);
        Some(generation << 32 | u64::from(index) << KIND_BITS | self.kind)
    }

    /// Uses what a handle names; it stays there until the guard is dropped, also if the handle is
    /// freed meanwhile.
    pub fn pin(&self, handle: u64) -> Option<Pin<'_, T>> {
        self.enter(handle, LIVE)
    }

    /// Ends a handle: of all that try, one gets the guard. The value is dropped with the last
    /// guard.
    pub fn take(&self, handle: u64) -> Option<Pin<'_, T>> {
        self.enter(handle, 0)
    }

    /// Looks at everything whose handle is not freed.
    pub fn each(&self, mut look: impl FnMut(&T)) {
        for index in 0..self.used.load(Ordering::Acquire) {
            let Some(slot) = self.slot(index) else { continue };
            let generation = slot.state.load(Ordering::Relaxed) >> 32;
            let handle = generation << 32 | u64::from(index) << KIND_BITS | self.kind;
            if let Some(value) = self.pin(handle) {
                look(&value);
            }
        }
    }

    /// How many handles are not freed.
    pub fn live(&self) -> u64 {
        let used = self.used.load(Ordering::Acquire);
        let slots = (0..used).filter_map(|index| self.slot(index));
        slots.filter(|slot| slot.state.load(Ordering::Relaxed) & LIVE != 0).count() as u64
    }

    fn enter(&self, handle: u64, live: u64) -> Option<Pin<'_, T>> {
        if handle & ((1 << KIND_BITS) - 1) != self.kind {
            return None;
        }
        let index = (handle >> KIND_BITS) as u32 & ((1 << INDEX_BITS) - 1);
        let slot = self.slot(index)?;
        let mut state = slot.state.load(Ordering::Relaxed);
        loop {
            if state >> 32 != handle >> 32 || state & LIVE == 0 {
                return None;
            }
            let entered = (state & !LIVE | live) + 1;
            let swap = slot.state.compare_exchange_weak(
                state,
                entered,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            match swap {
                Ok(_) => return Some(Pin { table: self, slot, index }),
                Err(found) => state = found,
            }
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let place = index + FIRST;
        let block = place.ilog2() - FIRST.ilog2();
        let slots = self.blocks.get(block as usize)?.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        let offset = place - (FIRST << block);
        // SAFETY: the block has `FIRST << block` slots, and is never freed.
        Some(unsafe { &*slots.add(offset as usize) })
    }

    /// A slot that was never used.
    fn fresh(&self) -> Option<u32> {
        let index = self
            .used
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| {
                (used < (1 << INDEX_BITS) - FIRST).then_some(used + 1)
            })
            .ok()?;
        let block = (index + FIRST).ilog2() - FIRST.ilog2();
        let home = self.blocks.get(block as usize)?;
        if home.load(Ordering::Acquire).is_null() {
            let first = first_generation();
            let made: Box<[Slot<T>]> = (0..FIRST << block).map(|_| Slot::new(first)).collect();
            let made = Box::into_raw(made);
            let first = made.cast::<Slot<T>>();
            let none = ptr::null_mut();
            if home.compare_exchange(none, first, Ordering::AcqRel, Ordering::Acquire).is_err() {
                // SAFETY: another thread was quicker; nobody has seen this block.
                drop(unsafe { Box::from_raw(made) });
            }
        }
        Some(index)
    }

    fn pop(&self) -> Option<u32> {
        let mut head = self.free.load(Ordering::Acquire);
        loop {
            let index = (head as u32).checked_sub(1)?;
            let next = self.slot(index)?.next.load(Ordering::Relaxed);
            // The number above tells this head from one that was taken and put back meanwhile.
            let swapped = ((head >> 32) + 1) << 32 | u64::from(next);
            match self.free.compare_exchange_weak(
                head,
                swapped,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(index),
                Err(found) => head = found,
            }
        }
    }

    fn push(&self, slot: &Slot<T>, index: u32) {
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            slot.next.store(head as u32, Ordering::Relaxed);
            let swapped = head >> 32 << 32 | u64::from(index + 1);
            match self.free.compare_exchange_weak(
                head,
                swapped,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(found) => head = found,
            }
        }
    }

    /// Empties a slot whose handle has ended and which nobody uses any more.
    fn recycle(&self, slot: &Slot<T>, index: u32) {
        // SAFETY: the state says that the value is there, and that nobody else has it or can get it.
        unsafe { (*slot.value.get()).assume_init_drop() };
        let generation = slot.state.load(Ordering::Relaxed) >> 32;
        // A slot whose generations are used up is left alone, so that no handle is ever given twice.
        if generation < u64::from(u32::MAX) {
            slot.state.store((generation + 1) << 32, Ordering::Release);
            self.push(slot, index);
        }
    }
}

/// The use of a value in a table.
pub struct Pin<'a, T> {
    table: &'a Table<T>,
    slot: &'a Slot<T>,
    index: u32,
}

impl<T> Deref for Pin<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the pin keeps the value in its place, and it is only shared.
        unsafe { (*self.slot.value.get()).assume_init_ref() }
    }
}

impl<T> Drop for Pin<'_, T> {
    fn drop(&mut self) {
        let before = self.slot.state.fetch_sub(1, Ordering::Release);
        if before & (LIVE | PINS) == 1 {
            // After what the others did with it. A fence would do as well, but ThreadSanitizer does
            // not know fences.
            self.slot.state.load(Ordering::Acquire);
            self.table.recycle(self.slot, self.index);
        }
    }
}

#[cfg(test)]
mod tests;
