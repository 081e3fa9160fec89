//! What requests cost: a server that serves one after the other, and lets the others queue.

use std::collections::VecDeque;

use fencelock_engine::request::Request;

use crate::clock::Instant;
use crate::cover::Cover;
use crate::event::Event;
use crate::network::ConnId;
use crate::world::World;

/// What the server's work takes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Any request.
    pub request: u64,
    /// Whatever it reads or writes besides: a field, an entry of a queue, a message.
    pub each: u64,
    /// A new connection, with its login, scripts and subscription.
    pub greeting: u64,
}

/// What waits to be served.
#[derive(Debug)]
enum Job {
    Request { conn: ConnId, request: Box<Request>, late: bool },
    Greeting { slot: usize, incarnation: usize, attempt: u32 },
}

/// The jobs of a server, in the order in which they came.
#[derive(Debug, Default)]
pub struct Line {
    jobs: VecDeque<(Instant, Job)>,
    /// [`Event::Serve`] is to come.
    busy: bool,
    /// Its work takes so many times as long, until then.
    slow: (u64, Instant),
}

impl World {
    /// A request waits for its turn.
    pub(crate) fn queue_request(&mut self, conn: ConnId, request: Box<Request>, late: bool) {
        self.queue_job(Job::Request { conn, request, late });
    }

    /// A new connection waits for its greeting.
    pub(crate) fn queue_greeting(&mut self, slot: usize, incarnation: usize, attempt: u32) {
        self.queue_job(Job::Greeting { slot, incarnation, attempt });
    }

    fn queue_job(&mut self, job: Job) {
        let line = &mut self.server.line;
        line.jobs.push_back((self.now, job));
        if !line.busy {
            line.busy = true;
            self.serve();
        }
    }

    /// The server's work takes `factor` times as long for a while.
    pub(crate) fn slow_down(&mut self, factor: u64, span: u64) {
        self.server.line.slow = (factor, self.now + span);
        self.cover.add(Cover::Overloaded);
    }

    /// The server turns to the next job.
    pub(crate) fn serve(&mut self) {
        let Some(cost) = self.plan.cost else { return };
        if self.now < self.server.paused_until {
            self.queue.put_off(self.server.paused_until, Event::Serve);
            return;
        }
        while let Some((since, job)) = self.server.line.jobs.pop_front() {
            // Who waits so long renews late.
            if self.now - since > self.plan.options.lease.as_nanos() as u64 / 16 {
                self.trouble(0);
            }
            let took = match job {
                Job::Request { conn, request, late } => {
                    let open = self.conns[conn].open && self.now >= self.server.down_until;
                    if !open {
                        continue;
                    }
                    self.server.store.work();
                    self.run_request(conn, request, late);
                    cost.request + cost.each * self.server.store.work()
                }
                Job::Greeting { slot, incarnation, attempt } => {
                    self.greeted(slot, incarnation, attempt);
                    cost.greeting
                }
            };
            let (factor, until) = self.server.line.slow;
            let factor = if self.now < until { factor } else { 1 };
            self.queue.push(self.now + took * factor, Event::Serve);
            return;
        }
        self.server.line.busy = false;
    }
}
