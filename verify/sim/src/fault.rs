//! What goes wrong, and when it is over.

use fencelock_engine::plant::{self, Bug};

use crate::clock::{Instant, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::world::World;

/// What a restarted store remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// All that it acknowledged.
    Kept,
    /// Nothing.
    Lost,
}

/// How a store refuses for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusing {
    /// Every write.
    ReadOnly,
    /// Whatever needs memory.
    MemoryFull,
}

/// A fault. Spans are in nanoseconds, clock steps in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Fault {
    /// The connection breaks; both sides notice soon.
    Cut { slot: usize },
    /// Nothing passes in the given directions, then the connection breaks.
    BlackHole { slot: usize, up: bool, down: bool, span: u64 },
    /// What the store says reaches the client late.
    Slow { slot: usize, by: u64, span: u64 },
    /// The client's process stands still.
    Pause { slot: usize, span: u64 },
    /// The client's process dies, and another one starts later.
    Crash { slot: usize, span: u64 },
    /// The client's clock jumps forward: its holds end early, which is safe.
    Jump { slot: usize, by: u64 },
    /// The one machine on which all clients and the store run sleeps: every clock counts it.
    Suspend { by: u64 },
    /// The store stands still.
    ServerPause { span: u64 },
    /// The store restarts.
    Restart { memory: Memory, span: u64 },
    /// A replica takes over that is `lag` behind and whose clock differs.
    Failover { lag: u64, skew: i64, span: u64 },
    /// A replica takes over that lacks nothing, and whose clock is so far ahead of the first server's: by
    /// no more than clients allow for.
    TakeOver { ahead: u64, span: u64 },
    /// The store's clock steps.
    ClockStep { micros: i64 },
    /// Every key goes.
    Flush,
    /// One lock goes.
    Evict { lock: usize },
    /// The store refuses.
    Refuse { how: Refusing, span: u64 },
    /// The store may not publish.
    Mute { span: u64 },
    /// The store's work takes so many times as long, where it takes any time at all.
    Overload { factor: u64, span: u64 },
    /// The store forgets its scripts.
    ScriptFlush,
    /// Something of ZooKeeper's ensemble.
    Zk(crate::zookeeper::ZkFault),
    /// Another program's key stands where a lock's record, or its queue, should be.
    Foreign { lock: usize, queue: bool, span: u64 },
}

impl Fault {
    /// The same, lasting no longer than `most`.
    pub(crate) fn within(mut self, most: u64) -> Fault {
        match &mut self {
            Fault::BlackHole { span, .. }
            | Fault::Slow { span, .. }
            | Fault::Pause { span, .. }
            | Fault::Crash { span, .. }
            | Fault::ServerPause { span }
            | Fault::Overload { span, .. }
            | Fault::Restart { span, .. }
            | Fault::Failover { span, .. }
            | Fault::TakeOver { span, .. }
            | Fault::Refuse { span, .. }
            | Fault::Foreign { span, .. }
            | Fault::Mute { span } => *span = most.min(*span),
            Fault::Zk(fault) => *fault = fault.within(most),
            _ => {}
        }
        self
    }

    /// How long it troubles renewals.
    fn span(self) -> u64 {
        match self {
            // A full memory must not trouble them at all.
            Fault::Refuse { how: Refusing::MemoryFull, .. } | Fault::Mute { .. } => 0,
            Fault::BlackHole { span, .. }
            | Fault::Pause { span, .. }
            | Fault::Crash { span, .. }
            | Fault::ServerPause { span }
            | Fault::Overload { span, .. }
            | Fault::Restart { span, .. }
            | Fault::Failover { span, .. }
            | Fault::TakeOver { span, .. }
            | Fault::Refuse { span, .. } => span,
            Fault::Slow { by, span, .. } => by + span,
            Fault::Jump { by, .. } | Fault::Suspend { by } => by,
            Fault::Zk(fault) => fault.span(),
            _ => 0,
        }
    }
}

