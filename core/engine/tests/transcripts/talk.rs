//! An engine, and what it says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use fencelock_engine::id::{HoldId, OwnerId};
use fencelock_engine::reply::{
    Abandoned, Body, Failure, Push, Refusal, RefusalKind, Released, Reply, Standing, State,
};
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::{
    Acquired, Ask, CallKey, Effect, Ended, Engine, Event, HoldKey, Keeping, LockKey, Name, Options,
    Outcome, Owner, Patience, Time, Token,
};

pub const MS: Duration = Duration::from_millis(1);
pub const SECOND: Duration = Duration::from_secs(1);
/// The store's clock while the client's reads zero, in microseconds.
const EPOCH: u64 = 1_800_000_000_000_000;
/// The first token that the store gives.
pub const TOKEN: u64 = EPOCH;

pub struct Talk {
    name: &'static str,
    pub engine: Engine<u32>,
    pub lock: LockKey,
    pub now: Duration,
    text: String,
    wake: Option<Time>,
    /// Requests that were not answered, oldest first.
    pub open: Vec<Request>,
    holds: BTreeMap<u32, HoldKey>,
    ends: BTreeMap<u32, Option<Duration>>,
    calls: BTreeMap<u32, CallKey>,
    /// Of the latest grant.
    pub token: Option<Token>,
    /// Holds, as they appeared.
    pub seen: Vec<HoldId>,
}

pub fn granted(token: u64) -> State {
    let (end, lease) = (token + 1_023, Duration::from_secs(30));
    State { token, end, lease, ..State::bare(Standing::Granted) }
}

pub fn queued(ticket: u64, ahead: u32) -> State {
    State { ticket, ahead, last: TOKEN - 1, ..State::bare(Standing::Queued) }
}

pub fn refused(kind: RefusalKind) -> Failure {
    Failure::Refused(Refusal { kind, message: "no".to_owned() })
}

pub fn patience(patience: Patience, owner: u64) -> Ask {
    Ask { patience, ..Ask::local(owner) }
}

pub fn leased(lease: Duration, owner: u64) -> Ask {
    Ask { lease: Some(lease), ..Ask::local(owner) }
}

pub fn explicit(owner: &str) -> Ask {
    Ask { owner: Owner::Explicit(OwnerId::new(owner).unwrap()), ..Ask::local(0) }
}

impl Talk {
    pub fn new(name: &'static str) -> Talk {
        Talk::with(name, Options::default())
    }

    pub fn session(name: &'static str) -> Talk {
        Talk::with(name, Options { keeping: Keeping::Session, ..Options::default() })
    }

    pub fn with(name: &'static str, options: Options) -> Talk {
        let mut engine = Engine::new(options, [7; 32]).unwrap();
        let lock = engine.lock(&Name::new("x").unwrap());
        let mut talk = Talk {
            name,
            engine,
            lock,
            now: SECOND,
            text: String::new(),
            wake: None,
            open: Vec::new(),
            holds: BTreeMap::new(),
            ends: BTreeMap::new(),
            calls: BTreeMap::new(),
            token: None,
            seen: Vec::new(),
        };
        talk.up();
        talk
    }

    pub fn time(&self) -> Time {
        Time::ZERO + self.now
    }

    pub fn store(&self) -> u64 {
        EPOCH + self.now.as_micros() as u64
    }

    /// What is done to the engine.
    pub fn step(&mut self, what: &str) {
        let _ = writeln!(self.text, "{:?} {what}", self.time());
        self.hear();
    }

