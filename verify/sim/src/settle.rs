//! The quiet part: everybody who waits is granted, everything is released, nothing is left.

use std::time::Duration;

use fencelock_engine::HoldId;
use fencelock_engine::request::{Beat, Op};

use crate::client::{Call, Open, Tag};
use crate::clock::{Instant, MS, SEC};
use crate::event::Event;
use crate::fault::Fault;
use crate::store::Reach;
use crate::world::World;

/// A client waits so long for copies of a try that was given up, when the store's clock went back:
/// twice what a try allows.
const UNDONE: Duration = Duration::from_secs(6);

impl World {
    /// For how long the store may keep what is held when the quiet part begins, or what a client that
    /// died had: what those who have it asked for, and not what others did before them.
    pub(crate) fn keeps(&mut self) {
        let rolled_back = |(_, fault): &(Instant, Fault)| matches!(fault, Fault::Failover { .. });
        if self.zk.is_some() || self.plan.faults.iter().any(rolled_back) {
            // What was over may be held again.
            self.kept = self.plan.longest_lease();
            return;
        }
        let actors = self.clients.iter().flat_map(|client| &client.actors);
        let asked = actors.flat_map(|actor| &actor.asked).copied().max().unwrap_or_default();
        self.kept = self.kept.max(asked).max(self.plan.options.lease);
    }

    /// When all waits of the quiet part must have ended.
    fn settled_by(&self) -> Instant {
        let options = &self.plan.options;
        let span = |duration: Duration| duration.as_nanos() as u64;
        let callers = (self.plan.clients * self.plan.actors) as u64;
        let heartbeat = options.stretched(options.heartbeat(), callers as u32);
        // Each caller ahead holds once more, for a few looks at the ledger, and each hand-over
        // may cost a poll.
        let turn = 60 * MS + 8 * self.plan.latency.1 + span(heartbeat);
        span(self.kept)
            + 4 * span(self.server.patience)
            + span(heartbeat)
            + 2 * span(options.request_timeout)
            + callers * turn
            + SEC
            + self.plan.zk_patience()
            + self.plan.quiet_at
    }

    /// Looks whether all waits and holds have ended.
    pub(crate) fn settle(&mut self) {
        if self.clients.iter().all(|client| client.idle()) && self.zk_is_idle() {
            for slot in 0..self.clients.len() {
                if slot % 2 == 0 {
                    self.close(slot);
                }
            }
            self.touch();
            let patience = self.server.patience;
            let mut after = patience * 6 + self.plan.options.request_timeout * 2;
            if self.disturbed() {
                // Who was passed over is forgotten after ten times its silence.
                let silence = self.server.silence.max(patience);
                after = after.max(silence * 11).max(UNDONE).max(self.plan.longest_lease());
            }
            let after = after.as_nanos() as u64 + SEC + self.plan.zk_patience();
            self.queue.push(self.now + after, Event::Residue { again: false });
            return;
        }
        if self.now > self.settled_by() {
            let stuck = self.clients.iter().enumerate().flat_map(|(slot, client)| {
                client.actors.iter().enumerate().filter_map(move |(number, actor)| {
                    let busy = !actor.open.is_empty() || !actor.held.is_empty();
                    busy.then(|| format!("c{slot}/{number}: {:?} {:?}", actor.open, actor.held))
                })
            });
            let stuck: Vec<String> = stuck.chain(self.zk_stuck()).collect();
            self.checks.fail("liveness", self.now, || stuck.join("; "));
            return;
        }
        self.queue.push(self.now + self.settle_step(), Event::Settle);
    }

    /// Closes a client.
    pub(crate) fn close(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        client.serial += 1;
        let tag: Tag = u64::from(client.serial);
        client.closing = Some(tag);
        let since = self.local(slot);
        let open = Open { tag, call: Call::Close, since };
        self.clients[slot].actors[0].open.push(open);
        self.trace.line(self.now, || format!("c{slot} closes"));
        self.call(slot, |engine, now| engine.close(now, tag));
        self.drain(slot);
    }

    /// Whether the store may keep what nobody told it to: after a failover it knows again what was
    /// released, after its clock went back it counts from an earlier time, and what a crashed
    /// client held lasts for its lease. Of a client whose clock jumped a copy may run when it has done
    /// with it.
    fn disturbed(&self) -> bool {
        let jumped = self.clients.iter().any(|client| client.jumped);
        jumped
            || self.plan.faults.iter().any(|(_, fault)| {
                matches!(
                    fault,
                    Fault::Failover { .. } | Fault::ClockStep { .. } | Fault::Crash { .. }
                )
            })
    }

