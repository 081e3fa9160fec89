//! The holds that a history tells of.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::mode::Mode;
use crate::record::Record;

/// How many tokens come with one grant of a store.
const BLOCK: u64 = 1024;

/// How a hold ended, as far as its holder is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Released, and the store or the next local holder had it.
    Released,
    /// Its release said that it was lost, or could not say.
    Unreleased(String),
    /// Released in the background, or by a release that was not answered yet.
    Dropped,
    /// Its holder was told that it is lost, and did nothing more.
    Lost,
    /// Its process was killed.
    Killed,
    /// Not at all.
    Open,
}

/// What a hold was converted to.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    pub from: u64,
    pub mode: Mode,
    pub token: u64,
    /// The store has said so.
    pub sure: bool,
}

/// One hold.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub who: Arc<str>,
    pub tag: String,
    pub lock: String,
    pub mode: Mode,
    pub owner: Option<String>,
    /// The thread or task for which it was acquired, where that is known.
    pub caller: Option<String>,
    /// When the first of its tenure was asked for: a re-entry, or a hold that was handed over
    /// within its client, rests on a grant of the store that is older than itself.
    pub since: u64,
    /// It is that first one.
    pub first: bool,
    pub granted: u64,
    pub token: u64,
    pub abandoned: String,
    /// How far its holder trusted it, at the latest word.
    pub until: u64,
    /// When its holder gave it up, was told of its loss, or died.
    pub ended: u64,
    pub end: End,
    /// When, how far trusted, and whether it was valid when its release was asked for.
    pub releasing: Option<(u64, bool)>,
    /// When its release was answered with an error.
    pub answered: Option<u64>,
    pub lost: Option<(u64, String)>,
    /// Its conversions.
    pub turns: Vec<Turn>,
}

impl Hold {
    /// The instant up to which its holder would have acted on it.
    pub fn trusted(&self) -> u64 {
        self.until.min(self.ended)
    }

    /// Whether two holds may go together: one owner, explicit or a caller that re-enters, has them
    /// under one token.
    pub fn shares(&self, other: &Hold) -> bool {
        let caller = self.caller.is_some() && self.caller == other.caller && self.who == other.who;
        self.owner == other.owner && (self.owner.is_some() || caller)
    }
}

/// An acquisition that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub who: Arc<str>,
    pub tag: String,
    pub lock: String,
    pub mode: Mode,
    pub at: u64,
    pub client: String,
    pub owner: Option<String>,
    pub caller: Option<String>,
    pub answered: bool,
    /// When it was granted.
    pub granted: Option<u64>,
    /// When it ended without a grant.
    pub left: Option<u64>,
    /// It takes a semaphore's number from those who hold it.
    pub adopts: bool,
    /// It ended by a word that a semaphore which nobody holds does not say.
    pub refused: bool,
}

impl Asked {
    /// When it had its answer.
    pub fn over(&self) -> u64 {
        self.granted.or(self.left).unwrap_or(u64::MAX)
    }
}

/// A semaphore's number was to be changed.
#[derive(Clone, Debug)]
pub(crate) struct Resize {
    pub lock: String,
    pub of: u64,
    pub from: u64,
    /// When it was answered; one without a clear answer may be done at any time.
    pub to: u64,
    /// Whether anybody held or waited, where the answer says so.
    pub used: Option<bool>,
}

/// A stretch of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub from: u64,
    pub to: u64,
}

/// A history, sorted by what it tells of.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub asked: Vec<Asked>,
    pub holds: Vec<Hold>,
    pub resizes: Vec<Resize>,
    /// When the store forgot what it had acknowledged.
    pub forgot: Vec<Span>,
    /// When the store's clock was set forward.
    pub forward: Vec<Span>,
    /// When it was first set back.
    pub back: Option<u64>,
    /// When each actor was stopped.
    pub stopped: BTreeMap<String, Vec<Span>>,
    /// When nothing ran.
    pub stalled: Vec<Span>,
    pub killed: BTreeMap<String, u64>,
    /// Locks that an operator broke, and when.
    pub operated: Vec<(String, u64)>,
    /// Clients that were closed.
    pub closed: Vec<(Arc<str>, String)>,
    /// Whether anything was done at all.
    pub faults: bool,
}

