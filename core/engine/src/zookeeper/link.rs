//! The connection and the session: had, lost, and had again.

use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::reply::{Failure, Push};
use crate::time::Time;
use crate::zookeeper::machine::{Aim, Due, Machine};
use crate::zookeeper::place::{Ask, Step, What};
use crate::zookeeper::session::Session;
use crate::zookeeper::wire::ZkOp;

impl Machine {
    pub(super) fn new_session(&mut self, id: i64, timeout: Duration, since: Time, wall: u64) {
        if self.session.is_some() {
            self.expired();
        }
        let ahead = wall.saturating_sub(self.now.as_nanos() / 1_000);
        self.ahead = self.ahead.max(ahead);
        self.session = Some(Session::new(id, timeout, since, self.now));
        self.connected = true;
        self.pace();
        self.say_up();
    }

    /// The session is still there. What was under way when the connection went is looked for, once
    /// the leader has confirmed that this server has all of it.
    pub(super) fn reattached(&mut self) {
        if self.session.is_none() || self.connected {
            return;
        }
        self.connected = true;
        self.keep_strays();
        // What the last connection left behind is done before what is asked for after this.
        if planted!(ZkListWithoutSync) {
            self.set_pace();
        } else {
            self.pace();
        }
        self.clear_litter();
        let holds: Vec<_> = self.places.keys().copied().collect();
        for hold in holds {
            self.look_again(hold);
        }
        self.look_for_strays();
        self.say_up();
    }

    pub(super) fn disconnected(&mut self, reason: String) {
        self.connected = false;
        self.up = false;
        if let Some(session) = &mut self.session {
            session.asking = false;
        }
        for (_, job) in std::mem::take(&mut self.jobs) {
            self.fail(job.request, Failure::Unknown);
        }
        for hold in std::mem::take(&mut self.stale) {
            let ask = self.places.get_mut(&hold).and_then(|place| place.ask.take());
            if let Some(ask) = ask {
                self.fail(ask.request, Failure::Unknown);
            }
        }
        self.event(Event::Down { reason });
    }

    /// All nodes of the session are gone, or about to be; so are its watches and calls.
    pub(super) fn expired(&mut self) {
        let reason = "the ZooKeeper session expired".to_owned();
        self.session = None;
        self.connected = false;
        self.up = false;
        self.calls.clear();
        self.watched.clear();
        self.lasts.clear();
        self.litter.clear();
        self.strays.clear();
        self.denied.clear();
        self.stale.clear();
        self.timers.clear();
        for (_, job) in std::mem::take(&mut self.jobs) {
            self.fail(job.request, Failure::Unknown);
        }
        for (_, query) in std::mem::take(&mut self.queries) {
            self.fail(query.request, Failure::Unknown);
        }
        for (hold, place) in std::mem::take(&mut self.places) {
            match place.ask {
                // Whatever it made went with the session.
                Some(Ask { request, what: What::Acquire { .. }, .. }) => {
                    self.fail(request, Failure::NotSent);
                }
                Some(Ask { request, what: What::Release { .. } | What::Convert, .. }) => {
                    self.fail(request, Failure::Unknown);
                }
                None => self.push(Push::Changed { lock: place.lock, hold }),
            }
        }
        self.event(Event::Down { reason });
    }

    pub(super) fn auth_failed(&mut self, reason: String) {
        self.expired();
        let error = Error::new(ErrorKind::Misconfigured, reason);
        self.event(Event::Misconfigured(error));
    }

    /// The engine may ask as soon as a grant would be worth something.
    pub(super) fn say_up(&mut self) {
        let Some(session) = &self.session else { return };
        if self.connected && !self.up && session.is_fresh(self.now) {
            self.up = true;
            let now = self.store_time();
            self.event(Event::Up { now });
        }
    }

    /// Sets when the next round trip through the leader leaves.
    fn set_pace(&mut self) {
        let Some(session) = &mut self.session else { return };
        self.timers.remove(&(session.due, Due::Pace));
        session.due = self.now + session.pace();
        self.timers.insert((session.due, Due::Pace));
    }

    /// The next round trip through the leader leaves, unless one is still under way.
    pub(super) fn pace(&mut self) {
        if !self.connected {
            return;
        }
        self.set_pace();
        let now = self.now;
        let Some(session) = &mut self.session else { return };
        if session.asking {
            return;
        }
        session.asking = true;
        let path = if self.options.chroot.is_empty() { "/" } else { &self.options.chroot };
        let path = path.to_owned();
        // Only the leader can answer for the session.
        let ask = match planted!(ZkPingProves) {
            true => ZkOp::Exists { path, watch: false },
            false => ZkOp::Sync { path },
        };
        self.call(ask, Aim::Pace(now));
        self.look_for_strays();
    }

    pub(super) fn paced(&mut self, sent: Time, answered: bool) {
        let Some(session) = &mut self.session else { return };
        session.asking = false;
        if !answered {
            return;
        }
        session.answer(sent, self.now);
        self.say_up();
        self.answer_stale();
    }

    /// Answers what waited for news of the session.
    fn answer_stale(&mut self) {
        if !self.session.as_ref().is_some_and(|session| session.is_fresh(self.now)) {
            return;
        }
        for hold in std::mem::take(&mut self.stale) {
            self.tell_granted(hold);
        }
        let done: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| job.pending == 0).map(|(&id, _)| id).collect();
        for job in done {
            self.finish_job(job);
        }
    }

    /// After a connection was lost: whatever rests looks at where it stands.
    fn look_again(&mut self, hold: crate::id::HoldId) {
        let Some(place) = self.places.get(&hold) else { return };
        if place.held && place.is_turning() {
            return self.turn(hold);
        }
        if place.ask.is_some() || place.pending > 0 {
            return;
        }
        if self.is_simple() && !place.held {
            return self.simple_look(hold);
        }
        match place.step {
            _ if place.node.is_none() => {}
            Step::Queued | Step::List | Step::Watch => self.list_place(hold),
            // A hold that lasts sets its watches anew; others when the engine asks.
            Step::Held => self.at(Duration::ZERO, Due::Lasting(hold)),
            _ => {}
        }
    }
}
