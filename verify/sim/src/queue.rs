//! What is to happen, in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::Instant;

/// A queue of events. Those of one instant come out as they went in.
#[derive(Debug)]
pub struct Queue<E> {
    // In one number, which compares without a branch: when, which came first, where the event lies.
    heap: BinaryHeap<Reverse<u128>>,
    slots: Vec<Option<E>>,
    free: Vec<u32>,
    serial: u32,
    /// The serial number of the event that was taken last.
    taken: u32,
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), serial: 0, taken: 0 }
    }
}

impl<E> Queue<E> {
    /// Adds an event.
    pub fn push(&mut self, at: Instant, event: E) {
        self.serial += 1;
        self.place(at, self.serial, event);
    }

    /// Adds again, for later, the event that was taken last. It comes out before what went in after
    /// it: whatever puts a stream of events off leaves them in their order.
    pub fn put_off(&mut self, at: Instant, event: E) {
        self.place(at, self.taken, event);
    }

    fn place(&mut self, at: Instant, serial: u32, event: E) {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize] = Some(event);
        let place = u64::from(serial) << 32 | u64::from(slot);
        self.heap.push(Reverse(u128::from(at) << 64 | u128::from(place)));
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(Instant, E)> {
        let Reverse(key) = self.heap.pop()?;
        let (at, slot) = ((key >> 64) as Instant, key as u32);
        self.taken = (key >> 32) as u32;
        self.free.push(slot);
        let event = self.slots[slot as usize].take()?;
        Some((at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_off_keeps_its_order() {
        let mut queue = Queue::default();
        for (at, event) in [(1, 'a'), (2, 'b'), (3, 'c')] {
            queue.push(at, event);
        }
        // Off until 5, and when that has come, until 7; meanwhile others are put off to 7 at once.
        let (_, a) = queue.pop().unwrap();
        queue.put_off(5, a);
        for _ in 0..2 {
            let (_, later) = queue.pop().unwrap();
            queue.put_off(7, later);
        }
        let (at, a) = queue.pop().unwrap();
        assert_eq!((at, a), (5, 'a'));
        queue.put_off(7, a);
        queue.push(7, 'd');
        let order: String = std::iter::from_fn(|| queue.pop()).map(|(_, event)| event).collect();
        assert_eq!(order, "abcd");
    }
}
