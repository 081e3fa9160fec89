//! What is to happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// A queue of events. Those of one instant come out as they went in.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<(Instant, u64, u32)>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    serial: u64,
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
        self.heap.push(Reverse((at, self.serial, slot)));
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse((at, _, slot)) = self.heap.pop()?;
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        Some((at, event))
    }
}
