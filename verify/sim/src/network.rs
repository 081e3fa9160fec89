//! The way between a client and the store: connections, each in order, that may break.

use std::collections::VecDeque;

use fencelock_engine::HoldId;
use fencelock_engine::plant::{self, Bug};
use fencelock_engine::reply::{Failure, Push, Reply};
use fencelock_engine::request::{Op, Request, RequestId};

use crate::clock::{Instant, MS, US};
use crate::cover::Cover;
use crate::event::Event;
use crate::world::World;

/// Numbers a connection of the run.
pub type ConnId = usize;

/// A connection, as both sides see it.
#[derive(Debug)]
pub struct Conn {
    /// Which client place it belongs to.
    pub slot: usize,
    /// Which client.
    pub incarnation: usize,
    /// The store still reads it and publishes to it.
    pub open: bool,
    /// The client still uses it.
    pub used: bool,
    /// Requests go nowhere.
    pub lost_up: bool,
    /// Replies and pushes go nowhere.
    pub lost_down: bool,
    up_at: Instant,
    down_at: Instant,
    push_at: Instant,
}

/// A release without a reply.
#[derive(Clone, Copy, Debug)]
pub struct Releasing {
    /// The request.
    pub request: RequestId,
    /// Whose hold it ends.
    pub hold: HoldId,
    /// The lock's number.
    pub lock: usize,
    /// When it was sent.
    pub sent: Instant,
}

/// A client's transport: at most one connection that is in use.
#[derive(Debug, Default)]
pub struct Link {
    /// The connection in use.
    pub conn: Option<ConnId>,
    /// Requests without a reply, oldest first.
    pub pending: VecDeque<RequestId>,
    /// Those of them that are releases: of which lock and hold, and when they were sent.
    pub releases: Vec<Releasing>,
    /// What would be sent again: only with a bug that was planted.
    pub copies: Vec<Request>,
    /// The engine knows that the connection is up.
    pub up: bool,
    /// A connection is being made.
    connecting: bool,
    /// The one in use is silent: another is being made, and may take its place.
    doubted: bool,
    /// Numbers what is being made; another number is given up.
    attempt: u32,
    pub(crate) attempts: u32,
    blocked_until: Instant,
    blocked: u32,
    /// What the store says is late by so much until then.
    slow: (u64, Instant),
}

impl World {
    pub(crate) fn delay(&mut self) -> u64 {
        let (low, high) = self.plan.latency;
        let delay = self.dice.between(low, high);
        if !self.quiet && self.dice.chance(self.plan.hazards.spike) {
            self.trouble(delay * 100);
            self.cover.add(Cover::Delayed);
            delay * 100
        } else {
            delay
        }
    }

    /// How late what was abandoned arrives: mostly while it may still take effect.
    fn late_by(&mut self) -> u64 {
        let claim = self.plan.options.claim.as_nanos() as u64;
        let within = self.dice.pick(&[1, 1, 2, 4]) * claim;
        self.dice.between(0, within)
    }

    /// Starts the connection of a new client.
    pub(crate) fn connect(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        let Link { blocked_until, slow, .. } = client.link;
        client.link = Link { blocked_until, slow, ..Link::default() };
        self.trouble(0);
        self.schedule_connect(slot);
    }

    fn schedule_connect(&mut self, slot: usize) {
        let client = &mut self.clients[slot];
        if client.link.connecting {
            return;
        }
        client.link.connecting = true;
        let backoff = (2 * MS) << client.link.attempts.min(6);
        client.link.attempts += 1;
        let (incarnation, attempt) = (client.incarnation, client.link.attempt);
        let mut after = self.dice.between(backoff / 4, backoff);
        if plant::on(Bug::NoBackoff) {
            after = MS / 4;
        }
        self.queue.push(self.now + after, Event::Connect { slot, incarnation, attempt });
    }

    /// Tries to connect.
    pub(crate) fn try_connect(&mut self, slot: usize, incarnation: usize, attempt: u32) {
        if !self.is_making(slot, incarnation, attempt) {
            return;
        }
        let client = &mut self.clients[slot];
        if self.now < self.server.paused_until && self.plan.cost.is_none() {
            let at = self.server.paused_until;
            self.queue.put_off(at, Event::Connect { slot, incarnation, attempt });
            return;
        }
        if self.now < self.server.down_until || self.now < client.link.blocked_until {
            client.link.connecting = false;
            self.schedule_connect(slot);
            return;
        }
        if self.plan.cost.is_some() {
            self.queue_greeting(slot, incarnation, attempt);
        } else {
            self.greeted(slot, incarnation, attempt);
        }
    }

    /// Whether a client still wants the connection that is being made for it.
    fn is_making(&self, slot: usize, incarnation: usize, attempt: u32) -> bool {
        let client = &self.clients[slot];
        client.incarnation == incarnation && client.up && client.link.attempt == attempt
    }

