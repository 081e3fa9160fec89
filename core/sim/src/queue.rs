//! What is to happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// A queue of events. Those of one instant come out as they went in.
#[derive(Debug)]
pub struct Queue<E> {
    // When, and in one number which came first and where the event lies.
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    serial: u32,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), serial: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Instant, event: E) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize] = Some(event);
        self.serial += 1;
        self.heap.push(Reverse((at, u64::from(self.serial) << 32 | u64::from(slot))));
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse((at, place)) = self.heap.pop()?;
        let slot = place as u32;
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        Some((at, event))
    }
}
