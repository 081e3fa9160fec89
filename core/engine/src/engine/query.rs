//! Questions to the store that concern no hold.

use crate::engine::Engine;
use crate::engine::entry::At;
use crate::engine::flight::{Asked, Flight, Purpose};
use crate::engine::slab::Key;
use crate::engine::timer::Due;
use crate::error::{Error, ErrorKind};
use crate::event::{Effect, Outcome};
use crate::hold::LossReason;
use crate::lane::LaneId;
use crate::name::Name;
use crate::options::Keeping;
use crate::reply::{Body, Broken, Failure, LockInfo, RefusalKind, Reply};
use crate::request::{Break, Mode, Op, Resize};
use crate::time::Time;

/// How often a question may be sent on, or be asked again at once for another reason.
const AGAIN: u32 = 16;

/// A question until its answer.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Query<C> {
    op: Op,
    call: C,
    deadline: Time,
    /// When it is looked at next: at its deadline, or before.
    due: Time,
    in_flight: bool,
    /// How often it was to be asked again at once.
    again: u32,
    /// The store was asked whether it still answers, and has not said yet.
    doubted: bool,
}

impl<C> Query<C> {
    fn is_listing(&self) -> bool {
        matches!(self.op, Op::List { .. })
    }
}

impl<C: Clone> Engine<C> {
    /// Asks the store for the state of a lock. Completes with [`Outcome::Inspected`].
    pub fn inspect(&mut self, now: Time, name: &Name, call: C) {
        self.query(now, Op::Inspect(name.clone()), call);
    }

    /// Asks the store for the names that begin with `prefix`, at most `limit` of them. Completes
    /// with [`Outcome::Listed`]. It may take as long as it needs while the store goes on
    /// answering.
    pub fn list(&mut self, now: Time, prefix: &str, limit: usize, call: C) {
        self.query(now, Op::List { prefix: prefix.to_owned(), limit }, call);
    }

    /// Ends the holds of the tenure that `token` belongs to, whoever has them; none that came
    /// after it. Completes with [`Outcome::Broken`].
    pub fn break_lock(&mut self, now: Time, what: Break, call: C) {
        self.query(now, Op::Break(what), call);
    }

    /// Sets how many permits a semaphore has for those who hold or wait. Completes with
    /// [`Outcome::Resized`].
    pub fn resize(&mut self, now: Time, name: &Name, of: u32, call: C) {
        match (Mode::Permits { count: 1, of }).check() {
            Ok(()) => self.query(now, Op::Resize(Resize { lock: name.clone(), of }), call),
            Err(error) => self.effects.push_back(Effect::Complete(call, Outcome::Failed(error))),
        }
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
        if let Some(error) = self.refuses(self.lane_of_op(&op)) {
            self.effects.push_back(Effect::Complete(call, Outcome::Failed(error)));
            return;
        }
        let deadline = now + self.options.request_timeout;
        let (due, in_flight, doubted) = (deadline, false, false);
        let query = Query { op, call, deadline, due, in_flight, again: 0, doubted };
        let due = if query.is_listing() { self.half_way(now) } else { deadline };
        let key = self.queries.insert(query);
        self.arm_query(key, due);
        self.send_query(now, key);
    }

    fn send_query(&mut self, now: Time, key: Key) {
        let Some(lane) = self.lane_of_query(key) else { return };
        let Some(query) = self.queries.get_mut(key) else { return };
        if query.in_flight || !self.lanes[lane].link.takes_work() {
            return;
        }
        query.in_flight = true;
        let op = query.op.clone();
        let asked = if query.is_listing() { Asked::Listing(key) } else { Asked::Question(key) };
        self.send(lane, Flight { sent: now, purpose: Purpose::Query(asked) }, op);
    }

    pub(super) fn send_queries(&mut self, now: Time, lane: LaneId) {
        for key in self.queries.keys() {
            if self.lane_of_query(key) == Some(lane) {
                self.send_query(now, key);
            }
        }
    }

    /// What any server answers does not wait for one that is gone.
    pub(super) fn ask_elsewhere(&mut self, now: Time) {
        for lane in self.lanes.ids() {
            if self.lanes[lane].link.up {
                self.send_queries(now, lane);
            }
        }
    }

    fn lane_of_query(&self, key: Key) -> Option<LaneId> {
        self.queries.get(key).map(|query| self.lane_of_op(&query.op))
    }

