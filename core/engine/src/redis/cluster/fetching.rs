//! When a map of slots is asked for, and of whom.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::Error;
use crate::redis::node::Node;
use crate::redis::session::NoSession;
use crate::time::Time;

/// How often, when nothing speaks against the map.
const EVERY: Duration = Duration::from_secs(30);

/// How often while something does.
const SOON: Duration = Duration::from_secs(1);

/// The least pause between two: what one server says, hundreds of requests may say at once.
const LEAST: Duration = Duration::from_millis(100);

/// When a map of slots is asked for: of one server at a time.
#[derive(Clone, Debug)]
pub(super) struct Fetching {
    /// How long a server may take.
    limit: Duration,
    /// Who was asked, and when.
    asked: Option<(Node, Time)>,
    /// When the last one was begun, if any was.
    begun: Option<Time>,
    due: Time,
    /// Who gave no good answer since the last one.
    tried: BTreeSet<Node>,
    /// Of these, who had not answered in time, and may yet.
    owing: BTreeSet<Node>,
    /// Why not, and what only an operator can mend.
    said: Vec<String>,
    wrong: Option<Error>,
}

impl Fetching {
    pub fn new(now: Time, limit: Duration) -> Fetching {
        let (tried, owing, said) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
        Fetching { limit, asked: None, begun: None, due: now, tried, owing, said, wrong: None }
    }

    /// When it is to be looked at next.
    pub fn next(&self) -> Time {
        self.asked.as_ref().map_or(self.due, |(_, since)| *since + self.limit)
    }

    /// Something speaks against the map. `jitter` is between 0 and 1.
    pub fn suspect(&mut self, now: Time, jitter: f64) {
        let least = self.begun.map_or(now, |begun| begun + LEAST.mul_f64(1.0 + jitter));
        self.due = self.due.min(least.max(now));
    }

    /// A slot is moving: nobody says when it has come to rest.
    pub fn soon(&mut self, now: Time, jitter: f64) {
        self.due = self.due.min(now + SOON.mul_f64(0.75 + jitter / 2.0));
    }

    /// Who is asked now, one of the first list, then of the others; nobody, when it is not yet time.
    pub fn begin(&mut self, now: Time, whom: [&[Node]; 2], random: u64) -> Option<Node> {
        if self.asked.is_some() || now < self.due {
            return None;
        }
        let untried = whom.into_iter().find_map(|nodes| {
            let untried = nodes.iter().filter(|node| !self.tried.contains(node));
            let untried: Vec<&Node> = untried.collect();
            (!untried.is_empty()).then_some(untried)
        })?;
        let at = usize::try_from(random % untried.len() as u64).ok()?;
        let node = (*untried.get(at)?).clone();
        self.tried.insert(node.clone());
        (self.asked, self.begun) = (Some((node.clone(), now)), Some(now));
        Some(node)
    }

    /// Whether all of them were tried in vain.
    pub fn is_exhausted(&self, whom: [&[Node]; 2]) -> bool {
        let tried = |node: &Node| self.tried.contains(node);
        self.asked.is_none() && !self.said.is_empty() && whom.iter().copied().flatten().all(tried)
    }

    /// Whether this is the one who was asked, who is asked no more now; or one whose map comes late, when
    /// there has been no other since.
    pub fn answered(&mut self, node: &Node, map: bool) -> bool {
        let is = self.asked.as_ref().is_some_and(|(asked, _)| asked == node);
        if is {
            self.asked = None;
        }
        is || map && self.owing.contains(node)
    }

    /// Who was asked, and has been silent for too long.
    pub fn late(&mut self, now: Time) -> Option<(Node, NoSession)> {
        let (node, _) = self.asked.as_ref().filter(|(_, since)| now >= *since + self.limit)?;
        let (node, limit) = (node.clone(), self.limit);
        self.owing.insert(node.clone());
        let why = NoSession::Later(format!("{node} does not answer within {limit:?}"));
        Some((node, why))
    }

    /// One said why it has no map to give: the next one is asked.
    pub fn failed(&mut self, now: Time, why: NoSession, jitter: f64) {
        match why {
            NoSession::Later(reason) => self.said.push(reason),
            NoSession::Misconfigured(error) => {
                self.said.push(error.message().to_owned());
                self.wrong = Some(error);
            }
        }
        self.due = now;
        self.suspect(now, jitter);
    }

    /// All were asked in vain: why, and another round later.
    pub fn give_up(&mut self, now: Time, jitter: f64) -> NoSession {
        self.tried.clear();
        self.due = now + SOON.mul_f64(0.5 + jitter / 2.0);
        let said = std::mem::take(&mut self.said).join("; ");
        match self.wrong.take() {
            Some(error) => NoSession::Misconfigured(Error::new(error.kind(), said)),
            None => NoSession::Later(format!("no server of the cluster tells its slots ({said})")),
        }
    }

    /// A map has come. `settled`: nothing speaks against it.
    pub fn done(&mut self, now: Time, settled: bool, jitter: f64) {
        self.tried.clear();
        self.owing.clear();
        self.said.clear();
        self.wrong = None;
        let pause = if settled { EVERY } else { SOON };
        self.due = now + pause.mul_f64(0.75 + jitter / 2.0);
    }
}
