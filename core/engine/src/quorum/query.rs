//! Questions that concern no hold of the engine's: all servers are asked, and enough must answer.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::quorum::Machine;
use crate::quorum::machine::Due;
use crate::quorum::merge::{self, View};
use crate::quorum::server::Aim;
use crate::reply::{Body, Broken, Failure, Refusal, Reply};
use crate::request::{Break, Op, RequestId};
use crate::time::Time;

/// How long the others may take once enough have answered.
const OTHERS: Duration = Duration::from_millis(100);

/// A question until its answer.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    request: RequestId,
    op: Op,
    answers: BTreeMap<usize, Body>,
    /// How many servers have not answered.
    open: usize,
    refused: Option<Refusal>,
    due: Time,
    /// Of a break: whose hold is ended, by how many votes less than it may have.
    ends: Option<usize>,
}

impl Machine {
    pub(crate) fn ask_all(&mut self, request: RequestId, op: Op) {
        let id = self.mint();
        // Of a break it is asked first which votes are meant: each server knows its own.
        let question = match &op {
            Op::Break(what) => Op::Inspect(what.lock.clone()),
            other => other.clone(),
        };
        let due = self.now + self.patience();
        let mut open = 0;
        for server in 0..self.servers.len() {
            if self.servers[server].is_usable() {
                self.send(server, Aim::Query(id), question.clone());
                open += 1;
            }
        }
        let (answers, refused, ends) = (BTreeMap::new(), None, None);
        self.queries.insert(id, Query { request, op, answers, open, refused, due, ends });
        self.timers.insert((due, Due::Query(id)));
        self.look_at_query(id);
    }

    pub(crate) fn query_answered(
        &mut self,
        server: usize,
        id: u64,
        result: Result<Reply, Failure>,
    ) {
        let Some(query) = self.queries.get_mut(&id) else { return };
        query.open -= 1;
        match result {
            Ok(reply) => {
                query.answers.insert(server, reply.body);
            }
            Err(Failure::Refused(refusal)) => query.refused = Some(refusal),
            Err(Failure::Unknown | Failure::NotSent) => {}
        }
        self.look_at_query(id);
    }

    fn look_at_query(&mut self, id: u64) {
        let (now, quorum) = (self.now, self.config.quorum());
        let Some(query) = self.queries.get_mut(&id) else { return };
        if query.open == 0 {
            return self.query_due(id);
        }
        let soon = now + OTHERS;
        if query.answers.len() >= quorum && soon < query.due {
            self.timers.remove(&(query.due, Due::Query(id)));
            query.due = soon;
            self.timers.insert((soon, Due::Query(id)));
        }
    }

    /// Answers a question with what was heard.
    pub(crate) fn query_due(&mut self, id: u64) {
        let Some(query) = self.queries.remove(&id) else { return };
        self.timers.remove(&(query.due, Due::Query(id)));
        let Query { request, op, answers, refused, ends, .. } = query;
        if let Some(spare) = ends {
            // The hold is ended when too few of its votes are left.
            return match answers.len() > spare {
                true => self.answer(request, Body::Break(Broken::Ended(1))),
                false => self.fail(request, Failure::Unknown),
            };
        }
        if answers.len() < self.config.quorum() {
            return self.fail(request, refused.map_or(Failure::Unknown, Failure::Refused));
        }
        match op {
            Op::Inspect(name) => {
                let view = self.view(answers);
                let own = |key| self.seats.get(&key).map(|seat| (seat.hold, seat.token));
                self.answer(request, Body::Inspect(view.info(&name, own)));
            }
            Op::List { limit, .. } => {
                self.answer(request, Body::List(merge::names(answers, limit)))
            }
            Op::Break(what) => self.end_seen(request, what, answers),
            _ => self.answer(request, Body::Time),
        }
    }

    fn view(&self, answers: BTreeMap<usize, Body>) -> View {
        View::new(answers, self.config.servers.len(), self.config.quorum())
    }

    /// Ends the votes of the hold that is meant, each by its own name.
    fn end_seen(&mut self, request: RequestId, what: Break, answers: BTreeMap<usize, Body>) {
        let view = self.view(answers);
        let own = |key| self.seats.get(&key).map(|seat| (seat.hold, seat.token));
        let Some((key, token)) = view.holder(own) else {
            return self.answer(request, Body::Break(Broken::NotHeld));
        };
        if token > what.token {
            return self.answer(request, Body::Break(Broken::ChangedHands(token)));
        }
        if what.hold.is_some_and(|hold| super::seat::Key::of(hold) != key) {
            return self.answer(request, Body::Break(Broken::NotHeld));
        }
        let id = self.mint();
        let due = self.now + self.patience();
        let votes = view.votes(key);
        let unseen = self.config.servers.len() - view.seen();
        // So many of them must end that fewer than enough are left.
        let spare = (votes.len() + unseen).saturating_sub(self.config.quorum());
        let mut open = 0;
        for (server, hold, token) in votes {
            let (lock, hold) = (what.lock.clone(), Some(hold));
            self.send(server, Aim::Query(id), Op::Break(Break { lock, token, hold }));
            open += 1;
        }
        let (answers, op, ends) = (BTreeMap::new(), Op::Break(what), Some(spare));
        self.queries.insert(id, Query { request, op, answers, open, refused: None, due, ends });
        self.timers.insert((due, Due::Query(id)));
        self.look_at_query(id);
    }
}