    /// The connection in use was answered: no other one is needed.
    pub(crate) fn believe(&mut self, slot: usize) {
        let link = &mut self.clients[slot].link;
        if std::mem::take(&mut link.doubted) {
            link.attempt += 1;
            link.connecting = false;
            link.attempts = 0;
        }
    }

    /// The server greets a new connection.
    pub(crate) fn greeted(&mut self, slot: usize, incarnation: usize, attempt: u32) {
        if !self.is_making(slot, incarnation, attempt) {
            return;
        }
        if self.clients[slot].link.conn.is_some() {
            // It logs in and subscribes yet, with a question after each answer.
            let at = self.now + 2 * self.plan.latency.1 + self.delay();
            self.queue.push(at, Event::Rival { slot, incarnation, attempt });
        } else {
            self.open_conn(slot, incarnation);
        }
    }

    /// Another connection is ready, and the one in use may be silent still.
    pub(crate) fn rival(&mut self, slot: usize, incarnation: usize, attempt: u32) {
        if !self.is_making(slot, incarnation, attempt) {
            return;
        }
        if let Some(conn) = self.clients[slot].link.conn {
            self.give_up(slot, conn);
        }
        // Also when the one in use broke meanwhile: it was away until now.
        self.trouble(0);
        self.open_conn(slot, incarnation);
    }

    fn give_up(&mut self, slot: usize, conn: ConnId) {
        self.cover.add(Cover::GivenUp);
        self.trace.line(self.now, || format!("c{slot} gives its connection up"));
        let it = &self.conns[conn];
        if self.plan.cost.is_some() && it.open && !it.lost_up && !it.lost_down {
            self.checks.fail("overload", self.now, || {
                format!("c{slot} gives up a connection that is only slow")
            });
        }
        self.broken(conn);
    }

    /// Takes a connection that was greeted into use.
    fn open_conn(&mut self, slot: usize, incarnation: usize) {
        // The end of the one before is told first.
        self.read_inbox(slot, incarnation);
        self.clients[slot].link.connecting = false;
        let conn = self.conns.len();
        self.conns.push(Conn {
            slot,
            incarnation,
            open: true,
            used: true,
            lost_up: false,
            lost_down: false,
            up_at: 0,
            down_at: 0,
            push_at: 0,
        });
        self.opened(conn);
        if self.clients[slot].link.attempts > 1 {
            // What kept it away has lasted until now, through the pause before the next attempt.
            self.trouble(0);
        }
        let client = &mut self.clients[slot];
        client.link.conn = Some(conn);
        client.link.attempts = 0;
        client.link.up = false;
        client.link.doubted = false;
        let now = self.server.clock.read(self.now);
        self.hear(conn, fencelock_engine::Event::Up { now }, 0);
    }

    /// Sends again what had no answer, as no transport may.
    pub(crate) fn resend(&mut self, slot: usize) {
        let link = &mut self.clients[slot].link;
        let pending = std::mem::take(&mut link.pending);
        let copies = std::mem::take(&mut link.copies);
        for request in copies.into_iter().filter(|request| pending.contains(&request.id)) {
            self.send(slot, request);
        }
    }

    /// Something is wrong until `span` from now: renewals may be late.
    pub(crate) fn trouble(&mut self, span: u64) {
        self.trouble_until = self.trouble_until.max(self.now + span);
    }

    /// Takes a request from a client's engine.
    pub(crate) fn send(&mut self, slot: usize, request: Request) {
        if self.zk.is_some() {
            return self.send_zk(slot, request);
        }
        let client = &mut self.clients[slot];
        let (Some(conn), true) = (client.link.conn, client.link.up) else {
            let incarnation = client.incarnation;
            let at = self.now + self.dice.between(1, 20) * US;
            let request = request.id.0;
            self.queue.push(at, Event::Unsent { slot, incarnation, request });
            return;
        };
        client.link.pending.push_back(request.id);
        if let Op::Release(release) = &request.op
            && let Some(lock) = self.names.iter().position(|name| *name == release.lock)
        {
            let (hold, sent) = (release.hold, self.now);
            client.link.releases.push(Releasing { request: request.id, hold, lock, sent });
        }
        if plant::on(Bug::TransportRetries) {
            client.link.copies.push(request.clone());
        }
        if !self.quiet && self.dice.chance(self.plan.hazards.lose_request) {
            self.conns[conn].lost_up = true;
            self.cover.add(Cover::RequestLost);
            self.cut_later(conn);
        }
        if self.conns[conn].lost_up {
            self.trace.line(self.now, || format!("c{slot} request {} lost", request.id.0));
            // What is stuck on the way may yet arrive, when nobody waits for it any more.
            if !self.quiet && self.dice.chance(self.plan.hazards.stray) {
                let at = self.now + self.late_by();
                self.queue.push(at, Event::Arrive { conn, request: Box::new(request), late: true });
            }
            return;
        }
        let at = (self.now + self.delay()).max(self.conns[conn].up_at);
        self.conns[conn].up_at = at;
        self.queue.push(at, Event::Arrive { conn, request: Box::new(request), late: false });
    }

