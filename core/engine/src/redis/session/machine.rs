//! When a connection is made, and when another: attempts, the time that each may take, the pauses
//! between them, and a second connection beside one that is silent.
//!
//! A server that stands still, or has too much to do, looks like one that is gone. To give a
//! connection up for that would be wrong twice: what was asked on it is asked again, and a server
//! that comes back finds all its clients connecting anew. So the first one stays until another is
//! ready. A server reads what came first before it greets who comes later: when the second is ready
//! and the first is silent still, the first is dead.

use std::collections::VecDeque;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::event::Event;
use crate::id::ClientId;
use crate::redis::node::Node;
use crate::redis::session::attempt::{Attempt, Step};
use crate::redis::session::backoff::Backoff;
use crate::redis::session::greeting::Greeted;
use crate::redis::session::login::{Login, Protocol};
use crate::redis::session::refusal::NoSession;
use crate::redis::sync;
use crate::redis::{Charter, Codec, Inbox};
use crate::time::Time;

/// How often to look whether an operator has mended what only an operator can.
const MISCONFIGURED_PAUSE: Duration = Duration::from_secs(1);

/// The first pause before a second connection: clients that lost the same server do not come together.
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// Which server is meant, as errors name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// This one.
    Fixed(String),
    /// The one that others say is the master: each attempt asks anew.
    Sought(String),
}

/// Whom to reach, and how.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Who asks.
    pub client: ClientId,
    /// The beginning of every key and channel.
    pub prefix: String,
    /// The database's number.
    pub db: u32,
    /// Which protocol to speak.
    pub protocol: Protocol,
    /// The server.
    pub server: Server,
    /// It is a server of a cluster: only a master will do, which is also understood of one that others
    /// name, and its sharded channels are used, if it has them.
    pub cluster: bool,
    /// It is a server of such a quorum.
    pub charter: Option<Charter>,
    /// What replicas are to confirm, on a connection of its own.
    pub sync: Option<sync::Terms>,
    /// Whether it is reached by TLS.
    pub tls: bool,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
    /// The first pause between two attempts.
    pub backoff_min: Duration,
    /// The longest one.
    pub backoff_max: Duration,
}

/// Which of the connections that make a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// That of the requests.
    Main,
    /// That of the subscription, when RESP3 is not to be had.
    Apart,
    /// That of the grants which replicas confirm.
    Sync,
}

/// What happened. All but the last two, and [`Input::Moved`], are about what [`Output`] last asked for.
#[derive(Debug)]
pub enum Input<'a> {
    /// This server is the master.
    Found(Node),
    /// The server that was found last is the master no more, for this reason.
    Moved(String),
    /// The login was found, or there is none to be given.
    Login(Option<Login>),
    /// The connection is there.
    Dialled,
    /// These bytes came.
    Received(&'a [u8]),
    /// It did not work.
    Failed(NoSession),
    /// The session that was up is lost.
    Lost,
    /// The engine doubts the session that is up; or no longer.
    Doubt(bool),
}

/// What the host is to do.
#[derive(Debug)]
pub enum Output {
    /// Find out which server is the master.
    Seek,
    /// Find the login for the connections that are made next.
    Login,
    /// Make a byte stream to the server: the one that was found, if it had to be.
    Dial(Wire, Option<Node>),
    /// Write these in whole, if there are any, and then give what comes.
    Say(Wire, Vec<u8>),
    /// Stop what was last asked for, and close the connections that were being made.
    Abandon,
    /// Give the session up that is up, for this reason.
    GiveUp(String),
    /// The connections that were made are a session: it is up from now on.
    Up(Box<Session>),
    /// For the engine.
    Event(Event),
    /// For a log.
    Note(Note),
}

/// A session that is ready for requests.
#[derive(Debug)]
pub struct Session {
    /// The server that was found for it, where it had to be.
    pub node: Option<Node>,
    /// The codec that fits it.
    pub codec: Codec,
    /// The connection of the requests.
    pub main: Greeted,
    /// That of the subscription, when it is another. Where the user may not subscribe there is none,
    /// though one may have been made.
    pub apart: Option<Greeted>,
    /// That of the grants which replicas confirm, with a codec that fits it.
    pub sync: Option<(Codec, Greeted)>,
    /// Whether it is subscribed.
    pub inbox: Inbox,
    /// Why it may not subscribe, in the server's words.
    pub denied: Option<String>,
}

