//! Who is asked when, and what follows from the answers.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};

use crate::redis::node::Node;
use crate::redis::sentinel::line::Line;
use crate::redis::sentinel::report::{Answer, Report};
use crate::redis::sentinel::votes;
use crate::redis::session::{Backoff, Login, NoSession, Protocol};
use crate::time::Time;

/// How often each Sentinel is asked, beside what it tells by itself: a message can be lost.
const EVERY: Duration = Duration::from_secs(2);

/// How long the others may take once one has answered.
const OTHERS: Duration = Duration::from_millis(300);

/// How long most of them must say a lower epoch than is known until that is forgotten.
const BEHIND: Duration = Duration::from_secs(10);

/// Whom to ask, and for whom.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The Sentinels.
    pub sentinels: Vec<Node>,
    /// The master's name with them.
    pub master: String,
    /// Who logs in at a Sentinel.
    pub login: Option<Login>,
    /// Which protocol to speak.
    pub protocol: Protocol,
    /// Whether they are reached by TLS.
    pub tls: bool,
    /// Whether they are asked, too, how many replicas the master has.
    pub replicas: bool,
    /// By which address a server is reached that Sentinels see by another.
    pub map: BTreeMap<Node, Node>,
    /// How long making a connection to a Sentinel, and its answer, may take.
    pub connect_timeout: Duration,
    /// The first pause between two attempts.
    pub backoff_min: Duration,
    /// The longest one.
    pub backoff_max: Duration,
}

/// What happened. A Sentinel is named by its place in the list.
#[derive(Debug)]
pub enum Input<'a> {
    /// A connection to a server is to be made: who is the master?
    Seek,
    /// The session is with this server from now on, or there is none.
    With(Option<Node>),
    /// The connection to a Sentinel is there.
    Dialled(usize),
    /// These bytes came from it.
    Received(usize, &'a [u8]),
    /// The connection to it could not be made, or is gone.
    Failed(usize, NoSession),
}

/// What the host is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Connect to this Sentinel.
    Dial(usize),
    /// Write these to it. What comes is wanted all the time.
    Say(usize, Vec<u8>),
    /// Close the connection to it, or stop making it.
    Close(usize),
    /// This is the master: the answer to [`Input::Seek`].
    Found(Node),
    /// So many replicas the master has, those that are down included.
    Replicas(u32),
    /// Nobody knows who the master is: the other answer.
    Nobody(NoSession),
    /// The server of the session, or the one that was found last if there is none, is the master no more,
    /// for this reason.
    Moved(String),
}

/// Asks Sentinels who the master is, without I/O: each call is one change, after which
/// [`Machine::poll_output`] is drained and [`Machine::next_wake`] looked at.
#[derive(Debug)]
pub struct Machine {
    terms: Terms,
    random: ChaCha8Rng,
    lines: Vec<Line>,
    /// The master under the highest epoch that was heard of.
    known: Option<Report>,
    /// Since when most of them say a lower one, and none says otherwise.
    behind: Option<Time>,
    /// How many replicas there are, as was said last.
    replicas: u32,
    /// The one that was found last.
    found: Option<Node>,
    /// The server of the session that is up. While it is doubted another one may be found.
    with: Option<Node>,
    /// Since when somebody waits to hear who it is, and when the first answered.
    seek: Option<(Time, Option<Time>)>,
    outputs: VecDeque<Output>,
}

impl Machine {
    /// Begins to connect to all of them.
    pub fn new(now: Time, terms: Terms, seed: [u8; 32]) -> Machine {
        let line = |node: &Node| {
            Line::new(now, node.clone(), Backoff::new(terms.backoff_min, terms.backoff_max))
        };
        let mut machine = Machine {
            lines: terms.sentinels.iter().map(line).collect(),
            random: ChaCha8Rng::from_seed(seed),
            known: None,
            behind: None,
            replicas: 0,
            found: None,
            with: None,
            seek: None,
            outputs: VecDeque::new(),
            terms,
        };
        machine.wake(now);
        machine
    }