    /// A request reaches the store.
    pub(crate) fn arrive(&mut self, conn: ConnId, request: Box<Request>, late: bool) {
        if self.now < self.server.paused_until && self.plan.cost.is_none() {
            self.queue.put_off(self.server.paused_until, Event::Arrive { conn, request, late });
            return;
        }
        if !self.conns[conn].open || self.now < self.server.down_until {
            return;
        }
        if !self.conns[conn].used && !late {
            // Abandoned: its last requests are dropped, or run some time later.
            if self.dice.chance(500) {
                let at = self.now + self.late_by();
                self.queue.push(at, Event::Arrive { conn, request, late: true });
            }
            return;
        }
        if self.plan.cost.is_some() {
            self.queue_request(conn, request, late);
        } else {
            self.run_request(conn, request, late);
        }
    }

    /// The store executes a request.
    pub(crate) fn run_request(&mut self, conn: ConnId, request: Box<Request>, late: bool) {
        if late {
            self.cover.add(Cover::LateRequestRan);
        }
        let result = self.execute(self.conns[conn].incarnation, &request.op, conn);
        let releases = matches!(request.op, Op::Release(_)) && !self.quiet;
        let may_suffer = releases || matches!(request.op, Op::Acquire(_)) && !self.quiet;
        if may_suffer && self.dice.chance(self.plan.hazards.lose_reply) {
            self.conns[conn].lost_down = true;
            self.cover.add(Cover::ReplyLost);
            self.cut_later(conn);
        }
        let mut late = 0;
        if releases && self.dice.chance(self.plan.hazards.late_reply) {
            late = self.dice.below(self.plan.options.request_timeout.as_nanos() as u64);
            self.trouble(late);
        }
        self.answer(conn, request.id, result, late);
    }

    fn answer(
        &mut self,
        conn: ConnId,
        request: RequestId,
        result: Result<Reply, Failure>,
        late: u64,
    ) {
        if self.conns[conn].lost_down || !self.conns[conn].used {
            self.trace.line(self.now, || format!("reply to {} lost", request.0));
            return;
        }
        self.hear(conn, fencelock_engine::Event::Reply { request, result }, late);
    }

    /// `late`: by how much more it is late than it is by itself.
    fn hear(&mut self, conn: ConnId, event: fencelock_engine::Event, late: u64) {
        let (by, until) = self.clients[self.conns[conn].slot].link.slow;
        let slow = late + if self.now < until { by } else { 0 };
        let at = (self.now + slow + self.delay()).max(self.conns[conn].down_at);
        self.conns[conn].down_at = at;
        self.queue.push(at, Event::Hear { conn, event: Box::new(event) });
    }

    /// Publishes to every open connection of a client.
    pub(crate) fn publish(&mut self, incarnation: usize, push: &Push) {
        for place in (0..self.server.open[incarnation].len()).rev() {
            let conn = self.server.open[incarnation][place];
            let hazards = &self.plan.hazards;
            let (lose, double, late) = (hazards.lose_push, hazards.double_push, hazards.late_push);
            if self.conns[conn].lost_down {
                continue;
            }
            if !self.quiet && self.dice.chance(lose) {
                self.cover.add(Cover::PushLost);
                self.trace.line(self.now, || format!("push {push:?} lost"));
                continue;
            }
            let event = fencelock_engine::Event::Push(push.clone());
            let twice = !self.quiet && self.dice.chance(double);
            if twice {
                self.cover.add(Cover::PushDoubled);
                let at = self.now + self.dice.below(self.plan.options.claim.as_nanos() as u64 * 2);
                let at = at.max(self.conns[conn].down_at);
                self.queue.push(at, Event::Hear { conn, event: Box::new(event.clone()) });
            }
            if !self.plan.push_pipe {
                self.hear(conn, event, 0);
                continue;
            }
            let mut at = (self.now + self.delay()).max(self.conns[conn].push_at);
            if !self.quiet && self.dice.chance(late) {
                self.cover.add(Cover::PushLate);
                at += self.dice.below(self.plan.options.lease.as_nanos() as u64 * 2);
            }
            self.conns[conn].push_at = at;
            self.queue.push(at, Event::Hear { conn, event: Box::new(event) });
        }
    }