impl World {
    /// Plans what must happen before the faults themselves.
    pub(crate) fn arm_faults(&mut self) {
        for (index, (at, fault)) in self.plan.faults.clone().into_iter().enumerate() {
            if let Fault::Failover { lag, .. } = fault {
                self.queue.push(at.saturating_sub(lag), Event::Snapshot);
            }
            self.queue.push(at, Event::Fault(index));
        }
    }

    /// Lets a fault happen.
    pub(crate) fn strike(&mut self, index: usize) {
        let (_, fault) = self.plan.faults[index];
        self.trace.line(self.now, || format!("FAULT {fault:?}"));
        let held = self.checks.exclusion.any_held();
        self.trouble(fault.span());
        match fault {
            Fault::Cut { slot } => {
                self.cut(slot, 0);
                self.cover.add(Cover::Cut);
            }
            Fault::BlackHole { slot, up, down, span } => {
                self.black_hole(slot, up, down, span);
                for (blocked, case) in [(up, Cover::BlockedUp), (down, Cover::BlockedDown)] {
                    if blocked {
                        self.cover.add(case);
                    }
                }
            }
            Fault::Slow { slot, by, span } => {
                self.slow(slot, by, span);
                self.cover.add(Cover::Slowed);
            }
            Fault::Pause { slot, span } => self.pause(slot, span),
            Fault::Crash { slot, span } => self.crash(slot, span),
            Fault::Jump { slot, by } => {
                self.clients[slot].jumped = true;
                self.jump(slot, by);
                self.cover.add(Cover::ClockJumped);
            }
            Fault::Suspend { by } => {
                self.cover.add(Cover::Suspended);
                self.server.clock.step((by / 1_000) as i64);
                for slot in 0..self.clients.len() {
                    self.jump(slot, by);
                }
            }
            Fault::ServerPause { span } => {
                self.server.paused_until = self.server.paused_until.max(self.now + span);
                self.cover.add(Cover::ServerPaused);
            }
            Fault::Restart { memory, span } => {
                if memory == Memory::Lost {
                    self.server.store.wipe();
                    self.forgets(None);
                    if held {
                        self.cover.add(Cover::MemoryLostWhileHeld);
                    }
                } else {
                    self.cover.add(Cover::Restarted);
                }
                self.server_down(span);
            }
            Fault::Failover { skew, span, .. } => {
                self.server.store.rollback();
                let before = self.server.clock.read(self.now);
                // Within what clients allow for, and counted from the first server.
                let skew = if self.plan.short.is_some() { skew - self.server.ahead } else { skew };
                self.server.ahead += skew;
                self.server.clock.step(skew);
                self.tell_step(skew);
                if self.plan.short.is_some() {
                    let clock = self.server.clock.read(self.now);
                    self.checks.forgets_unconfirmed(clock);
                } else if !plant::on(Bug::FailoverNotExcused) {
                    self.forgets(None);
                }
                if skew < 0 {
                    self.checks.token.goes_back(before, self.server.clock.read(self.now));
                    self.checks.sharing.goes_back();
                }
                self.checks.rolled_back(self.now);
                if held {
                    self.cover.add(Cover::FailoverWhileHeld);
                }
                if skew != 0 {
                    self.cover.add(Cover::FailoverSkewed);
                }
                self.server_down(span);
            }
            Fault::TakeOver { ahead, span } => {
                let micros = (ahead / US) as i64 - self.server.ahead;
                let before = self.server.clock.read(self.now);
                self.server.clock.step(micros);
                self.server.ahead += micros;
                if micros < 0 {
                    self.checks.token.goes_back(before, self.server.clock.read(self.now));
                    self.checks.sharing.goes_back();
                }
                self.cover.add(Cover::TakenOver);
                self.server_down(span);
            }
            Fault::ClockStep { micros } => {
                self.rest();
                let before = self.server.clock.read(self.now);
                self.server.clock.step(micros);
                self.tell_step(micros);
                if micros > 0 {
                    self.checks.breaks(self.now, None);
                } else {
                    self.checks.token.goes_back(before, self.server.clock.read(self.now));
                    self.checks.sharing.goes_back();
                }
                self.cover.add(if micros > 0 { Cover::ClockForward } else { Cover::ClockBack });
            }
            Fault::Flush => {
                self.server.store.wipe();
                self.forgets(None);
                if held {
                    self.cover.add(Cover::MemoryLostWhileHeld);
                }
            }
            Fault::Evict { lock } => {
                let name = self.names[lock].clone();
                self.server.store.evict(&name);
                self.cover.add(Cover::Evicted);
                self.forgets(Some(lock));
            }
            Fault::Refuse { how, span } => {
                self.server.store.refuse(Some(how));
                self.server.refusing_until = self.now + span;
                self.queue.push(self.now + span, Event::Mended);
                self.cover.add(Cover::Refusing);
            }
            Fault::Mute { span } => {
                self.server.mute_until = self.server.mute_until.max(self.now + span);
                self.cover.add(Cover::Muted);
            }
            Fault::Overload { factor, span } => self.slow_down(factor, span),
            Fault::Zk(fault) => self.strike_zk(fault),
            Fault::ScriptFlush => {
                self.server.store.forget_scripts();
                self.cover.add(Cover::ScriptsForgotten);
            }
            Fault::Foreign { lock, queue, span } => {
                self.foreign(lock, Some(queue));
                self.server.foreign[lock] = self.now + span;
                self.queue.push(self.now + span, Event::Cleared { lock });
                self.cover.add(Cover::ForeignKey);
            }
        }
    }