/// What a log may tell of connecting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// The server is silent: another connection is tried.
    Silent,
    /// It answers on the first one.
    Answers,
    /// It does not answer the other either.
    Unanswered(String),
}

#[derive(Debug)]
enum State {
    /// A session is up, and nobody doubts it.
    Idle,
    Pause(Time),
    Attempt(Box<Attempt>),
}

/// Attempts, one after the other, towards one session.
///
/// A server that has much to do takes connections and greets them late. To give each of them up
/// would cost it the work and bring nobody a connection; so each that was not ready in time gives
/// the next one twice as long, up to four times the option.
#[derive(Clone, Debug)]
struct Course {
    backoff: Backoff,
    late: u32,
}

impl Course {
    fn new(min: Duration, max: Duration) -> Course {
        Course { backoff: Backoff::new(min, max), late: 0 }
    }
}

/// Makes sessions with one server, one after the other, without I/O: each call is one change, after
/// which [`Machine::poll_output`] is drained and [`Machine::next_wake`] looked at.
///
/// At most one thing is asked of the host at a time, apart from the session that is up.
#[derive(Debug)]
pub struct Machine {
    terms: Terms,
    random: ChaCha8Rng,
    course: Course,
    /// That of the second connection, while the first is doubted.
    rival: Option<Course>,
    /// Since when a session is up.
    up: Option<Time>,
    state: State,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// Begins to connect.
    pub fn new(now: Time, terms: Terms, seed: [u8; 32]) -> Machine {
        let mut machine = Machine {
            random: ChaCha8Rng::from_seed(seed),
            course: Course::new(terms.backoff_min, terms.backoff_max),
            rival: None,
            up: None,
            state: State::Idle,
            outputs: VecDeque::new(),
            terms,
        };
        machine.begin(now);
        machine
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine next wants [`Machine::wake`].
    pub fn next_wake(&self) -> Option<Time> {
        match &self.state {
            State::Idle => None,
            State::Pause(until) => Some(*until),
            State::Attempt(attempt) => Some(attempt.until()),
        }
    }

    /// Whether a second connection is being made beside a silent one.
    pub fn is_doubting(&self) -> bool {
        self.rival.is_some()
    }

    /// The time has come, or perhaps not yet.
    pub fn wake(&mut self, now: Time) {
        match &self.state {
            State::Pause(until) if now >= *until => self.begin(now),
            State::Attempt(attempt) if now >= attempt.until() => {
                let limit = attempt.limit;
                let hint = if self.terms.tls { "; does this port speak TLS?" } else { "" };
                let server = attempt.server();
                let why =
                    format!("no connection to {server} within {limit:?} (connect_timeout){hint}");
                self.course().late += 1;
                self.failed(now, NoSession::Later(why));
            }
            _ => {}
        }
    }

    /// Takes what happened.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Lost => self.lost(now),
            Input::Doubt(doubted) => self.doubt(now, doubted),
            // Of what nobody waits for any more.
            Input::Failed(_) if !matches!(self.state, State::Attempt(_)) => {}
            Input::Failed(why) => {
                self.in_time();
                self.failed(now, why);
            }
            Input::Moved(reason) => self.moved(now, reason),
            Input::Found(node) => {
                if matches!(&self.state, State::Attempt(attempt) if attempt.seeks()) {
                    self.advance(now, |attempt| attempt.found(node));
                }
            }
            Input::Login(login) => self.advance(now, |attempt| attempt.login(login)),
            Input::Dialled => self.advance(now, Attempt::dialled),
            Input::Received(bytes) => self.advance(now, |attempt| attempt.received(bytes)),
        }
    }

    /// The course of the connection that is being made.
    fn course(&mut self) -> &mut Course {
        self.rival.as_mut().unwrap_or(&mut self.course)
    }

    /// The attempt has come to an end before its time was over.
    fn in_time(&mut self) {
        self.course().late = 0;
    }

    fn begin(&mut self, now: Time) {
        let late = self.course().late.min(2);
        let limit = self.terms.connect_timeout.saturating_mul(1 << late);
        self.state = State::Attempt(Box::new(Attempt::new(&self.terms, now, limit)));
        self.outputs.push_back(match self.terms.server {
            Server::Fixed(_) => Output::Login,
            Server::Sought(_) => Output::Seek,
        });
    }

    fn advance(&mut self, now: Time, act: impl FnOnce(&mut Attempt) -> Result<Step, NoSession>) {
        let State::Attempt(attempt) = &mut self.state else { return };
        match act(attempt) {
            Ok(Step::Login) => self.outputs.push_back(Output::Login),
            Ok(Step::Dial(wire)) => {
                let node = attempt.node.clone();
                self.outputs.push_back(Output::Dial(wire, node));
            }
            Ok(Step::Say(wire, bytes)) => self.outputs.push_back(Output::Say(wire, bytes)),
            Ok(Step::Ready(session)) => {
                self.in_time();
                if self.up.is_some() {
                    let reason = "it was silent, and another connection is answered";
                    self.outputs.push_back(Output::GiveUp(reason.to_owned()));
                }
                (self.state, self.rival, self.up) = (State::Idle, None, Some(now));
                self.outputs.push_back(Output::Up(session));
            }
            Err(why) => {
                self.in_time();
                self.failed(now, why);
            }
        }
    }

    /// The attempt has failed.
    fn failed(&mut self, now: Time, why: NoSession) {
        let (why, sought) = match &self.state {
            State::Attempt(attempt) => (attempt.named(why), attempt.seeks()),
            _ => (why, false),
        };
        self.abandon();
        match why {
            // Where nobody says who the master is, a connection that lives is kept.
            NoSession::Misconfigured(error) if self.up.is_some() && sought => {
                let reason = error.message().to_owned();
                self.outputs.push_back(Output::Note(Note::Unanswered(reason)));
                self.pause(now, MISCONFIGURED_PAUSE);
            }
            NoSession::Later(reason) if self.up.is_some() => {
                self.outputs.push_back(Output::Note(Note::Unanswered(reason)));
                self.pause(now, Duration::ZERO);
            }
            NoSession::Later(reason) => {
                self.outputs.push_back(Output::Event(Event::Down { reason }));
                self.pause(now, Duration::ZERO);
            }
            NoSession::Misconfigured(error) => {
                if self.up.take().is_some() {
                    self.outputs.push_back(Output::GiveUp(error.message().to_owned()));
                    self.rival = None;
                }
                self.outputs.push_back(Output::Event(Event::Misconfigured(error)));
                self.pause(now, MISCONFIGURED_PAUSE);
            }
        }
    }

    /// Nothing is attempted before the next step of the backoff, nor before `least` has passed.
    fn pause(&mut self, now: Time, least: Duration) {
        let random = self.random.next_u64();
        let pause = self.course().backoff.next(random).max(least);
        self.state = State::Pause(now + pause);
    }

    fn abandon(&mut self) {
        if matches!(self.state, State::Attempt(_)) {
            self.state = State::Idle;
            self.outputs.push_back(Output::Abandon);
        }
    }

    fn lost(&mut self, now: Time) {
        let Some(since) = self.up.take() else { return };
        // A connection that did not last is no success.
        if now.since(since) >= self.terms.backoff_max {
            self.course.backoff.reset();
        }
        self.abandon();
        self.rival = None;
        self.pause(now, Duration::ZERO);
    }

    /// What is under way leads to the wrong server. The right one is looked for at once.
    fn moved(&mut self, now: Time, reason: String) {
        self.abandon();
        self.rival = None;
        if self.up.take().is_some() {
            self.outputs.push_back(Output::GiveUp(reason));
        }
        self.begin(now);
    }

    fn doubt(&mut self, now: Time, doubted: bool) {
        if self.up.is_none() || doubted == self.rival.is_some() {
            return;
        }
        if doubted {
            self.outputs.push_back(Output::Note(Note::Silent));
            self.rival = Some(Course::new(FIRST_PAUSE, self.terms.backoff_max));
            self.pause(now, Duration::ZERO);
        } else {
            self.outputs.push_back(Output::Note(Note::Answers));
            self.abandon();
            (self.rival, self.state) = (None, State::Idle);
        }
    }
}
