//! What may happen next, and what follows from it.

use fencelock_engine::reply::{Abandoned, Body, Failure, Push, Reply, Standing};
use fencelock_engine::request::{Mode, Op};
use fencelock_engine::store::{Announce, Delivery, Record};
use fencelock_engine::{
    Acquired, Converted, Effect, Ended, ErrorKind, Event, Grant, How, LossReason, Name, Outcome,
    Time,
};

use crate::exhaust::caller::{Caller, Held, Open};
use crate::exhaust::cover::{Case, Cover};
use crate::exhaust::scope::{BRIEF, Do, LONG, SHORT};
use crate::exhaust::state::State;
use crate::exhaust::wrong::Wrong;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// A caller of a client goes on with its program.
    Call(usize, usize),
    /// A caller's wait is cancelled.
    Cancel(usize, usize),
    /// The store executes a client's oldest request.
    Execute(usize),
    /// A client's oldest reply arrives.
    Reply(usize),
    /// A client's oldest push arrives.
    Push(usize),
    /// A request arrives whose connection has gone.
    Stray(usize),
    /// A connection goes. When not `noticed`, the store still believes in it.
    Cut(usize, bool),
    /// A connection is there again.
    Up(usize),
    /// A client's timer fires.
    Wake(usize),
    /// A client vanishes.
    Crash(usize, bool),
    /// Time passes.
    Short,
    /// Much time passes.
    Long,
    /// The store loses everything.
    Wipe,
}

/// The rules of one exploration.
pub(super) struct Rules<'a> {
    pub wrong: Option<Wrong>,
    pub cover: &'a Cover,
}

impl State {
    pub fn actions(&self, actions: &mut Vec<Action>) {
        if self.broken.is_some() {
            return;
        }
        let left = self.left;
        for (c, client) in self.clients.iter().enumerate().filter(|(_, client)| client.alive) {
            for (a, caller) in client.callers.iter().enumerate() {
                if caller.next().is_some() {
                    actions.push(Action::Call(c, a));
                }
                let waits = caller.open.is_some_and(|open| open.key.is_some());
                if waits && left.cancels > 0 {
                    actions.push(Action::Cancel(c, a));
                }
            }
            let wire = &client.wire;
            if !wire.requests.is_empty() {
                actions.push(Action::Execute(c));
            }
            if !wire.replies.is_empty() {
                actions.push(Action::Reply(c));
            }
            if !wire.pushes.is_empty() {
                actions.push(Action::Push(c));
            }
            if !wire.up {
                actions.push(Action::Up(c));
            } else if left.cuts > 0 {
                actions.push(Action::Cut(c, true));
                if wire.heard {
                    actions.push(Action::Cut(c, false));
                }
            }
            if client.is_due(self.now) {
                actions.push(Action::Wake(c));
            }
            if left.crashes > 0 {
                actions.push(Action::Crash(c, true));
                if wire.heard {
                    actions.push(Action::Crash(c, false));
                }
            }
        }
        actions.extend((0..self.strays.len()).map(Action::Stray));
        if left.shorts > 0 {
            actions.push(Action::Short);
        }
        if left.longs > 0 {
            actions.push(Action::Long);
        }
        if left.wipes > 0 {
            actions.push(Action::Wipe);
        }
    }

    pub fn take(&mut self, action: Action, rules: &Rules<'_>) {
        match action {
            Action::Call(c, a) => self.call(c, a, rules),
            Action::Cancel(c, a) => {
                self.left.cancels -= 1;
                self.cancel(c, a, rules);
            }
            Action::Execute(c) => self.execute(c, rules),
            Action::Reply(c) => {
                if !self.clients[c].wire.pushes.is_empty() {
                    // The other order has been, or will be, explored as well.
                    rules.cover.met(Case::PushFirst);
                }
                if let Some((request, result)) = self.clients[c].wire.replies.pop_front() {
                    self.hear(c, Event::Reply { request, result }, rules);
                }
            }
            Action::Push(c) => {
                if let Some(push) = self.clients[c].wire.pushes.pop_front() {
                    self.hear(c, Event::Push(push), rules);
                }
            }
            Action::Stray(index) => {
                let (c, op) = self.strays.remove(index);
                let before = self.record.clone();
                let _ = self.serve(c, op, rules);
                if before != self.record {
                    rules.cover.met(Case::StrayExecuted);
                }
            }
            Action::Cut(c, noticed) => {
                self.left.cuts -= 1;
                self.cut(c, noticed, rules);
            }
            Action::Up(c) => self.up(c, rules),
            Action::Wake(c) => self.wake(c, rules),
            Action::Crash(c, noticed) => {
                self.left.crashes -= 1;
                let client = &mut self.clients[c];
                client.alive = false;
                client.wire.up = false;
                client.wire.heard &= !noticed;
                let late = client.wire.requests.drain(..).map(|request| (c, request.op));
                self.strays.extend(late);
            }
            Action::Short => {
                self.left.shorts -= 1;
                self.now = self.now + SHORT;
            }
            Action::Long => {
                self.left.longs -= 1;
                self.now = self.now + LONG;
            }
            Action::Wipe => {
                self.left.wipes -= 1;
                self.now = self.now + SHORT;
                self.record = Record::default();
                self.wiped = true;
            }
        }
        self.check();
    }

