//! What is asked on the connection whose grants replicas confirm.

use std::collections::VecDeque;
use std::time::Duration;

use crate::event::Event;
use crate::redis::session::{Asked, Outbox};
use crate::redis::sync::batch::{Batch, shortest_lease};
use crate::redis::sync::terms::{Naming, Replicas, Terms};
use crate::redis::sync::topology::{self, Question};
use crate::redis::{Codec, Inbox, Value};
use crate::reply::Failure;
use crate::request::{Op, Request, RequestId};
use crate::time::Time;

/// How old the cluster's word may be of who is a replica.
const LOOK: Duration = Duration::from_secs(5);
/// The share of a lease that may be waited out: as often it is renewed.
const SHARE: u32 = 3;

/// A request that waits for its turn.
#[derive(Debug)]
struct Gathered {
    request: Request,
    /// A release of the same lock that was asked before, on the ordinary connection.
    behind: Option<RequestId>,
}

/// What is asked on a connection of its own, and counts once replicas have confirmed it: whatever may grant
/// a lock, or keep one. Requests gather while a WAIT is out; it would hold up whatever is behind it. It
/// outlives its connections.
///
/// Nothing is asked of one hold on both connections at a time, since the engine has one request of it out:
/// a release leaves after the answer to what it gives back, or after the connection has ended, when
/// `not_after` bounds what may still come. Between holds of one lock the order of asking is kept where it
/// matters: who gives a lock up and tries it again must not find its own hold, so an acquire waits for the
/// answer to an earlier release. A release that comes before an earlier acquire finds one waiter less.
#[derive(Debug)]
pub struct Confirming {
    terms: Terms,
    asked: Asked,
    gathered: VecDeque<Gathered>,
    batch: Option<Batch>,
    /// How many replicas were named, and how many ROLE named last.
    named: u32,
    role: u32,
    /// When the cluster was asked last.
    looked: Time,
}

impl Confirming {
    /// Nothing yet. The codec knows of locks that are shared what that of the other connection does.
    pub fn new(terms: Terms, codec: Codec) -> Confirming {
        Confirming {
            terms,
            asked: Asked::new(codec),
            gathered: VecDeque::new(),
            batch: None,
            named: 0,
            role: 0,
            looked: Time::ZERO,
        }
    }

    /// What counts as confirmed.
    pub fn terms(&self) -> Terms {
        self.terms
    }

    /// Whether a request is asked here: one whose answer may grant. All of them renew, too.
    pub fn takes(op: &Op) -> bool {
        match op {
            Op::Acquire(_) | Op::Beat(_) => true,
            Op::Convert(_) => !planted!(UpgradeUnconfirmed),
            _ => false,
        }
    }

    /// Asks when its turn comes; `main` has what is asked on the ordinary connection.
    pub fn ask(&mut self, request: Request, main: &Asked) {
        let behind = match &request.op {
            Op::Acquire(ask) => main.releases(&ask.lock),
            _ => None,
        };
        self.gathered.push_back(Gathered { request, behind });
    }

    /// So many replicas there are, as those say who know.
    pub fn name(&mut self, replicas: u32) {
        if self.terms.naming == Naming::Told {
            self.named = replicas;
        }
    }

    /// A new connection is there; on it so many replicas were named.
    pub fn begin(&mut self, inbox: Inbox, replicas: u32) {
        self.asked.begin(inbox);
        (self.batch, self.role, self.looked) = (None, 0, Time::ZERO);
        if self.terms.naming != Naming::Told {
            self.named = replicas;
        }
    }

    /// Whether something is to be asked.
    pub fn is_due(&self) -> bool {
        self.batch.is_none() && !self.gathered.is_empty()
    }

