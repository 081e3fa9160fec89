//! The store's side of the world: its clock, its troubles, and what it publishes.

use std::time::Duration;

use fencelock_engine::Grant;
use fencelock_engine::redis::sync::{Confirming, grants, judge};
use fencelock_engine::reply::{
    Abandoned, Body, Broken, Failure, LockInfo, Push, RefusalKind, Reply, Standing,
};
use fencelock_engine::request::Op;

use crate::check::{Contact, StoreGrant, permits_of};
use crate::client::Who;
use crate::clock::{Instant, StoreClock};
use crate::cost::Line;
use crate::cover::Cover;
use crate::network::ConnId;
use crate::store::{Reach, Store, incarnation_of};
use crate::world::World;

/// The store and the machine it runs on.
pub struct Server {
    /// The store.
    pub store: Box<dyn Store>,
    /// Its clock.
    pub clock: StoreClock,
    /// How far it is ahead of the first server's, in microseconds, since another one took over.
    pub ahead: i64,
    /// It stands still until then.
    pub paused_until: Instant,
    /// It is not there until then.
    pub down_until: Instant,
    /// It refuses until then.
    pub refusing_until: Instant,
    /// It may not publish until then.
    pub mute_until: Instant,
    /// Until when another program's key stands in each lock's place; 0 for never.
    pub foreign: Vec<Instant>,
    /// The store's own view of who listens.
    pub reach: Reach,
    /// The connections that it takes to be open, of each incarnation, oldest first.
    pub open: Vec<Vec<ConnId>>,
    /// Which incarnations have no inbox.
    pub polling: Vec<bool>,
    /// The longest claim or silence that a waiter asked for: where answers are late, both are longer.
    pub patience: Duration,
    /// The longest silence that a waiter announced: those with many ahead of them are heard seldom.
    pub silence: Duration,
    /// What waits to be served, where work costs time.
    pub line: Line,
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
        self.server.reach.muted = self.now < self.server.mute_until;
        let shown = self.shown(op);
        let probe = self.probe(op, conn, clock, shown);
        if let Op::Beat(beats) = op {
            let longest = beats.iter().map(|beat| beat.silence).max().unwrap_or_default();
            self.server.silence = self.server.silence.max(longest);
        }
        let mut new = false;
        if let Op::Acquire(ask) = op {
            if let Some(wait) = &ask.wait {
                let most = wait.claim.max(wait.silence);
                self.server.patience = self.server.patience.max(most);
            }
            let lock = self.names.iter().position(|name| *name == ask.lock);
            new = lock.is_some_and(|lock| self.checks.queue.is_new(lock, ask.hold));
            if !new {
                self.cover.add(Cover::AcquireRepeated);
            }
        }
        let before = self.locks_now(clock);
        let result = self.server.store.execute(clock, incarnation, op, &mut self.server.reach);
        self.rested(clock);
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
        if let (Op::Break(what), Ok(Reply { body: Body::Break(Broken::Ended(_)), .. })) =
            (op, &result)
        {
            self.tell_broke(&what.lock);
        }
        self.owners(op, &result, clock);
        if new {
            self.for_nobody(incarnation, op, &result);
        }
        if let Some(before) = probe {
            let after = self.peek(&before.name, clock);
            let result = crate::check::only_holder(op, &before, after.as_ref());
            let copy = crate::check::copies(op, &before, after.as_ref(), shown);
            if let Err(what) = copy {
                self.checks.fail("lease arithmetic", self.now, || what);
            }
            if let Err(what) = result {
                self.checks.fail("only the holder releases", self.now, || what);
            }
        }
        for (to, push) in &sent {
            self.trace.line(self.now, || format!("store publishes to {to}: {push:?}"));
            self.publish(*to, push);
        }
        let muted = self.server.reach.muted;
        let seen = self.looked(clock, op, &result, &sent, before);
        let names = &self.names;
        self.checks.executed(self.now, clock, incarnation, op, &result, &sent, names, muted, seen);
        self.server.reach.sent = sent;
        self.server.reach.sent.clear();
        self.told_of_waiter(op, &result, conn, clock);
        self.confirm(op, result)
    }

    /// What the client is told, where a replica must have what was granted. It has it from then on.
    fn confirm(&mut self, op: &Op, mut result: Result<Reply, Failure>) -> Result<Reply, Failure> {
        if let (Some(short), Ok(reply)) = (self.plan.short, &mut result)
            && Confirming::takes(op)
            && grants(&reply.body)
        {
            let by = if self.dice.chance(short) { 0 } else { 1 };
            match by {
                0 => self.cover.add(Cover::Unconfirmed),
                _ => self.server.store.snapshot(),
            }
            judge(reply, by, 1);
        }
        result
    }

    /// Where several may hold a lock together: all locks, as the store has them.
    fn locks_now(&mut self, clock: u64) -> Vec<Option<LockInfo>> {
        if !self.checks.sharing.on {
            return Vec::new();
        }
        self.names.clone().iter().map(|name| self.peek(name, clock)).collect()
    }

    /// What a request changed of them: the grants that it led to.
    fn looked(
        &mut self,
        clock: u64,
        op: &Op,
        result: &Result<Reply, Failure>,
        sent: &[(usize, Push)],
        before: Vec<Option<LockInfo>>,
    ) -> Vec<StoreGrant> {
        let mut grants = Vec::new();
        for (lock, before) in before.into_iter().enumerate() {
            let name = self.names[lock].clone();
            let after = self.peek(&name, clock);
            let foreign = self.now <= self.server.foreign[lock];
            if let (Op::Acquire(ask), Err(Failure::Refused(refusal))) = (op, result)
                && ask.lock == name
                && matches!(refusal.kind, RefusalKind::OtherPermits { .. })
                && !foreign
            {
                self.cover.add(Cover::OtherPermitsRefused);
            }
            let contact = Contact { clock, op, result, sent, foreign };
            let (before, after) = (before.as_ref(), after.as_ref());
            if let Some(of) = after.and_then(permits_of) {
                self.checks.exclusion.sized(self.now, lock, of);
            }
            match self.checks.sharing.contact(lock, &name, &contact, before, after) {
                Ok(new) => grants.extend(new),
                Err((promise, what)) => self.checks.fail(promise, self.now, || what),
            }
        }
        grants
    }

    /// The checkers hear which locks the store has forgotten.
    fn rested(&mut self, clock: u64) {
        for name in self.server.store.forgotten() {
            let Some(lock) = self.names.iter().position(|it| *it == name) else { continue };
            self.trace.line(self.now, || format!("store: {name} had rested and is forgotten"));
            self.cover.add(Cover::Forgotten);
            self.checks.rests(self.now, clock, lock);
        }
    }

    /// A store forgets by itself, too, before its clock is set.
    pub(crate) fn rest(&mut self) {
        let clock = self.server.clock.read(self.now);
        for name in self.names.clone() {
            self.peek(&name, clock);
        }
        self.rested(clock);
    }

    /// Now and then: whoever holds a lock that somebody waits for has been told so.
    fn told_of_waiter(
        &mut self,
        op: &Op,
        result: &Result<Reply, Failure>,
        conn: ConnId,
        clock: u64,
    ) {
        let Some(name) = crate::check::queued(op, result) else { return };
        // No draw: a look must not change what happens next.
        if !(self.now ^ conn as u64).is_multiple_of(4) {
            return;
        }
        let Some(info) = self.peek(&name.clone(), clock) else { return };
        let listening = &self.server.reach.listening;
        let hears = |client: &str| {
            incarnation_of(client).is_some_and(|it| listening.get(it) == Some(&true))
        };
        if let Err(what) = self.checks.told.waits(&info, hears) {
            self.checks.fail("queue order", self.now, || what);
        }
    }

    /// An acquire takes no effect any more when its client has done with it.
    fn for_nobody(&mut self, incarnation: usize, op: &Op, result: &Result<Reply, Failure>) {
        let (Op::Acquire(ask), Ok(Reply { body: Body::Acquire(state), .. })) = (op, result) else {
            return;
        };
        let client = self.clients.iter().find(|it| it.up && it.incarnation == incarnation);
        let Some(client) = client.filter(|it| it.closing.is_none()) else { return };
        // A store's clock that went back is waited out for a time only, and to a client's that
        // jumped forward it looks so.
        let excused = self.checks.token.went_back || client.jumped;
        let takes_effect = matches!(state.standing, Standing::Granted | Standing::Queued);
        if takes_effect && !client.engine.knows(ask.hold) && !excused {
            self.checks.fail("no residue", self.now, || {
                format!("{}: {:?} takes effect, and nobody wants it any more", ask.lock, ask.hold)
            });
        }
    }

    /// An explicit owner who calls is never left queued while the owner has the lock.
    fn owners(&mut self, op: &Op, result: &Result<Reply, Failure>, clock: u64) {
        match (op, result) {
            (Op::Acquire(ask), Ok(Reply { body: Body::Acquire(state), .. })) => {
                let owner = ask.owner.clone();
                self.joins(&ask.lock, owner, ask.hold, state, clock);
            }
            (Op::Beat(beats), Ok(Reply { body: Body::Beat(states), .. })) => {
                for (beat, state) in beats.iter().zip(states) {
                    let (Ok(state), owner) = (state, self.checks.queue.owner_of(beat.hold)) else {
                        continue;
                    };
                    self.joins(&beat.lock, owner, beat.hold, state, clock);
                }
            }
            _ => {}
        }
    }

    fn joins(
        &mut self,
        name: &fencelock_engine::Name,
        owner: Option<fencelock_engine::OwnerId>,
        hold: fencelock_engine::HoldId,
        state: &fencelock_engine::reply::State,
        clock: u64,
    ) {
        let Some(owner) = owner else { return };
        let Some(lock) = self.names.iter().position(|it| it == name) else { return };
        let waited = self.checks.queue.heard_at(lock, hold).is_some();
        let queued = state.standing == Standing::Queued;
        if !queued && (!waited || state.standing != Standing::Granted) {
            return;
        }
        let Some(info) = self.peek(name, clock) else { return };
        let live = info.holds.iter().filter(|it| !it.expires_in.is_zero()).count();
        if !queued {
            if live > 1 {
                self.cover.add(Cover::OwnerJoinedLate);
            }
        } else if live > 0 && info.owner.as_deref() == Some(owner.as_str()) {
            self.checks.fail("owners", self.now, || {
                format!("{name}: {owner:?} has the lock, and its {hold:?} is left in the queue")
            });
        }
    }

    /// The store takes a new connection.
    pub(crate) fn opened(&mut self, conn: ConnId) {
        let incarnation = self.conns[conn].incarnation;
        self.server.open[incarnation].push(conn);
        self.listen(incarnation);
    }

    /// The store finds a connection gone.
    pub(crate) fn closed(&mut self, conn: ConnId) {
        let it = &mut self.conns[conn];
        it.open = false;
        let incarnation = it.incarnation;
        self.server.open[incarnation].retain(|it| *it != conn);
        self.listen(incarnation);
    }

    /// The store finds all of them gone.
    pub(crate) fn close_all(&mut self) {
        for conns in &mut self.server.open {
            for conn in conns.drain(..) {
                self.conns[conn].open = false;
            }
        }
        self.server.reach.listening.fill(false);
        self.checks.told.unclear();
    }

    /// Brings the store's view of a subscriber up to date.
    fn listen(&mut self, incarnation: usize) {
        // What was said meanwhile was said to nobody.
        self.checks.told.unclear();
        let open = !self.server.open[incarnation].is_empty();
        self.server.reach.listening[incarnation] = open && !self.server.polling[incarnation];
    }

    /// The highest token that renewals of a beat's hold showed before.
    fn shown(&self, op: &Op) -> u64 {
        let Op::Beat(beats) = op else { return 0 };
        let [beat] = &beats[..] else { return 0 };
        let lock = self.names.iter().position(|name| *name == beat.lock);
        lock.map_or(0, |lock| self.checks.shown(lock, beat.hold))
    }

    /// Now and then: what the store says of the lock before a request that may only touch its
    /// own hold.
    fn probe(&mut self, op: &Op, conn: ConnId, clock: u64, shown: u64) -> Option<LockInfo> {
        let name = match op {
            Op::Release(release) => &release.lock,
            Op::Beat(beats) if beats.len() == 1 => &beats[0].lock,
            _ => return None,
        };
        // No draw: a look must not change what happens next.
        let late = matches!(op, Op::Beat(beats) if beats[0].used < shown);
        if !late && !(self.now ^ conn as u64).is_multiple_of(8) {
            return None;
        }
        self.peek(&name.clone(), clock)
    }

    /// What the store says of a lock; it changes nothing.
    pub(crate) fn peek(&mut self, name: &fencelock_engine::Name, clock: u64) -> Option<LockInfo> {
        let op = Op::Inspect(name.clone());
        let store = &mut self.server.store;
        // Nothing is published: it is all the same who listens.
        let mut result = store.execute(clock, 0, &op, &mut Reach::default());
        if let Err(Failure::Refused(refusal)) = &result
            && refusal.kind == RefusalKind::Again
            && self.checks.sharing.on
        {
            // Its scripts are forgotten: clients are to meet that, too.
            result = store.execute(clock, 0, &op, &mut Reach::default());
            store.forget_scripts();
        }
        match result {
            Ok(Reply { body: Body::Inspect(info), .. }) => info,
            _ => None,
        }
    }

    /// The clients whose holds the store has, when an explicit owner hears that something was lost.
    pub(crate) fn present(&mut self, who: Who, lock: usize, grant: &Grant) -> Option<Vec<usize>> {
        if !matches!(who, Who::Explicit(_)) || grant.abandoned == Abandoned::No || self.zk.is_some()
        {
            return None;
        }
        let (name, clock) = (self.names[lock].clone(), self.server.clock.read(self.now));
        let info = self.peek(&name, clock)?;
        let holds = info.holds.iter().filter(|hold| !hold.expires_in.is_zero());
        Some(holds.filter_map(|hold| incarnation_of(&hold.client)).collect())
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