    /// Puts another program's key in the place of a lock's, or takes it away.
    pub(crate) fn foreign(&mut self, lock: usize, queue: Option<bool>) {
        let name = self.names[lock].clone();
        self.server.store.foreign(&name, queue);
        self.forgets(Some(lock));
    }

    /// Whether another program's key has stood in a lock's place in this run.
    pub(crate) fn was_foreign(&self, lock: usize) -> bool {
        self.server.foreign[lock] > 0
    }

    fn forgets(&mut self, lock: Option<usize>) {
        let clock = self.server.clock.read(self.now);
        self.tell_forgot();
        self.checks.forgets(self.now, clock, lock);
    }

    fn server_down(&mut self, span: u64) {
        self.server.down_until = self.server.down_until.max(self.now + span);
        for slot in 0..self.clients.len() {
            self.cut(slot, span / 2);
        }
        self.close_all();
    }

    fn jump(&mut self, slot: usize, by: u64) {
        let client = &mut self.clients[slot];
        client.clock.jump(by);
        // Its timer is a moment late, as after a pause.
        client.paused_until = client.paused_until.max(self.now);
        let wanted = client.wake_at;
        self.tell_pause(slot, self.now);
        self.tell_trust(slot);
        self.rearm(slot, wanted);
    }

    fn pause(&mut self, slot: usize, span: u64) {
        let client = &mut self.clients[slot];
        client.paused_until = client.paused_until.max(self.now + span);
        let until = client.paused_until;
        self.tell_pause(slot, until);
        let client = &mut self.clients[slot];
        if plant::on(Bug::TimerSleepsToo) {
            client.asleep += span;
        }
        let past_lease = span > self.plan.options.lease.as_nanos() as u64;
        if past_lease && client.holds() {
            self.cover.add(Cover::PausedPastLease);
        }
    }

    /// The faulty part is over: everything that can be mended is.
    pub(crate) fn quieten(&mut self) {
        self.trace.line(self.now, || "QUIET".to_owned());
        self.quiet = true;
        self.keeps();
        self.server.store.refuse(None);
        for lock in 0..self.names.len() {
            if self.server.foreign[lock] > self.now {
                self.foreign(lock, None);
            }
        }
        for slot in 0..self.clients.len() {
            self.unblock(slot);
            if !self.clients[slot].up {
                self.restart(slot);
            }
        }
        self.quieten_zk();
        self.hurry_actors();
        self.queue.push(self.now + self.settle_step(), Event::Settle);
    }

    /// How often the quiet part looks whether all is settled.
    pub(crate) fn settle_step(&self) -> Instant {
        self.plan.options.claim.as_nanos() as u64 / 4
    }
}