impl Story {
    /// Reads records that are in the order of time.
    pub fn read(records: &[Record]) -> Story {
        let mut story = Story::default();
        for record in records.iter().filter(|it| it.is_fault()) {
            story.fault(record);
        }
        // Where what was asked for, and what was granted, stands, by actor and tag.
        type Place = (usize, Option<usize>);
        let mut open: BTreeMap<(Arc<str>, &str), Place> = BTreeMap::new();
        let mut resizing: BTreeMap<(Arc<str>, &str), usize> = BTreeMap::new();
        for record in records.iter().filter(|it| !it.is_fault()) {
            let key = (record.who.clone(), record.tag.as_str());
            if record.is("asked") {
                open.insert(key, (story.asked.len(), None));
                story.asked.push(Asked {
                    who: record.who.clone(),
                    tag: record.tag.clone(),
                    lock: record.get("lock").unwrap_or_default().to_owned(),
                    mode: Mode::read(record.get("mode")),
                    at: record.at,
                    client: record.get("client").unwrap_or_default().to_owned(),
                    owner: record.get("owner").map(str::to_owned),
                    caller: record.get("caller").map(str::to_owned),
                    answered: false,
                    granted: None,
                    left: None,
                    adopts: record.get("adopt") == Some("yes"),
                    refused: false,
                });
            } else if record.is("resize-asked") {
                resizing.insert(key, story.resizes.len());
                story.resizes.push(Resize::asked(record));
            } else if let Some(at) = resizing.get(&key) {
                story.resizes[*at].hears(record);
            } else if record.is("closed") {
                story.closed.push((record.who.clone(), record.tag.clone()));
            } else if let Some((asked, hold)) = open.get_mut(&key) {
                match record.event.as_str() {
                    "granted" => {
                        *hold = Some(story.holds.len());
                        story.asked[*asked].answered = true;
                        story.asked[*asked].granted = Some(record.at);
                        let granted = Hold::granted(record, &story.asked[*asked]);
                        story.holds.push(granted);
                    }
                    "failed" | "cancelled" => {
                        story.asked[*asked].answered = true;
                        story.asked[*asked].left = Some(record.at);
                        story.asked[*asked].refused = refuses(record);
                    }
                    _ => {
                        if let Some(hold) = hold {
                            story.holds[*hold].hears(record);
                        }
                    }
                }
            }
        }
        for hold in &mut story.holds {
            if let Some(killed) = story.killed.get(&*hold.who)
                && hold.end == End::Open
            {
                hold.end = End::Killed;
                hold.ended = *killed;
            }
        }
        story.holds.sort_by_key(|hold| hold.granted);
        story.tenures();
        story
    }

    /// Whether somebody who asked for a lock went away without it while it passed from one to the
    /// other.
    pub fn left_between(&self, earlier: &Hold, later: &Hold) -> bool {
        self.asked.iter().filter(|it| it.lock == later.lock && it.at <= later.granted).any(
            // It may have been granted as it left.
            |it| it.left.is_some_and(|left| left >= earlier.granted),
        )
    }

    /// Finds the grant of the store on which each hold rests, by its token.
    fn tenures(&mut self) {
        for index in 0..self.holds.len() {
            let (before, from) = self.holds.split_at_mut(index);
            let hold = &mut from[0];
            let same = before.iter().filter(|it| {
                it.lock == hold.lock
                    && (it.who == hold.who || it.shares(hold))
                    && hold.token.checked_sub(it.token).is_some_and(|by| by < BLOCK)
            });
            if let Some(since) = same.map(|it| it.since).min() {
                hold.since = since.min(hold.since);
                hold.first = false;
            }
        }
    }