    fn call(&mut self, c: usize, a: usize, rules: &Rules<'_>) {
        let Some(what) = self.clients[c].callers[a].next() else { return };
        self.clients[c].callers[a].at += 1;
        match what {
            Do::Lock | Do::Try | Do::Brief | Do::Own | Do::Read | Do::One | Do::Two => {
                let now = self.now;
                let client = &mut self.clients[c];
                client.next += 1;
                let tag = client.next;
                let ask = Caller::ask(what, a);
                match client.engine.acquire(now, client.lock, ask, tag) {
                    Ok(Acquired::Granted(grant)) => self.granted(c, a, tag, &grant, rules),
                    Ok(Acquired::Pending(key)) => {
                        client.callers[a].open = Some(Open { tag, key: Some(key) });
                    }
                    Err(_) => client.callers[a].give_up(),
                }
            }
            Do::Downgrade | Do::Upgrade => self.convert(c, a, what),
            Do::More | Do::Fewer => {
                let now = self.now;
                let client = &mut self.clients[c];
                client.next += 1;
                let (tag, of) = (client.next, if what == Do::More { 4 } else { 1 });
                let name = Name::new("stock").expect("a short name");
                client.engine.resize(now, &name, of, tag);
                client.callers[a].open = Some(Open { tag, key: None });
            }
            Do::Extend => {
                let now = self.now;
                let client = &mut self.clients[c];
                client.next += 1;
                let tag = client.next;
                let hold = client.callers[a].holds.last().map(|held| held.key);
                if let Some(hold) = hold
                    && client.engine.extend(now, hold, BRIEF, tag).is_ok()
                {
                    client.callers[a].open = Some(Open { tag, key: None });
                }
            }
            Do::Unlock => {
                if let Some(held) = self.clients[c].callers[a].holds.pop() {
                    self.release(c, a, held, rules);
                }
            }
        }
        self.follow(c, rules);
    }

    /// Converts a caller's latest hold. Whoever asks to read writes no more.
    fn convert(&mut self, c: usize, a: usize, what: Do) {
        let now = self.now;
        let client = &mut self.clients[c];
        client.next += 1;
        let tag = client.next;
        let Some(held) = client.callers[a].holds.last_mut() else { return };
        let asked = if what == Do::Downgrade {
            held.mode = Mode::Shared;
            client.engine.downgrade(now, held.key, tag)
        } else {
            client.engine.try_upgrade(now, held.key, tag)
        };
        if let Ok(Some(_)) = asked {
            client.callers[a].open = Some(Open { tag, key: None });
        }
    }

    /// A hold has another mode, and a token above what it must lie above.
    fn converted(&mut self, c: usize, a: usize, to: Converted, rules: &Rules<'_>) {
        let token = to.token.get();
        let (above, met) = match to.mode {
            Mode::Exclusive => (self.ledger.token, Case::Upgraded),
            _ => (self.ledger.written, Case::Downgraded),
        };
        rules.cover.met(met);
        if token <= above && !self.wiped {
            self.broken = Some("a token did not rise");
        }
        self.ledger.token = self.ledger.token.max(token);
        if to.mode == Mode::Exclusive {
            self.ledger.written = self.ledger.written.max(token);
        }
        let holds = &mut self.clients[c].callers[a].holds;
        if let Some(held) = holds.iter_mut().find(|held| held.key == to.hold) {
            (held.mode, held.token) = (to.mode, token);
        }
    }