    /// The next thing to do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When the machine next wants [`Machine::wake`].
    pub fn next_wake(&self) -> Option<Time> {
        let ends = self.seek.and_then(|(_, first)| first).map(|first| first + OTHERS);
        self.lines.iter().map(|line| self.due(line)).chain(ends).min()
    }

    /// When a line wants something by itself.
    fn due(&self, line: &Line) -> Time {
        let late = line.waits_since().map(|since| since + self.terms.connect_timeout);
        let due = line.away_until().or(late).unwrap_or(line.ask_at);
        if line.is_ready() { due.min(line.ask_at) } else { due }
    }

    /// The time has come, or perhaps not yet.
    pub fn wake(&mut self, now: Time) {
        for at in 0..self.lines.len() {
            let line = &mut self.lines[at];
            let late =
                line.waits_since().is_some_and(|since| now >= since + self.terms.connect_timeout);
            if late {
                let hint = if self.terms.tls { "; does this port speak TLS?" } else { "" };
                let why = format!("no answer within {:?}{hint}", self.terms.connect_timeout);
                self.outputs.push_back(Output::Close(at));
                self.failed(now, at, NoSession::Later(why));
            } else if line.away_until().is_some_and(|until| now >= until) {
                line.dial(now);
                self.outputs.push_back(Output::Dial(at));
            } else if line.is_ready() && now >= line.ask_at {
                self.ask(now, at);
            }
        }
        self.conclude(now);
    }

    /// Takes what happened.
    pub fn handle(&mut self, now: Time, input: Input<'_>) {
        match input {
            Input::Seek => self.begin(now),
            Input::With(node) => self.with = node,
            Input::Dialled(at) => {
                let (protocol, login) = (self.terms.protocol, self.terms.login.clone());
                if let Some(line) = self.lines.get_mut(at) {
                    let out = line.dialled(protocol, login);
                    self.outputs.push_back(Output::Say(at, out));
                }
            }
            Input::Received(at, bytes) => self.received(now, at, bytes),
            Input::Failed(at, why) => self.failed(now, at, why),
        }
        self.conclude(now);
    }

    fn begin(&mut self, now: Time) {
        self.seek = Some((now, None));
        for at in 0..self.lines.len() {
            if self.lines[at].is_ready() {
                self.ask(now, at);
            } else if self.lines[at].away_until().is_some() {
                self.lines[at].dial(now);
                self.outputs.push_back(Output::Dial(at));
            }
        }
    }

    fn ask(&mut self, now: Time, at: usize) {
        let mut out = Vec::new();
        let line = &mut self.lines[at];
        line.ask(now, &self.terms.master, self.terms.replicas, &mut out);
        line.ask_at = asked_again(now);
        self.outputs.push_back(Output::Say(at, out));
    }

    fn received(&mut self, now: Time, at: usize, bytes: &[u8]) {
        let mut out = Vec::new();
        let Some(line) = self.lines.get_mut(at) else { return };
        let was_ready = line.is_ready();
        let (master, replicas) = (&self.terms.master, self.terms.replicas);
        let heard = line.receive(now, bytes, master, replicas, &mut out);
        if !was_ready && line.is_ready() {
            line.ask_at = asked_again(now);
        }
        if !out.is_empty() {
            self.outputs.push_back(Output::Say(at, out));
        }
        match heard {
            Ok(heard) => {
                if let (Some(asked), Some((since, first))) = (heard.answered, &mut self.seek)
                    && asked >= *since
                {
                    first.get_or_insert(now);
                }
                if heard.switched {
                    self.ask(now, at);
                }
                self.count_replicas();
                self.look(now);
            }
            Err(why) => {
                self.outputs.push_back(Output::Close(at));
                self.failed(now, at, why);
            }
        }
    }

    fn failed(&mut self, now: Time, at: usize, why: NoSession) {
        let random = self.random.next_u64();
        let Some(line) = self.lines.get_mut(at) else { return };
        let again = now + line.backoff.next(random);
        line.fail(now, why, again);
    }