    fn fault(&mut self, record: &Record) {
        if record.is("stalled") {
            self.stalled.push(Span { from: record.number("from"), to: record.number("to") });
            return;
        }
        self.faults = true;
        let to = record.at;
        let open = Span { from: to, to: u64::MAX };
        let spans = match record.event.as_str() {
            "forgetting" | "forgot" => &mut self.forgot,
            "leaping" | "leapt" => &mut self.forward,
            "stopping" | "stopped" | "continued" => {
                self.stopped.entry(record.tag.clone()).or_default()
            }
            "setting-back" => {
                self.back.get_or_insert(to);
                return;
            }
            "broke" => {
                self.operated.push((record.tag.clone(), to));
                return;
            }
            "killed" => {
                self.killed.insert(record.tag.clone(), to);
                return;
            }
            _ => return,
        };
        match record.event.as_str() {
            "forgetting" | "leaping" | "stopping" => spans.push(open),
            "forgot" | "leapt" | "continued" => {
                if let Some(last) = spans.last_mut() {
                    last.to = to;
                }
            }
            _ => {}
        }
    }
}

/// Whether nothing was granted, not even for a moment.
fn refuses(record: &Record) -> bool {
    matches!(record.get("kind"), Some("contended" | "misconfigured" | "invalid_argument"))
}

impl Resize {
    fn asked(record: &Record) -> Resize {
        Resize {
            lock: record.get("lock").unwrap_or_default().to_owned(),
            of: record.number("of"),
            from: record.at,
            to: u64::MAX,
            used: None,
        }
    }

    fn hears(&mut self, record: &Record) {
        match record.event.as_str() {
            "resized" => (self.to, self.used) = (record.at, Some(word(record, "used") == "yes")),
            "failed" if refuses(record) => (self.to, self.used) = (record.at, Some(false)),
            _ => {}
        }
    }
}

impl Hold {
    fn granted(record: &Record, asked: &Asked) -> Hold {
        Hold {
            who: record.who.clone(),
            tag: record.tag.clone(),
            lock: record.get("lock").unwrap_or_default().to_owned(),
            mode: asked.mode,
            owner: asked.owner.clone(),
            caller: asked.caller.clone(),
            since: asked.at,
            first: true,
            granted: record.at,
            token: record.number("token"),
            abandoned: word(record, "abandoned"),
            until: record.number("until"),
            ended: u64::MAX,
            end: End::Open,
            releasing: None,
            answered: None,
            lost: None,
            turns: Vec::new(),
        }
    }

    fn hears(&mut self, record: &Record) {
        // A hold that was given up is trusted no further, whatever its guard still shows.
        let kept = self.releasing.is_none() && !record.is("shortened");
        if kept && record.get("valid") != Some("false") {
            self.until = self.until.max(record.number("until"));
        }
        match record.event.as_str() {
            "shortened" => self.until = record.number("until"),
            "release-asked" | "drop-asked" => {
                self.releasing = Some((record.at, record.get("valid") == Some("true")));
                self.ended = self.ended.min(record.at);
                self.end = End::Dropped;
            }
            "downgrade-asked" => self.turns(record.at, Mode::Shared, self.token, false),
            "converted" => self.converted(record),
            "released" => self.end = End::Released,
            "unreleased" => {
                self.answered = Some(record.at);
                self.end = End::Unreleased(record.get("kind").unwrap_or_default().to_owned());
            }
            "lost" => {
                self.ended = self.ended.min(record.at);
                self.lost = Some((record.at, word(record, "reason")));
                if self.end == End::Open {
                    self.end = End::Lost;
                }
            }
            _ => {}
        }
    }
}

impl Hold {
    fn turns(&mut self, from: u64, mode: Mode, token: u64, sure: bool) {
        self.turns.push(Turn { from, mode, token, sure });
    }

    fn converted(&mut self, record: &Record) {
        let (mode, token) = (Mode::read(record.get("mode")), record.number("token"));
        match self.turns.last_mut().filter(|it| !it.sure && it.mode == mode) {
            Some(asked) => (asked.token, asked.sure) = (token, true),
            None => self.turns(record.at, mode, token, true),
        }
    }
}

/// A word that each language writes as it writes its own: in small letters.
fn word(record: &Record, key: &str) -> String {
    record.get(key).unwrap_or_default().to_ascii_lowercase()
}