    /// Releases a hold; its caller waits for the word.
    pub fn release(&mut self, c: usize, a: usize, held: Held, rules: &Rules<'_>) {
        let now = self.now;
        let client = &mut self.clients[c];
        client.next += 1;
        let tag = client.next;
        match client.engine.release(now, held.key, Some(tag)) {
            Ok(Ended::Pending) => client.callers[a].open = Some(Open { tag, key: None }),
            Ok(Ended::Done) => {}
            // The release itself may have found out, and then it tells.
            Err(_) => client.callers[a].holds.push(held),
        }
        self.follow(c, rules);
        let holds = &mut self.clients[c].callers[a].holds;
        if holds.last().is_some_and(|last| last.tag == held.tag) {
            let told = holds.pop().is_some_and(|held| held.lost);
            if !told {
                self.broken = Some("a release failed, and no loss was told");
            }
        }
    }

    fn cancel(&mut self, c: usize, a: usize, rules: &Rules<'_>) {
        let now = self.now;
        let client = &mut self.clients[c];
        let Some(Open { key: Some(key), .. }) = client.callers[a].open else { return };
        let mine = |of: &fencelock_engine::ClientId| *of == client.known.client;
        if self.record.holds.iter().any(|hold| mine(&hold.client)) {
            rules.cover.met(Case::CancelledHeld);
        }
        if self.record.waiters.iter().any(|waiter| mine(&waiter.client)) {
            rules.cover.met(Case::CancelledQueued);
        }
        if client.engine.cancel(now, key) {
            client.callers[a].open = None;
            client.callers[a].give_up();
        } else {
            // Every completion is drained at once here, so a pending call is never over.
            self.broken = Some("a pending call could not be cancelled");
        }
        self.follow(c, rules);
    }

    pub fn execute(&mut self, c: usize, rules: &Rules<'_>) {
        let Some(request) = self.clients[c].wire.requests.pop_front() else { return };
        let reply = self.serve(c, request.op, rules);
        self.clients[c].wire.replies.push_back((request.id, reply));
    }

    /// The store executes a request.
    pub fn serve(&mut self, c: usize, mut op: Op, rules: &Rules<'_>) -> Result<Reply, Failure> {
        let now = self.store_time();
        if let Some(wrong) = rules.wrong {
            wrong.before(&mut self.record, now, &mut op);
        }
        let known = self.clients[c].known.clone();
        let record = &mut self.record;
        let before = record.token;
        let heard: Vec<bool> = self.clients.iter().map(|client| client.wire.heard).collect();
        let mut inboxes = Inboxes { heard: &heard, pushed: Vec::new(), nobody: false };
        let body = match &op {
            Op::Acquire(ask) => match record.acquire(now, &known, ask, &mut inboxes) {
                Ok(state) => {
                    if state.standing == Standing::Late {
                        rules.cover.met(Case::Late);
                    }
                    Body::Acquire(state)
                }
                Err(refusal) => return Err(Failure::Refused(refusal)),
            },
            Op::Beat(beats) => Body::Beat(
                beats.iter().map(|beat| record.beat(now, &known, beat, &mut inboxes)).collect(),
            ),
            Op::Release(release) => Body::Release(record.release(now, release, &mut inboxes)),
            Op::Convert(ask) => match record.convert(now, &known, ask, &mut inboxes) {
                Ok(state) => Body::Convert(state),
                Err(refusal) => return Err(Failure::Refused(refusal)),
            },
            Op::Resize(ask) => match record.resize(now, ask, &mut inboxes) {
                Ok(done) => {
                    self.ledger.most = self.ledger.most.max(ask.of);
                    Body::Resize(done)
                }
                Err(refusal) => return Err(Failure::Refused(refusal)),
            },
            other => unreachable!("nobody asks for {other:?}"),
        };
        if inboxes.nobody {
            rules.cover.met(Case::Unheard);
        }
        for (to, push) in inboxes.pushed {
            let client = &mut self.clients[to];
            if client.alive && client.wire.up {
                client.wire.pushes.push_back(push);
            }
        }
        if let Some(wrong) = rules.wrong {
            wrong.after(&mut self.record, now);
        }
        if self.record.token != before && !self.record.holds.is_empty() {
            if self.record.token <= self.ledger.token.max(self.ledger.given) {
                self.broken = Some("the store gave a token that is not above all others");
            }
            self.ledger.given = self.record.token;
        }
        Ok(Reply { now, body })
    }