    /// How many wait for the lock that most wait for.
    fn waiters(&mut self) -> usize {
        let clock = self.server.clock.read(self.now);
        let infos = self.names.clone().into_iter().filter_map(|name| self.peek(&name, clock));
        infos.map(|info| info.waiters.len()).max().unwrap_or_default()
    }

    /// Somebody else looks at every lock: any contact brings a lock up to date.
    fn touch(&mut self) {
        let clock = self.server.clock.read(self.now);
        let hold = HoldId(u128::MAX);
        for lock in self.names.clone() {
            let (lease, silence) = (self.plan.options.lease, self.plan.options.claim);
            let beat = Beat { silence, ..Beat::new(lock, hold, lease) };
            let mut nobody = Reach::default();
            nobody.listening.resize(self.server.polling.len(), false);
            // What it answers is of no interest.
            let _ = self.server.store.execute(clock, 0, &Op::Beat(vec![beat]), &mut nobody);
        }
    }

    /// Looks whether anything is left in a client's engine once its handles are given back.
    fn left_over(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        for lock in client.locks.clone() {
            client.engine.forget(lock);
        }
        let left = client.engine.leftovers();
        if !left.is_empty() && client.up {
            self.checks.fail("no residue", self.now, || format!("c{slot} keeps {left:?}"));
        }
    }

    /// Whether some of those who were passed over are left, fewer than before: each contact looks at
    /// two of them, and where the clock went back their silence counts only from then on.
    fn fades(&mut self) -> bool {
        if self.zk.is_some() || !self.checks.token.went_back {
            return false;
        }
        let clock = self.server.clock.read(self.now);
        let names = self.names.clone();
        let silent = |name| {
            let info = self.peek(name, clock);
            info.map_or(0, |info| info.waiters.iter().filter(|it| it.silent).count())
        };
        let most = names.iter().map(silent).max().unwrap_or_default();
        let fewer = most > 0 && most < self.passed_over;
        if fewer {
            self.passed_over = most;
            self.touch();
            self.touch();
        }
        fewer
    }

    /// Looks whether anything is left at the store, and in the engines: once, or when what a push of
    /// long ago set off just now is over.
    pub(crate) fn residue(&mut self, again: bool) {
        let asks = |client: &crate::client::Client| {
            client.up && client.engine.leftovers().iter().any(|(what, _)| *what == "flights")
        };
        if !again && self.clients.iter().any(asks) {
            let after = self.plan.options.request_timeout * 4;
            self.queue.push(self.now + after.as_nanos() as u64, Event::Residue { again: true });
            return;
        }
        if self.fades() {
            let silence = self.server.silence.max(self.server.patience) * 11;
            let at = self.now + silence.as_nanos() as u64;
            return self.queue.push(at, Event::Residue { again: true });
        }
        self.done = true;
        for slot in 0..self.clients.len() {
            self.left_over(slot);
            let actors = &self.clients[slot].actors;
            if let Some(open) = actors.iter().find_map(|actor| actor.open.first()) {
                let text = format!("c{slot} is not closed: {open:?}");
                self.checks.fail("one completion", self.now, || text);
            }
        }
        if self.zk.is_some() {
            return self.zk_residue();
        }
        if self.disturbed() {
            // Whoever was rolled back waits for nobody. The first contact passes them over, and each
            // forgets two of them.
            for _ in 0..=self.waiters().div_ceil(2) {
                self.touch();
            }
        }
        let clock = self.server.clock.read(self.now);
        let living: Vec<usize> = self.clients.iter().map(|client| client.incarnation).collect();
        for lock in 0..self.names.len() {
            let name = self.names[lock].clone();
            let Some(info) = self.peek(&name, clock) else { continue };
            let holds = info.holds.iter().filter(|hold| !hold.expires_in.is_zero());
            let held: Vec<_> = holds.map(|hold| (hold.hold, hold.client.clone())).collect();
            let waiting = info.waiters.iter().filter(|waiter| {
                crate::store::incarnation_of(&waiter.client)
                    .is_some_and(|incarnation| living.contains(&incarnation))
            });
            let waiting: Vec<_> = waiting.map(|w| (w.hold, w.client.clone())).collect();
            if !held.is_empty() || !waiting.is_empty() {
                self.checks.fail("no residue", self.now, || {
                    format!("{name}: held by {held:?}, queued {waiting:?}")
                });
            }
        }
    }
}
