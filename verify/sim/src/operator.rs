//! What operators do: they break locks, and say how many permits there are.

use fencelock_engine::request::Break;

use crate::client::{Call, Open};
use crate::world::World;

/// The most permits that a semaphore is given.
pub(crate) const MOST: u64 = 6;

impl World {
    /// An operator looks who has a lock, and then breaks what it saw.
    pub(crate) fn look(&mut self, slot: usize, actor: usize, index: usize) {
        let tag = self.tag(slot, actor);
        let lock = self.clients[slot].actors[actor].held[index].lock;
        let name = self.names[lock].clone();
        let since = self.local(slot);
        let call = Call::Look { lock };
        self.clients[slot].actors[actor].open.push(Open { tag, call, since });
        self.call(slot, |engine, now| engine.inspect(now, &name, tag));
        self.drain(slot);
    }

    pub(crate) fn break_lock(&mut self, slot: usize, actor: usize, lock: usize, token: u64) {
        let tag = self.tag(slot, actor);
        let what = Break { lock: self.names[lock].clone(), token, hold: None };
        let since = self.local(slot);
        self.clients[slot].actors[actor].open.push(Open { tag, call: Call::Break, since });
        self.call(slot, |engine, now| engine.break_lock(now, what, tag));
        self.drain(slot);
    }

    /// Another number of permits of what a caller holds. Whoever comes from now on says that.
    pub(crate) fn resize(&mut self, slot: usize, actor: usize, index: usize) {
        let tag = self.tag(slot, actor);
        let lock = self.clients[slot].actors[actor].held[index].lock;
        let name = self.names[lock].clone();
        let of = self.dice.between(1, MOST) as u32;
        self.sizes[lock] = of;
        self.trace.line(self.now, || format!("c{slot} resizes lock {lock} to {of} as {tag:x}"));
        let since = self.local(slot);
        self.clients[slot].actors[actor].open.push(Open {
            tag,
            call: Call::Resize { lock },
            since,
        });
        self.call(slot, |engine, now| engine.resize(now, &name, of, tag));
        self.drain(slot);
    }
}