    fn cut(&mut self, c: usize, noticed: bool, rules: &Rules<'_>) {
        let wire = &mut self.clients[c].wire;
        if !wire.replies.is_empty() {
            rules.cover.met(Case::CutAnswered);
        }
        wire.up = false;
        wire.heard &= !noticed;
        wire.pushes.clear();
        let mut failed: Vec<_> = wire.replies.drain(..).map(|(id, _)| id).collect();
        for request in wire.requests.drain(..) {
            failed.push(request.id);
            self.strays.push((c, request.op));
        }
        for request in failed {
            self.hear(c, Event::Reply { request, result: Err(Failure::Unknown) }, rules);
        }
        self.hear(c, Event::Down { reason: "cut".to_owned() }, rules);
    }

    pub fn up(&mut self, c: usize, rules: &Rules<'_>) {
        let client = &mut self.clients[c];
        client.wire.up = true;
        client.wire.heard = !client.known.polling;
        let now = self.store_time();
        self.hear(c, Event::Up { now }, rules);
    }

    pub fn wake(&mut self, c: usize, rules: &Rules<'_>) {
        let now = self.now;
        self.clients[c].engine.wake(now);
        self.follow(c, rules);
    }

    pub fn hear(&mut self, c: usize, event: Event, rules: &Rules<'_>) {
        let now = self.now;
        self.clients[c].engine.handle(now, event);
        self.follow(c, rules);
    }

    /// Does what the engine of a client wants done.
    pub fn follow(&mut self, c: usize, rules: &Rules<'_>) {
        while let Some(effect) = self.clients[c].engine.poll_effect() {
            match effect {
                Effect::Send(request) if self.clients[c].wire.up => {
                    self.clients[c].wire.requests.push_back(request);
                }
                Effect::Send(request) => {
                    let result = Err(Failure::NotSent);
                    let now = self.now;
                    let event = Event::Reply { request: request.id, result };
                    self.clients[c].engine.handle(now, event);
                }
                Effect::Reconnect(_) => {
                    rules.cover.met(Case::GaveUp);
                    self.cut(c, true, rules);
                }
                Effect::Complete(tag, outcome) => self.completed(c, tag, outcome, rules),
                Effect::Lost(tag, reason) => self.lost(c, tag, reason, rules),
                Effect::Wanted(_) => rules.cover.met(Case::Wanted),
                Effect::Note(_) => {}
            }
        }
    }

    fn completed(&mut self, c: usize, tag: u32, outcome: Outcome, rules: &Rules<'_>) {
        let callers = &mut self.clients[c].callers;
        let mine = |caller: &Caller| caller.open.is_some_and(|open| open.tag == tag);
        let Some(a) = callers.iter().position(mine) else {
            self.broken = Some("a call ended twice, or after its cancel");
            return;
        };
        let open = callers[a].open.take();
        let acquires = open.is_some_and(|open| open.key.is_some());
        match outcome {
            Outcome::Granted(grant) if acquires => self.granted(c, a, tag, &grant, rules),
            Outcome::Failed(error) if acquires => {
                if error.kind() == ErrorKind::InvalidArgument {
                    rules.cover.met(Case::Doomed);
                }
                callers[a].give_up();
            }
            Outcome::Converted(to) => self.converted(c, a, to, rules),
            Outcome::Resized(true) => rules.cover.met(Case::Resized),
            Outcome::Resized(false) => {}
            Outcome::Failed(error) if error.kind() == ErrorKind::Contended => {
                rules.cover.met(Case::NotUpgraded);
            }
            Outcome::Extended => rules.cover.met(Case::Extended),
            Outcome::Released | Outcome::Failed(_) => {}
            _ => self.broken = Some("a call ended as another kind of call"),
        }
    }

