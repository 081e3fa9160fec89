//! Questions to the store that concern no hold.

use crate::engine::Engine;
use crate::engine::flight::{Flight, Purpose};
use crate::engine::slab::Key;
use crate::engine::timer::Due;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Outcome};
use crate::name::Name;
use crate::options::Keeping;
use crate::reply::{Body, Failure, RefusalKind, Reply};
use crate::request::Op;
use crate::time::Time;

/// A question until its answer.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Query<C> {
    op: Op,
    call: C,
    deadline: Time,
    in_flight: bool,
}

impl<C: Clone> Engine<C> {
    /// Asks the store for the state of a lock. Completes with [`Outcome::Inspected`].
    pub fn inspect(&mut self, now: Time, name: &Name, call: C) {
        self.query(now, Op::Inspect(name.clone()), call);
    }

    /// Asks the store for the names that begin with `prefix`, at most `limit` of them. Completes
    /// with [`Outcome::Listed`].
    pub fn list(&mut self, now: Time, prefix: &str, limit: usize, call: C) {
        self.query(now, Op::List { prefix: prefix.to_owned(), limit }, call);
    }

    /// Ends every hold on a lock, whoever has it. Completes with [`Outcome::Broken`].
    pub fn break_lock(&mut self, now: Time, name: &Name, call: C) {
        self.query(now, Op::Break(name.clone()), call);
    }

    /// Asks the holder of a lock to give it up soon. Completes with [`Outcome::Revoked`]; fails as
    /// unsupported where holders are told of waiters by themselves.
    pub fn revoke(&mut self, now: Time, name: &Name, call: C) {
        if self.options.keeping == Keeping::Leases {
            let error =
                Error::new(ErrorKind::Unsupported, crate::store::revoke_unsupported().message);
            self.effects.push_back(Effect::Complete(call, Outcome::Failed(error)));
        } else {
            self.query(now, Op::Revoke(name.clone()), call);
        }
    }

    /// Asks the store's time. Completes with [`Outcome::Time`].
    pub fn ping(&mut self, now: Time, call: C) {
        self.query(now, Op::Time, call);
    }

    fn query(&mut self, now: Time, op: Op, call: C) {
        let now = self.at(now);
        if let Some(error) = self.refuses() {
            self.effects.push_back(Effect::Complete(call, Outcome::Failed(error)));
            return;
        }
        let deadline = now + self.options.request_timeout;
        let key = self.queries.insert(Query { op, call, deadline, in_flight: false });
        self.timers.insert((deadline, Due::Query(key)));
        self.send_query(now, key);
    }

    fn send_query(&mut self, now: Time, key: Key) {
        if !self.link.up {
            return;
        }
        let Some(query) = self.queries.get_mut(key) else { return };
        if query.in_flight {
            return;
        }
        query.in_flight = true;
        let op = query.op.clone();
        self.send(Flight { sent: now, purpose: Purpose::Query(key) }, op);
    }

    pub(super) fn send_queries(&mut self, now: Time) {
        for key in self.queries.keys() {
            self.send_query(now, key);
        }
    }

    pub(super) fn query_replied(&mut self, now: Time, key: Key, result: Result<Reply, Failure>) {
        let Some(query) = self.queries.get_mut(key) else { return };
        query.in_flight = false;
        let outcome = match result {
            Ok(reply) => match reply.body {
                Body::Inspect(info) => Outcome::Inspected(info.map(Box::new)),
                Body::List(names) => Outcome::Listed(names),
                Body::Break(count) => Outcome::Broken(count),
                Body::Revoke(told) => Outcome::Revoked(told),
                _ => Outcome::Time(reply.now),
            },
            Err(Failure::Refused(refusal)) => match refusal.kind {
                RefusalKind::Again => return self.send_query(now, key),
                kind => Outcome::Failed(Error::new(super::kind_of(kind), refusal.message)),
            },
            // Asking again is harmless; until the deadline, once there is a connection.
            Err(Failure::Unknown | Failure::NotSent) => return,
        };
        self.end_query(key, outcome);
    }

    pub(super) fn query_expired(&mut self, key: Key) {
        let error =
            Error::new(ErrorKind::Unavailable, self.unavailable("the store did not answer"));
        self.end_query(key, Outcome::Failed(error));
    }

    pub(super) fn fail_queries(&mut self, error: &Error) {
        for key in self.queries.keys() {
            self.end_query(key, Outcome::Failed(error.clone()));
        }
    }

    fn end_query(&mut self, key: Key, outcome: Outcome) {
        if let Some(query) = self.queries.remove(key) {
            self.timers.remove(&(query.deadline, Due::Query(key)));
            self.effects.push_back(Effect::Complete(query.call, outcome));
        }
    }
}