    /// What it does.
    fn hear(&mut self) {
        while let Some(effect) = self.engine.poll_effect() {
            let words = match &effect {
                Effect::Send(Request { id, op }) => format!("#{} {op:?}", id.0),
                Effect::Complete(call, Outcome::Failed(error)) => {
                    format!("{call} fails: {:?}: {}", error.kind(), error.message())
                }
                Effect::Complete(call, outcome) => format!("{call}: {outcome:?}"),
                other => format!("{other:?}"),
            };
            let words = words.replace("lock: \"x\", ", "").replace("mode: Exclusive, ", "");
            let words = words
                .replace(", mode: Exclusive", "")
                .replace(", apart: false", "")
                .replace("read_write: false, ", "");
            let words = match &effect {
                Effect::Send(request) => self.named(words, &request.op),
                _ => words,
            };
            let _ = writeln!(self.text, "    {words}");
            match effect {
                Effect::Send(request) => self.open.push(request),
                Effect::Complete(call, Outcome::Granted(grant)) => {
                    self.token = Some(grant.token);
                    self.holds.insert(call, grant.hold);
                }
                _ => {}
            }
        }
        let holds: Vec<(u32, HoldKey)> = self.holds.iter().map(|(&n, &hold)| (n, hold)).collect();
        for (call, hold) in holds {
            let left = self.engine.remaining(self.time(), hold);
            let end = left.map(|left| self.now + left);
            if self.ends.insert(call, end) != Some(end) {
                let _ = match end {
                    Some(end) => writeln!(self.text, "    {call} ends at {:?}", Time::ZERO + end),
                    None => writeln!(self.text, "    {call} has ended"),
                };
            }
        }
        let wake = self.engine.next_wake();
        if wake != self.wake {
            self.wake = wake;
            let _ = writeln!(self.text, "    wake at {wake:?}");
        }
    }

    /// Holds by the order in which they appear.
    fn named(&mut self, mut words: String, op: &Op) -> String {
        let ids: Vec<HoldId> = match op {
            Op::Acquire(it) => [Some(it.hold), it.after.as_ref().map(|after| after.hold)]
                .into_iter()
                .flatten()
                .collect(),
            Op::Beat(beats) => beats.iter().map(|beat| beat.hold).collect(),
            Op::Release(release) => vec![release.hold],
            _ => Vec::new(),
        };
        for id in ids {
            let known = self.seen.iter().position(|other| *other == id);
            let at = known.unwrap_or_else(|| {
                self.seen.push(id);
                self.seen.len() - 1
            });
            words = words.replacen(&format!("hold: {id:?}"), &format!("hold h{}", at + 1), 1);
        }
        words
    }