    fn granted(&mut self, c: usize, a: usize, tag: u32, grant: &Grant, rules: &Rules<'_>) {
        let met = match grant.how {
            How::Push => Some(Case::Pushed),
            How::Poll => Some(Case::Polled),
            How::Local => Some(Case::Local),
            How::Reentry => Some(Case::Reentered),
            How::Reply => None,
        };
        if let Some(case) = met {
            rules.cover.met(case);
        }
        if grant.abandoned == Abandoned::Yes {
            rules.cover.met(Case::Abandoned);
        }
        let token = grant.token.get();
        let caller = &self.clients[c].callers[a];
        let what = caller.program[caller.at - 1];
        let (explicit, mode) = (what == Do::Own, Caller::ask(what, a).mode);
        // Those who hold together may hear of it in another order.
        let above = match mode {
            Mode::Exclusive => self.ledger.token,
            Mode::Shared => self.ledger.written,
            Mode::Permits { .. } => 0,
        };
        let known = match above {
            last if token > last => true,
            last if token == last => {
                (explicit && self.ledger.explicit)
                    || (grant.reentry && caller.holds.iter().any(|held| held.token == token))
            }
            // Of two grants that a lost memory allowed, the earlier may arrive last.
            _ => self.wiped,
        };
        if !known {
            self.broken = Some("a token did not rise");
        }
        self.ledger.token = self.ledger.token.max(token);
        self.ledger.explicit = explicit;
        if mode == Mode::Exclusive {
            self.ledger.written = self.ledger.written.max(token);
        }
        let held = Held { tag, key: grant.hold, token, explicit, mode, lost: false };
        self.clients[c].callers[a].holds.push(held);
    }

    fn lost(&mut self, c: usize, tag: u32, _reason: LossReason, rules: &Rules<'_>) {
        rules.cover.met(Case::Lost);
        let mut holds = self.clients[c].callers.iter_mut().flat_map(|caller| &mut caller.holds);
        match holds.find(|held| held.tag == tag) {
            Some(held) if !held.lost => held.lost = true,
            Some(_) => self.broken = Some("a loss was told twice"),
            None => self.broken = Some("a loss was told of a hold that was released"),
        }
    }

    /// What must hold at every instant.
    pub fn check(&mut self) {
        let now = self.now;
        let mut valid: Vec<(usize, usize, Held)> = Vec::new();
        for (c, client) in self.clients.iter().enumerate().filter(|(_, client)| client.alive) {
            let punctual = !client.is_due(now);
            for (a, caller) in client.callers.iter().enumerate() {
                for held in caller.holds.iter().filter(|held| !held.lost) {
                    if client.engine.remaining(now, held.key).is_none() {
                        if punctual {
                            self.broken = Some("a hold is over and its holder was not told");
                        }
                        continue;
                    }
                    if self.broken.is_none() && !self.wiped {
                        self.broken = valid.iter().find_map(|other| beside(other, &(c, a, *held)));
                    }
                    valid.push((c, a, *held));
                }
            }
        }
        let out = valid.iter().map(|(.., held)| match held.mode {
            Mode::Permits { count, .. } => count,
            _ => 0,
        });
        if out.sum::<u32>() > self.ledger.most && !self.wiped {
            self.broken = Some("more permits are out than there are");
        }
    }

    /// When any client wants to be woken next.
    pub fn next_wake(&self) -> Option<Time> {
        let alive = self.clients.iter().filter(|client| client.alive);
        alive.filter_map(|client| client.engine.next_wake()).min()
    }
}

/// What is wrong with two holds that are valid at once.
fn beside(one: &(usize, usize, Held), other: &(usize, usize, Held)) -> Option<&'static str> {
    let (a, b) = (one.2, other.2);
    let exclusive = [a, b].iter().any(|held| held.mode == Mode::Exclusive);
    let own = (one.0, one.1) == (other.0, other.1) || a.explicit && b.explicit;
    match (exclusive, own) {
        (true, false) => Some("two holders at once"),
        (true, true) if a.token != b.token => Some("one owner's holds have two tokens"),
        _ => None,
    }
}

/// Where the store publishes to.
struct Inboxes<'a> {
    heard: &'a [bool],
    pushed: Vec<(usize, Push)>,
    nobody: bool,
}

impl Announce for Inboxes<'_> {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        let index = usize::from_str_radix(client, 16).unwrap_or(usize::MAX);
        if self.heard.get(index) == Some(&true) {
            self.pushed.push((index, push));
            Delivery::Delivered
        } else {
            self.nobody = true;
            Delivery::Nobody
        }
    }
}