    /// The most that any of them names, as it said last: one may have heard of a replica before others.
    fn count_replicas(&mut self) {
        let named = self.lines.iter().filter_map(|line| line.replicas).max();
        if let Some(named) = named.filter(|named| *named != self.replicas) {
            self.replicas = named;
            self.outputs.push_back(Output::Replicas(named));
        }
    }

    /// Whether what is said now makes another server the master than the client goes by.
    fn look(&mut self, now: Time) {
        let reports: Vec<Report> = self.lines.iter().filter_map(Line::report).cloned().collect();
        let behind = votes::are_behind(&reports, self.lines.len(), self.known.as_ref());
        self.behind = behind.then(|| self.behind.unwrap_or(now));
        if self.behind.is_some_and(|since| now >= since + BEHIND) {
            self.known = None;
        }
        let Some(best) = votes::count(&reports, self.known.as_ref()) else { return };
        let node = self.reached(&best.node);
        let present = self.with.as_ref().or(self.found.as_ref());
        let moved = present.is_some_and(|present| *present != node);
        if self.seek.is_none() && moved && !planted!(MasterNotLeft) {
            let master = &self.terms.master;
            let reason =
                format!("Sentinels say that '{master}' is {node} now (epoch {})", best.epoch);
            self.outputs.push_back(Output::Moved(reason));
            (self.found, self.with) = (None, None);
        }
        self.known = Some(best);
    }

    /// By which address a server is reached.
    fn reached(&self, seen: &Node) -> Node {
        self.terms.map.get(seen).unwrap_or(seen).clone()
    }

    /// Answers who waits to hear who the master is, when enough is known.
    fn conclude(&mut self, now: Time) {
        let Some((since, first)) = self.seek else { return };
        let failed = |line: &Line| line.failure.as_ref().is_some_and(|(at, _)| *at >= since);
        let owed = |line: &&Line| line.waits_since().is_some() && !failed(line);
        let over = first.is_some_and(|first| now >= first + OTHERS);
        if !over && self.lines.iter().any(|line| owed(&line)) {
            return;
        }
        let heard = self.lines.iter().any(|line| line.report().is_some());
        self.seek = None;
        let output = match self.known.as_ref().filter(|_| heard) {
            Some(known) => {
                let node = self.reached(&known.node);
                self.found = Some(node.clone());
                Output::Found(node)
            }
            None => Output::Nobody(self.nobody()),
        };
        self.outputs.push_back(output);
    }

    /// Why nobody is known.
    fn nobody(&self) -> NoSession {
        let master = &self.terms.master;
        let unknown = |line: &&Line| line.answer == Some(Answer::Unknown);
        if self.lines.iter().filter(unknown).count() * 2 > self.lines.len() {
            return NoSession::misconfigured(format!(
                "the Sentinels know no master '{master}': the name in the URL is the one in \
                 'sentinel monitor'"
            ));
        }
        let mut wrong = None;
        let mut said = Vec::new();
        for line in &self.lines {
            let why = match (&line.answer, &line.failure) {
                (Some(Answer::Unknown), _) => "it knows no such master",
                (_, Some((_, NoSession::Later(why)))) => why,
                (_, Some((_, NoSession::Misconfigured(error)))) => {
                    wrong.get_or_insert(error);
                    error.message()
                }
                _ => "no answer",
            };
            said.push(format!("{}: {why}", line.node));
        }
        let said = format!("no Sentinel says which server is '{master}' ({})", said.join("; "));
        match wrong {
            // One that could be reached, and wants something mended, is the one to hear of.
            Some(_) if self.lines.iter().all(|line| line.failure.is_some()) => {
                NoSession::misconfigured(format!(
                    "{said}; a login for Sentinels is given as sentinel_user and \
                     sentinel_password, TLS as sentinel_tls"
                ))
            }
            _ => NoSession::Later(said),
        }
    }
}

/// When a Sentinel that was asked now is to be asked again.
fn asked_again(now: Time) -> Time {
    if planted!(SentinelsNotAskedAgain) { Time::MAX } else { now + EVERY }
}