    /// Lets time pass, waking the engine whenever it wants.
    pub fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        for _ in 0..1_000 {
            let wake = self.engine.next_wake();
            let Some(at) = wake.filter(|at| *at <= Time::ZERO + until) else { break };
            self.now = self.now.max(at.since(Time::ZERO));
            self.engine.wake(self.time());
            self.step("woken");
        }
        self.now = until;
        self.hear();
    }

    pub fn up(&mut self) {
        self.engine.handle(self.time(), Event::Up { now: self.store() });
        self.step("connected");
    }

    pub fn down(&mut self) {
        self.engine.handle(self.time(), Event::Down { reason: "cut".to_owned() });
        self.step("disconnected");
        while !self.open.is_empty() {
            self.fail(Failure::Unknown);
        }
    }

    pub fn acquire(&mut self, call: u32, ask: Ask) {
        let what = format!("acquire {call}: {ask:?}").replace("adopt: false, ", "");
        match self.engine.acquire(self.time(), self.lock, ask, call) {
            Ok(Acquired::Granted(grant)) => {
                self.holds.insert(call, grant.hold);
                self.step(&format!("{what}: {grant:?}"));
            }
            Ok(Acquired::Pending(key)) => {
                self.calls.insert(call, key);
                self.step(&what);
            }
            Err(error) => self.step(&format!("{what}: {:?}: {}", error.kind(), error.message())),
        }
    }

    pub fn take(&mut self, call: u32, owner: u64) {
        self.acquire(call, Ask::local(owner));
    }

    pub fn cancel(&mut self, call: u32) {
        let ended = self.engine.cancel(self.time(), self.calls[&call]);
        self.step(&format!("cancel {call}: {ended}"));
    }

    pub fn extend(&mut self, call: u32, hold: u32, lease: Duration) {
        let result = self.engine.extend(self.time(), self.holds[&hold], lease, call);
        self.step(&format!("extend {hold} as {call} by {lease:?}: {result:?}"));
    }

    /// Releases; the release's own completion comes under the call's number and a hundred.
    pub fn release(&mut self, call: u32) {
        let Some(&hold) = self.holds.get(&call) else {
            return self.step(&format!("{call} holds nothing"));
        };
        let ended = self.engine.release(self.time(), hold, Some(call + 100));
        let said = match ended {
            Ok(Ended::Done) => "done".to_owned(),
            Ok(Ended::Pending) => "pending".to_owned(),
            Err(error) => format!("{:?}", error.kind()),
        };
        self.step(&format!("release {call}: {said}"));
    }

    fn answer(&mut self, result: Result<Body, Failure>) {
        if self.open.is_empty() {
            return self.step("nothing is asked");
        }
        let Request { id, .. } = self.open.remove(0);
        self.reply(id, result);
    }

    pub fn reply(&mut self, id: RequestId, result: Result<Body, Failure>) {
        let what = format!(
            "answer #{}: {}",
            id.0,
            match &result {
                Ok(Body::Acquire(state)) => brief(state),
                Ok(Body::Beat(states)) => {
                    let each = states.iter().map(|it| it.as_ref().map_or("no".to_owned(), brief));
                    each.collect::<Vec<_>>().join("; ")
                }
                other => format!("{other:?}"),
            }
        );
        let result = result.map(|body| Reply { now: self.store(), body });
        self.engine.handle(self.time(), Event::Reply { request: id, result });
        self.step(&what);
    }

    /// The oldest request, an acquire or a beat of one, is answered so.
    pub fn say(&mut self, state: State) {
        let body = match self.open.first().map(|request| &request.op) {
            Some(Op::Beat(beats)) => Body::Beat(vec![Ok(state); beats.len()]),
            _ => Body::Acquire(state),
        };
        self.answer(Ok(body));
    }

    pub fn released(&mut self, how: Released) {
        self.answer(Ok(Body::Release(how)));
    }

    pub fn body(&mut self, body: Body) {
        self.answer(Ok(body));
    }

    pub fn fail(&mut self, failure: Failure) {
        self.answer(Err(failure));
    }

    /// The hold's id in the oldest request.
    pub fn hold(&self) -> HoldId {
        match &self.open[0].op {
            Op::Acquire(acquire) => acquire.hold,
            Op::Beat(beats) => beats[0].hold,
            Op::Release(release) => release.hold,
            other => panic!("{other:?}"),
        }
    }

    pub fn push(&mut self, push: Push) {
        let what = format!("push: {push:?}").replace("lock: \"x\", ", "");
        self.engine.handle(self.time(), Event::Push(push));
        self.step(&what);
    }

    pub fn push_granted(&mut self, hold: HoldId, token: u64, others: u32) {
        let (lock, end) = (Name::new("x").unwrap(), token + 1_023);
        self.push(Push::Granted {
            lock,
            hold,
            token,
            end,
            abandoned: Abandoned::Yes,
            losses: 2,
            others_waiting: others,
        });
    }

    /// Compares with what was said last time.
    #[allow(clippy::disallowed_methods, reason = "who runs the test asks for new texts")]
    pub fn end(self) {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/said");
        let path = folder.join(format!("{}.txt", self.name));
        if std::env::var("TRANSCRIPTS").is_ok_and(|it| it == "write") {
            std::fs::write(&path, &self.text).unwrap();
            return;
        }
        let wanted = std::fs::read_to_string(&path).expect("TRANSCRIPTS=write makes it");
        for (number, pair) in wanted.lines().zip(self.text.lines()).enumerate() {
            assert_eq!(pair.1, pair.0, "{}, line {}", self.name, number + 1);
        }
        assert_eq!(self.text.lines().count(), wanted.lines().count(), "{}", self.name);
    }
}

/// A state without what is zero.
fn brief(state: &State) -> String {
    let text = format!("{state:?}");
    let fields = text.trim_start_matches("State { ").trim_end_matches(" }").split(", ");
    let said = fields.filter(|field| {
        !field.ends_with(": 0")
            && !field.ends_with(": 0ns")
            && !field.ends_with("None")
            && !field.ends_with("false")
            && !field.ends_with(": No")
    });
    said.map(|field| field.trim_start_matches("standing: ")).collect::<Vec<_>>().join(", ")
}