    pub(super) fn query_replied(
        &mut self,
        now: Time,
        lane: LaneId,
        asked: Asked,
        result: Result<Reply, Failure>,
    ) {
        let key = match asked {
            Asked::Question(key) | Asked::Listing(key) => key,
            Asked::Alive(key) => return self.alive_replied(now, key, &result),
        };
        let Some(query) = self.queries.get_mut(key) else { return };
        query.in_flight = false;
        let outcome = match result {
            Ok(reply) => match reply.body {
                Body::Inspect(info) => Outcome::Inspected(info.map(|info| self.corrected(info))),
                Body::List(names) => Outcome::Listed(names),
                Body::Break(broken) => {
                    if let Op::Break(what) = &query.op
                        && let Broken::Ended(_) = broken
                    {
                        let what = what.clone();
                        self.end_broken(now, &what);
                    }
                    Outcome::Broken(broken)
                }
                Body::Resize(resized) => Outcome::Resized(resized),
                Body::Revoke(told) => Outcome::Revoked(told),
                _ => Outcome::Time(reply.now),
            },
            Err(Failure::Refused(refusal)) => match refusal.kind {
                RefusalKind::Again if query.again < AGAIN => {
                    query.again += 1;
                    return self.send_query(now, key);
                }
                kind => Outcome::Failed(Error::new(super::kind_of(kind), refusal.message)),
            },
            // Asking again is harmless; until the deadline, once there is a connection. To the server
            // that has the name now there may be one.
            Err(Failure::Unknown | Failure::NotSent) => {
                if self.lane_of_query(key) != Some(lane) {
                    self.send_query(now, key);
                }
                return;
            }
        };
        self.end_query(key, outcome);
    }

    /// The client's own readers among those whom it broke. The store's word to each may come later than
    /// the grant of the client's next request, which would only say that they are gone.
    fn end_broken(&mut self, now: Time, what: &Break) {
        let lock = self.names.get(&what.lock).and_then(|key| self.locks.get(*key));
        let Some(lock) = lock else { return };
        let readers = lock.readers.values().filter_map(|reader| reader.held);
        let held: Vec<Key> = readers.chain(lock.seat).chain(lock.entry).collect();
        for key in held {
            let is_broken = self.entries.get(key).is_some_and(|entry| {
                entry.mode == Mode::Shared
                    && entry.at == At::Held
                    && entry.parting.is_none()
                    && entry.token <= what.token
                    && what.hold.is_none_or(|hold| hold == entry.id)
            });
            if is_broken {
                self.vanish(now, key, LossReason::Broken);
            }
        }
    }

    /// With what this client knows better than the store: how many wait within it.
    fn corrected(&self, mut info: LockInfo) -> Box<LockInfo> {
        let holds = info.holds.iter_mut().map(|it| (it.hold, &mut it.local_waiters));
        let waiters = info.waiters.iter_mut().map(|it| (it.hold, &mut it.local_waiters));
        for (hold, said) in holds.chain(waiters) {
            let Some(key) = self.entry_of(hold) else { continue };
            let (was, is) = (said.unwrap_or(0), self.local_waiters(key));
            *said = Some(is);
            info.waiting = info.waiting.saturating_sub(was as usize) + is as usize;
        }
        Box::new(info)
    }

    /// Half-way to its deadline, a listing that is under way asks whether the store still answers.
    pub(super) fn query_due(&mut self, now: Time, key: Key) {
        let half_way = self.half_way(now);
        let Some(lane) = self.lane_of_query(key) else { return };
        let live = self.lanes[lane].link.takes_work();
        let Some(query) = self.queries.get_mut(key) else { return };
        if query.is_listing() && query.in_flight && live && !query.doubted {
            query.doubted = true;
            query.deadline = half_way;
            let purpose = Purpose::Query(Asked::Alive(key));
            self.send(lane, Flight { sent: now, purpose }, Op::Time);
            self.arm_query(key, half_way);
        } else if query.deadline > now {
            let deadline = query.deadline;
            self.arm_query(key, deadline);
        } else {
            self.query_expired(key);
        }
    }

    /// The store answers, so the listing may go on; or the connection went, and its deadline counts.
    fn alive_replied(&mut self, now: Time, key: Key, result: &Result<Reply, Failure>) {
        let (half_way, deadline) = (self.half_way(now), now + self.options.request_timeout);
        let Some(query) = self.queries.get_mut(key) else { return };
        query.doubted = false;
        if !matches!(result, Err(Failure::Unknown | Failure::NotSent)) {
            query.deadline = deadline;
            self.arm_query(key, half_way);
        }
    }

    fn half_way(&self, now: Time) -> Time {
        now + self.options.request_timeout / 2
    }

    fn arm_query(&mut self, key: Key, due: Time) {
        let Some(query) = self.queries.get_mut(key) else { return };
        self.timers.remove(&(query.due, Due::Query(key)));
        self.timers.insert((due, Due::Query(key)));
        query.due = due;
    }

    fn query_expired(&mut self, key: Key) {
        let lane = self.lane_of_query(key).unwrap_or_default();
        let error =
            Error::new(ErrorKind::Unavailable, self.unavailable(lane, "the store did not answer"));
        self.end_query(key, Outcome::Failed(error));
    }

    /// Those of one server; without one, all.
    pub(super) fn fail_queries(&mut self, lane: Option<LaneId>, error: &Error) {
        let mut keys = self.queries.keys();
        keys.retain(|key| lane.is_none() || self.lane_of_query(*key) == lane);
        for key in keys {
            self.end_query(key, Outcome::Failed(error.clone()));
        }
    }

    fn end_query(&mut self, key: Key, outcome: Outcome) {
        if let Some(query) = self.queries.remove(key) {
            self.timers.remove(&(query.due, Due::Query(key)));
            self.effects.push_back(Effect::Complete(query.call, outcome));
        }
    }
}
