//! The conversation with one Sentinel.

use std::collections::VecDeque;

use crate::redis::Value;
use crate::redis::node::Node;
use crate::redis::sentinel::report::{self, Answer, Report};
use crate::redis::session::{
    Backoff, Frame, Greeted, Greeting, Login, NoSession, Protocol, Purpose, words,
};
use crate::time::Time;

/// Where a Sentinel tells of each failover.
const CHANNEL: &str = "+switch-master";

/// What the next reply answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Subscribe,
    Replicas,
    Epoch,
    /// The second half of a question that was put at this moment.
    Address(Time),
}

#[derive(Debug)]
enum State {
    /// There is no connection, and none is made before this moment.
    Away(Time),
    Dialling,
    Greeting(Box<Greeting>),
    Ready(Box<Greeted>),
}

/// What came of some bytes.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// An answer to a question that was put at this moment.
    pub answered: Option<Time>,
    /// It told that the master is another.
    pub switched: bool,
}

/// The conversation with one Sentinel.
#[derive(Debug)]
pub(super) struct Line {
    pub node: Node,
    pub backoff: Backoff,
    state: State,
    /// Since when it is dialled, greeted, or owes an answer.
    since: Time,
    asked: VecDeque<Asked>,
    epoch: Option<u64>,
    /// When it is to be asked again.
    pub ask_at: Time,
    /// What it said last, on this connection.
    pub answer: Option<Answer>,
    /// How many replicas of the master it named last, on this connection.
    pub replicas: Option<u32>,
    /// Why there was no connection, or no answer, and when that became known.
    pub failure: Option<(Time, NoSession)>,
}

impl Line {
    pub fn new(now: Time, node: Node, backoff: Backoff) -> Line {
        Line {
            node,
            backoff,
            state: State::Away(now),
            since: now,
            asked: VecDeque::new(),
            epoch: None,
            ask_at: now,
            answer: None,
            replicas: None,
            failure: None,
        }
    }

    /// When a connection may be made, if there is none.
    pub fn away_until(&self) -> Option<Time> {
        match self.state {
            State::Away(until) => Some(until),
            _ => None,
        }
    }

    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Ready(_))
    }

    /// Since when something is awaited of it.
    pub fn waits_since(&self) -> Option<Time> {
        match self.state {
            State::Away(_) => None,
            State::Ready(_) if self.asked.is_empty() => None,
            _ => Some(self.since),
        }
    }

    pub fn report(&self) -> Option<&Report> {
        match &self.answer {
            Some(Answer::Master(report)) => Some(report),
            _ => None,
        }
    }

    pub fn dial(&mut self, now: Time) {
        (self.state, self.since) = (State::Dialling, now);
    }

    /// It is connected: gives the first words.
    pub fn dialled(&mut self, protocol: Protocol, login: Option<Login>) -> Vec<u8> {
        let mut greeting = Greeting::new(Purpose::Questions, protocol, login);
        let out = greeting.take();
        self.state = State::Greeting(Box::new(greeting));
        out
    }

    /// The connection is gone, or is to go; another one is made at `again`.
    pub fn fail(&mut self, now: Time, why: NoSession, again: Time) {
        self.state = State::Away(again);
        self.asked.clear();
        (self.answer, self.epoch, self.replicas) = (None, None, None);
        self.failure = Some((now, why));
    }

    /// The question for the master, and for how many `replicas` it has, in bytes.
    pub fn ask(&mut self, now: Time, master: &str, replicas: bool, out: &mut Vec<u8>) {
        if self.asked.is_empty() {
            self.since = now;
        }
        if replicas {
            words(out, &[report::REPLICAS[0], report::REPLICAS[1], master]);
            self.asked.push_back(Asked::Replicas);
        }
        for (command, asked) in
            [(report::EPOCH, Asked::Epoch), (report::ADDRESS, Asked::Address(now))]
        {
            words(out, &[command[0], command[1], master]);
            self.asked.push_back(asked);
        }
    }

    /// Takes what has come; `out` is what is to be written.
    pub fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        master: &str,
        replicas: bool,
        out: &mut Vec<u8>,
    ) -> Result<Heard, NoSession> {
        match &mut self.state {
            State::Away(_) | State::Dialling => return Ok(Heard::default()),
            State::Greeting(greeting) => {
                let Some(greeted) = greeting.receive(bytes)? else {
                    out.extend(greeting.take());
                    return Ok(Heard::default());
                };
                // A connection with RESP2 can ask nothing any more once it has subscribed.
                if greeted.resp3 {
                    words(out, &["SUBSCRIBE", CHANNEL]);
                    self.asked.push_back(Asked::Subscribe);
                }
                self.state = State::Ready(Box::new(greeted));
                self.since = now;
                self.ask(now, master, replicas, out);
            }
            State::Ready(greeted) => greeted.incoming.extend(bytes),
        }
        let mut heard = Heard::default();
        while let State::Ready(greeted) = &mut self.state {
            let frame = greeted.incoming.frame();
            let frame = frame.map_err(|garbage| NoSession::misconfigured(garbage.to_string()))?;
            let Some(frame) = frame else { break };
            let reply = match frame {
                Frame::Push(values) if is_answer(&values) => Value::Array(values),
                Frame::Push(values) => {
                    heard.switched |= is_about(&values, master);
                    continue;
                }
                Frame::Reply(value) => value,
            };
            let Some(asked) = self.asked.pop_front() else {
                return Err(NoSession::Later("it answered what nobody asked".to_owned()));
            };
            self.since = now;
            if let Some(at) = self.answered(asked, reply)? {
                heard.answered = Some(at);
            }
        }
        Ok(heard)
    }

    /// Takes one answer; gives when the question was put that it completes.
    fn answered(&mut self, asked: Asked, reply: Value) -> Result<Option<Time>, NoSession> {
        let State::Ready(greeted) = &self.state else { return Ok(None) };
        let secrets = &greeted.secrets;
        match asked {
            // One that may not subscribe is asked all the same.
            Asked::Subscribe => Ok(None),
            Asked::Replicas => {
                self.replicas = report::replicas(reply, secrets)?.or(self.replicas);
                Ok(None)
            }
            Asked::Epoch => {
                self.epoch = report::epoch(reply, secrets)?;
                Ok(None)
            }
            Asked::Address(at) => {
                let node = report::address(reply, secrets)?;
                self.answer = Some(match self.epoch.take().zip(node) {
                    Some((epoch, node)) => Answer::Master(Report { epoch, node }),
                    None => Answer::Unknown,
                });
                self.failure = None;
                // What only greets is no Sentinel, or does not let us ask.
                self.backoff.reset();
                Ok(Some(at))
            }
        }
    }
}

/// Whether it is the answer to SUBSCRIBE.
fn is_answer(values: &[Value]) -> bool {
    values.first().and_then(Value::text) == Some("subscribe")
}

/// Whether it tells of a switch of this master: its name stands first.
fn is_about(values: &[Value], master: &str) -> bool {
    match values {
        [kind, channel, text] if kind.text() == Some("message") => {
            let name = text.text().and_then(|text| text.strip_prefix(master));
            channel.text() == Some(CHANNEL) && name.is_some_and(|rest| rest.starts_with(' '))
        }
        _ => false,
    }
}