    /// Asks what has gathered, unless a WAIT is out.
    pub fn advance(&mut self, now: Time, main: &Asked) {
        if !self.is_due() {
            return;
        }
        let waits = |it: &Gathered| it.behind.is_some_and(|release| main.awaits(release));
        let gathered = std::mem::take(&mut self.gathered);
        let (later, ready): (VecDeque<_>, VecDeque<_>) = gathered.into_iter().partition(waits);
        self.gathered = later;
        if ready.is_empty() {
            return;
        }
        let mut bound = self.terms.timeout;
        for Gathered { request, .. } in ready {
            let lease = shortest_lease(&request.op).unwrap_or(bound * SHARE);
            bound = bound.min(lease / SHARE);
            self.asked.ask(now, request);
        }
        let mut owed = 1;
        self.asked.ask_aside(Question::Wait, &self.terms.wait(self.needed(), bound));
        if self.terms.replicas == Replicas::All {
            // Behind the WAIT, which counts anybody: also one that nobody had named before.
            owed += 1;
            self.asked.ask_aside(Question::Role, Question::Role.words());
            if self.terms.naming == Naming::Nodes && now >= self.looked + LOOK {
                self.looked = now;
                owed += 1;
                self.asked.ask_aside(Question::Nodes, Question::Nodes.words());
            }
        }
        self.batch = Some(Batch::owing(owed));
    }

    /// How many replicas are to confirm, by what is known now.
    fn needed(&self) -> u32 {
        let role = if planted!(NewcomerCounted) { 0 } else { self.role };
        match self.terms.replicas {
            Replicas::AtLeast(count) => count,
            Replicas::All => self.named.max(role).max(1),
        }
    }

    /// Takes what came on the connection; gives what the engine is to be passed.
    pub fn hear(&mut self, events: Vec<Event>, answers: Vec<(Question, Value)>) -> Vec<Event> {
        let mut passed = Vec::new();
        for event in events {
            match &mut self.batch {
                Some(batch) => passed.extend(batch.hold(event)),
                // A script that was forgotten is loaded behind the WAIT: its requests are asked anew.
                None => passed.push(event),
            }
        }
        for (question, value) in answers {
            let Some(batch) = &mut self.batch else { continue };
            batch.owed = batch.owed.saturating_sub(1);
            match question {
                Question::Wait => batch.confirmed = topology::confirmed(&value),
                Question::Role => self.role = topology::named_in_role(&value).unwrap_or(self.role),
                Question::Nodes => {
                    self.named = topology::named_in_cluster(&value).unwrap_or(self.named);
                }
            }
            if self.terms.naming == Naming::Role {
                self.named = self.named.max(self.role);
            }
            if batch.owed == 0 {
                let of = self.needed();
                passed.extend(self.batch.take().into_iter().flat_map(|batch| batch.settle(of)));
            }
        }
        passed
    }

    /// Acts upon what is asked on the connection.
    pub fn asked(&mut self) -> &mut Asked {
        &mut self.asked
    }

    /// What is to be written.
    pub fn outbox(&mut self) -> &mut Outbox {
        self.asked.outbox()
    }

    /// Whether the engine waits for the answer to this request.
    pub fn owes(&self, request: RequestId) -> bool {
        self.asked.owes(request)
            || self.gathered.iter().any(|it| it.request.id == request)
            || self.batch.iter().flat_map(Batch::requests).any(|held| held == request)
    }

    /// Whether the server owes an answer.
    pub fn is_owed(&self) -> bool {
        self.asked.is_owed()
    }

    /// The connection has ended: answers for what is under way. What was granted and not confirmed is not
    /// known.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        for request in self.batch.take().iter().flat_map(Batch::requests) {
            events.push(Event::Reply { request, result: Err(Failure::Unknown) });
        }
        self.asked.end(events);
        for Gathered { request, .. } in self.gathered.drain(..) {
            events.push(Event::Reply { request: request.id, result: Err(Failure::NotSent) });
        }
    }

    /// Forgets everything: nobody waits for an answer any more.
    pub fn clear(&mut self) {
        self.asked.clear();
        self.gathered.clear();
        self.batch = None;
    }
}
