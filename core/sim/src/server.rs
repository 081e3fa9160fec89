//! The store's side of the world: its clock, its troubles, and what it publishes.

use fencelock_engine::reply::{Abandoned, Body, Failure, LockInfo, Reply, Standing};
use fencelock_engine::request::Op;

use crate::clock::{Instant, StoreClock};
use crate::cover::Cover;
use crate::network::ConnId;
use crate::store::{Reach, Store};
use crate::world::World;

/// The store and the machine it runs on.
pub struct Server {
    /// The store.
    pub store: Box<dyn Store>,
    /// Its clock.
    pub clock: StoreClock,
    /// It stands still until then.
    pub paused_until: Instant,
    /// It is not there until then.
    pub down_until: Instant,
    /// It refuses until then.
    pub refusing_until: Instant,
    /// It may not publish until then.
    pub mute_until: Instant,
    /// The store's own view of who listens.
    pub reach: Reach,
    /// Which incarnations have no inbox.
    pub polling: Vec<bool>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl World {
    /// Executes a request, publishes what follows from it, and lets the checkers see it.
    pub(crate) fn execute(
        &mut self,
        incarnation: usize,
        op: &Op,
        conn: ConnId,
    ) -> Result<Reply, Failure> {
        let clock = self.server.clock.read(self.now);
        self.listen();
        let probe = self.probe(op, conn, clock);
        let result = self.server.store.execute(clock, incarnation, op, &mut self.server.reach);
        let sent = std::mem::take(&mut self.server.reach.sent);
        self.trace.mix(self.now ^ incarnation as u64);
        if let Ok(reply) = &result {
            self.trace.mix(reply.now);
            if let Body::Acquire(state) = &reply.body {
                self.trace.mix(state.token);
                if state.standing == Standing::Late {
                    self.cover.add(Cover::NotAfterRefused);
                }
            }
        }
        self.trace.line(self.now, || format!("store: client {incarnation} {op:?} -> {result:?}"));
        if let Some(before) = probe {
            let after = self.peek(&before.name, clock);
            let result = crate::check::only_holder(op, &before, after.as_ref());
            if let Err(what) = result {
                self.checks.fail("only the holder releases", self.now, || what);
            }
        }
        for (to, push) in &sent {
            self.trace.line(self.now, || format!("store publishes to {to}: {push:?}"));
            self.publish(*to, push);
        }
        let muted = self.server.reach.muted;
        let names = &self.names;
        self.checks.executed(self.now, clock, incarnation, op, &result, &sent, names, muted);
        self.server.reach.sent = sent;
        self.server.reach.sent.clear();
        result
    }

    /// Brings the store's view of its subscribers up to date.
    fn listen(&mut self) {
        let reach = &mut self.server.reach;
        reach.muted = self.now < self.server.mute_until;
        reach.listening.clear();
        reach.listening.resize(self.server.polling.len(), false);
        let recent = self.conns.len().saturating_sub(64);
        for conn in &self.conns[recent..] {
            if conn.open && !self.server.polling[conn.incarnation] {
                reach.listening[conn.incarnation] = true;
            }
        }
    }

    /// Now and then: what the store says of the lock before a request that may only touch its
    /// own hold.
    fn probe(&mut self, op: &Op, conn: ConnId, clock: u64) -> Option<LockInfo> {
        let name = match op {
            Op::Release(release) => &release.lock,
            Op::Beat(beats) if beats.len() == 1 => &beats[0].lock,
            _ => return None,
        };
        // No draw: a look must not change what happens next.
        if !(self.now ^ conn as u64).is_multiple_of(8) {
            return None;
        }
        self.peek(&name.clone(), clock)
    }

    /// What the store says of a lock; it changes nothing.
    pub(crate) fn peek(&mut self, name: &fencelock_engine::Name, clock: u64) -> Option<LockInfo> {
        let mut nobody = Reach::default();
        nobody.listening.resize(self.server.polling.len(), false);
        let op = Op::Inspect(name.clone());
        match self.server.store.execute(clock, 0, &op, &mut nobody) {
            Ok(Reply { body: Body::Inspect(info), .. }) => info,
            _ => None,
        }
    }

    /// Counts what a push is met by.
    pub(crate) fn count_abandoned(&mut self, abandoned: Abandoned) {
        match abandoned {
            Abandoned::No => {}
            Abandoned::Yes => self.cover.add(Cover::AbandonedYes),
            Abandoned::Unknown => self.cover.add(Cover::AbandonedUnknown),
        }
    }
}
