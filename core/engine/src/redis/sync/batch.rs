//! Requests that one WAIT is for.

use std::time::Duration;

use crate::event::Event;
use crate::reply::{Body, Reply, Standing, State};
use crate::request::{Op, RequestId};

/// Requests that one WAIT is for, and the answers that hang on it.
#[derive(Debug)]
pub(super) struct Batch {
    /// Answers that grant something.
    held: Vec<Event>,
    /// How many replicas have confirmed, by the answer to WAIT.
    pub confirmed: u32,
    /// So many questions behind the requests are not answered yet.
    pub owed: u32,
}

impl Batch {
    /// One behind which so many questions were asked.
    pub fn owing(owed: u32) -> Batch {
        Batch { held: Vec::new(), confirmed: 0, owed }
    }

    /// Keeps an answer back that grants something; gives any other.
    pub fn hold(&mut self, event: Event) -> Option<Event> {
        match &event {
            Event::Reply { result: Ok(reply), .. } if grants(&reply.body) => {
                self.held.push(event);
                None
            }
            _ => Some(event),
        }
    }

    /// The answers that were kept back, now that it is known that `of` replicas were to confirm.
    pub fn settle(self, of: u32) -> Vec<Event> {
        let by = self.confirmed;
        let mut held = self.held;
        for event in &mut held {
            if let Event::Reply { result: Ok(reply), .. } = event {
                judge(reply, by, of);
            }
        }
        held
    }

    /// Whose answers are kept back.
    pub fn requests(&self) -> impl Iterator<Item = RequestId> {
        self.held.iter().filter_map(|event| match event {
            Event::Reply { request, .. } => Some(*request),
            _ => None,
        })
    }
}

/// Whether an answer says of a hold that it is there, or is there for longer.
pub fn grants(body: &Body) -> bool {
    let granted = |state: &State| state.standing == Standing::Granted;
    match body {
        Body::Acquire(state) | Body::Convert(state) => granted(state),
        Body::Beat(states) => states.iter().flatten().any(granted),
        _ => false,
    }
}

/// What an answer says that grants, when `by` replicas have confirmed it and `of` were to.
pub fn judge(reply: &mut Reply, by: u32, of: u32) {
    if by >= of || planted!(WaitShortIgnored) {
        return;
    }
    let short = |state: &mut State| {
        if state.standing == Standing::Granted {
            *state = State::bare(Standing::Unconfirmed { by, of });
        }
    };
    match &mut reply.body {
        Body::Acquire(state) | Body::Convert(state) => short(state),
        Body::Beat(states) => states.iter_mut().flatten().for_each(short),
        _ => {}
    }
}

/// The shortest lease that a request asks for; none of one that asks for none.
pub(super) fn shortest_lease(op: &Op) -> Option<Duration> {
    match op {
        Op::Acquire(ask) => Some(ask.lease),
        Op::Convert(ask) => Some(ask.lease),
        Op::Beat(beats) => beats.iter().map(|beat| beat.lease).min(),
        _ => None,
    }
}