    /// Breaks the connection in use; both sides notice within `spread` and a little more.
    pub(crate) fn cut(&mut self, slot: usize, spread: u64) {
        if self.zk.is_some() {
            return self.cut_zk(slot, spread);
        }
        let Some(conn) = self.clients[slot].link.conn else { return };
        let notice = self.dice.between(0, spread) + self.delay();
        self.queue.push(self.now + notice, Event::Broken { conn });
        let notice = self.dice.between(0, spread) + self.delay();
        self.queue.push(self.now + notice, Event::Closed { conn });
        self.conns[conn].lost_up = true;
        if self.dice.chance(500) {
            self.conns[conn].lost_down = true;
        }
    }

    fn cut_later(&mut self, conn: ConnId) {
        let timeout = self.plan.options.request_timeout.as_nanos() as u64;
        // Found out by waiting in vain, or at once.
        let most = if self.dice.chance(300) { 5 * MS } else { timeout * 3 / 2 };
        let after = self.dice.between(0, most);
        self.trouble(after);
        let at = self.now + after;
        self.queue.push(at, Event::Broken { conn });
    }

    /// Makes everything that the store says late for a while.
    pub(crate) fn slow(&mut self, slot: usize, by: u64, span: u64) {
        self.clients[slot].link.slow = (by, self.now + span);
    }

    /// Lets nothing pass for a while, then breaks the connection.
    pub(crate) fn black_hole(&mut self, slot: usize, up: bool, down: bool, span: u64) {
        if self.zk.is_some() {
            return self.black_hole_zk(slot, up, down, span);
        }
        let link = &mut self.clients[slot].link;
        link.blocked_until = link.blocked_until.max(self.now + span);
        link.blocked += 1;
        let generation = link.blocked;
        if let Some(conn) = link.conn {
            self.conns[conn].lost_up |= up;
            self.conns[conn].lost_down |= down;
        }
        self.queue.push(self.now + span, Event::Unblock { slot, generation });
    }

    /// The way is mended; a connection that lost messages on it breaks.
    pub(crate) fn unblocked(&mut self, slot: usize, generation: u32) {
        if self.zk.is_some() {
            return self.unblock_zk(slot, u64::from(generation));
        }
        if self.clients[slot].link.blocked == generation {
            self.unblock(slot);
        }
    }

    /// Mends the way now.
    pub(crate) fn unblock(&mut self, slot: usize) {
        if self.zk.is_some() {
            return self.unblock_zk(slot, 0);
        }
        let link = &mut self.clients[slot].link;
        link.blocked_until = 0;
        let Some(conn) = link.conn else { return };
        if self.conns[conn].lost_up || self.conns[conn].lost_down {
            self.cut(slot, 0);
        }
    }

    /// The engine doubts its connection: another one is made, and takes its place if it is answered
    /// first.
    pub(crate) fn reconnect(&mut self, slot: usize) {
        self.trace.line(self.now, || format!("c{slot} doubts its connection"));
        self.cover.add(Cover::Doubted);
        if self.zk.is_some() {
            return self.reconnect_zk(slot);
        }
        let link = &mut self.clients[slot].link;
        link.doubted = true;
        match link.conn {
            Some(conn) if plant::on(Bug::TimeoutReconnects) => self.give_up(slot, conn),
            _ => self.schedule_connect(slot),
        }
    }

    /// The client finds its connection gone: what was asked on it is unknown.
    pub(crate) fn broken(&mut self, conn: ConnId) {
        let slot = self.conns[conn].slot;
        if !self.conns[conn].used {
            return;
        }
        self.conns[conn].used = false;
        self.trouble(0);
        // The store may publish to the dead connection for a while yet.
        let notice = self.delay() + self.dice.pick(&[0, 0, MS, 500 * MS]);
        self.queue.push(self.now + notice, Event::Closed { conn });
        let client = &mut self.clients[slot];
        if client.link.conn != Some(conn) {
            return;
        }
        client.link.conn = None;
        client.link.doubted = false;
        let was_up = std::mem::take(&mut client.link.up);
        let mut pending = std::mem::take(&mut client.link.pending);
        client.link.releases.clear();
        if plant::on(Bug::TransportRetries) {
            client.link.pending = std::mem::take(&mut pending);
        }
        let mut events: Vec<fencelock_engine::Event> = pending
            .into_iter()
            .map(|request| fencelock_engine::Event::Reply {
                request,
                result: Err(Failure::Unknown),
            })
            .collect();
        if was_up {
            let down = fencelock_engine::Event::Down { reason: "cut".to_owned() };
            let place = if self.dice.chance(500) { 0 } else { events.len() };
            events.insert(place, down);
        }
        client.inbox.extend(events);
        let incarnation = client.incarnation;
        let at = self.now + self.dice.between(1, 100) * US;
        self.queue.push(at, Event::Inbox { slot, incarnation });
        self.schedule_connect(slot);
    }
}
