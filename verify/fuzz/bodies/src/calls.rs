//! Calls and events in any order, given to the engine: also those that a sound store never sends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fencelock_engine::hold::LockKey;
use fencelock_engine::reply::{
    Abandoned, Body, Broken, Failure, Push, Refusal, RefusalKind, Released, Reply, Standing, State,
};
use fencelock_engine::request::{Break, Mode, Op, Request, RequestId};
use fencelock_engine::{
    Acquired, Ask, CallKey, Effect, Ended, Engine, Error, ErrorKind, Event, HoldId, HoldKey, Name,
    Options, Outcome, Owner, OwnerId, Patience, Time, Token,
};

use crate::bytes::Bytes;

/// So many kinds of steps there are. What is left of a byte says how an acquire shares the lock.
const STEPS: u8 = 29;
/// More effects of one call are a loop.
const EFFECTS: usize = 100_000;
/// What the store's clock reads at the beginning, in microseconds.
const EPOCH: u64 = 1_800_000_000_000_000;

/// Plays the bytes as calls and events. Every call must end exactly once, at the latest by a close;
/// a loss is told once, and only of a hold that was granted.
pub fn calls(bytes: &[u8]) {
    let mut play = Play::new();
    let mut bytes = Bytes::new(bytes);
    while !bytes.is_empty() {
        play.step(&mut bytes);
    }
    play.end();
}

struct Play {
    engine: Engine<u32>,
    now: Time,
    locks: Vec<LockKey>,
    /// Sent, and not answered.
    sent: Vec<Request>,
    /// Hold ids that the store has heard of.
    ids: Vec<HoldId>,
    /// Calls that have not ended.
    open: BTreeMap<u32, Option<CallKey>>,
    /// Holds in callers' hands, by the handle of their acquire.
    holds: Vec<(u32, HoldKey)>,
    granted: BTreeSet<u32>,
    lost: BTreeSet<u32>,
    next: u32,
}

impl Play {
    fn new() -> Play {
        let options = Options { local_run_grants: 2, ..Options::default() };
        let mut engine = Engine::new(options, [7; 32]).expect("good options");
        let locks = ["a", "b"].map(|name| engine.lock(&Name::new(name).expect("a good name")));
        Play {
            engine,
            now: Time::from_nanos(1_000_000_000),
            locks: locks.to_vec(),
            sent: Vec::new(),
            ids: Vec::new(),
            open: BTreeMap::new(),
            holds: Vec::new(),
            granted: BTreeSet::new(),
            lost: BTreeSet::new(),
            next: 0,
        }
    }

    fn tag(&mut self) -> u32 {
        self.next += 1;
        self.next
    }

    fn store_time(&self) -> u64 {
        EPOCH + self.now.as_nanos() / 1_000
    }

    fn step(&mut self, bytes: &mut Bytes<'_>) {
        let choice = bytes.byte();
        match choice % STEPS {
            0..4 => self.acquire(bytes, choice / STEPS),
            4..6 => self.release(bytes),
            6 => self.cancel(bytes),
            7 => self.extend(bytes),
            8..13 => self.reply(bytes),
            13 => self.fail(bytes),
            14 | 15 => self.push(bytes),
            16 | 17 => self.pass(bytes),
            18 | 19 => {
                let now = if bytes.flip() { self.store_time() } else { time(bytes) };
                self.engine.handle(self.now, Event::Up { now });
            }
            20 => self.engine.handle(self.now, Event::Down { reason: "cut".to_owned() }),
            21 => self.query(bytes),
            22 if bytes.below(8) == 0 => {
                let error = Error::new(ErrorKind::Misconfigured, "no password");
                self.engine.handle(self.now, Event::Misconfigured(error));
            }
            23 if bytes.below(16) == 0 => {
                let tag = self.tag();
                self.open.insert(tag, None);
                self.engine.close(self.now, tag);
            }
            24..27 => self.convert(bytes),
            27 => self.engine.set_read_write(self.locks[bytes.below(2)]),
            _ => {
                let lock = Name::new(["a", "b", "c"][bytes.below(3)]).expect("a good name");
                let key = self.engine.lock(&lock);
                self.engine.forget(key);
            }
        }
        self.follow();
    }

    /// `sharing` says how the hold is to share the lock.
    fn acquire(&mut self, bytes: &mut Bytes<'_>, sharing: u8) {
        let lock = self.locks[bytes.below(2)];
        let owner = match bytes.below(5) {
            4 => Owner::Explicit(OwnerId::new("trace").expect("a good owner")),
            number => Owner::Local(number as u64),
        };
        let patience = match bytes.below(4) {
            0 => Patience::Try,
            1 => Patience::Until(self.now + span(bytes)),
            _ => Patience::Forever,
        };
        let lease = (bytes.below(4) == 0).then(|| span(bytes));
        let max_hold = (bytes.below(8) == 0).then(|| span(bytes));
        let attach = (bytes.below(16) == 0).then(|| Token(token(bytes)));
        let (mode, adopt) = match sharing % 5 {
            1 | 2 => (Mode::Shared, false),
            3 | 4 => {
                let of = 1 + bytes.below(4) as u32;
                (Mode::Permits { count: 1 + bytes.below(of as usize) as u32, of }, bytes.flip())
            }
            _ => (Mode::Exclusive, false),
        };
        let ask = Ask { owner, mode, adopt, lease, max_hold, patience, attach };
        let tag = self.tag();
        match self.engine.acquire(self.now, lock, ask, tag) {
            Ok(Acquired::Granted(grant)) => self.take(tag, grant.hold),
            Ok(Acquired::Pending(key)) => {
                self.open.insert(tag, Some(key));
            }
            Err(_) => {}
        }
    }

    fn take(&mut self, tag: u32, hold: HoldKey) {
        assert!(self.granted.insert(tag), "granted twice");
        self.holds.push((tag, hold));
    }

    fn release(&mut self, bytes: &mut Bytes<'_>) {
        if self.holds.is_empty() {
            return;
        }
        let (_, hold) = self.holds.swap_remove(bytes.below(self.holds.len()));
        let tag = bytes.flip().then(|| self.tag());
        match (self.engine.release(self.now, hold, tag), tag) {
            (Ok(Ended::Pending), Some(tag)) => {
                self.open.insert(tag, None);
            }
            (Ok(_), _) => {}
            (Err(error), _) => assert_eq!(error.kind(), ErrorKind::Lost),
        }
        self.follow();
        // Once more is an error, whatever became of it.
        let again = self.engine.release(self.now, hold, None).expect_err("released already");
        assert_eq!(again.kind(), ErrorKind::NotHeld);
    }

    fn cancel(&mut self, bytes: &mut Bytes<'_>) {
        let waiting: Vec<(u32, CallKey)> =
            self.open.iter().filter_map(|(tag, key)| key.map(|key| (*tag, key))).collect();
        if waiting.is_empty() {
            return;
        }
        let (tag, key) = waiting[bytes.below(waiting.len())];
        assert!(self.engine.cancel(self.now, key), "an open call can be cancelled");
        self.open.remove(&tag);
        assert!(!self.engine.cancel(self.now, key), "once");
    }

    fn extend(&mut self, bytes: &mut Bytes<'_>) {
        if self.holds.is_empty() {
            return;
        }
        let (_, hold) = self.holds[bytes.below(self.holds.len())];
        let tag = self.tag();
        if self.engine.extend(self.now, hold, span(bytes), tag).is_ok() {
            self.open.insert(tag, None);
        }
    }

    /// To read from now on, or to write; now and then nobody takes delivery of it.
    fn convert(&mut self, bytes: &mut Bytes<'_>) {
        if self.holds.is_empty() {
            return;
        }
        let (_, hold) = self.holds[bytes.below(self.holds.len())];
        let tag = self.tag();
        let asked = match bytes.below(5) {
            0 | 1 => self.engine.downgrade(self.now, hold, tag),
            2 | 3 => self.engine.try_upgrade(self.now, hold, tag),
            _ => return self.engine.undo_upgrade(self.now, hold),
        };
        if let Ok(Some(key)) = asked {
            self.open.insert(tag, Some(key));
        }
    }

    fn query(&mut self, bytes: &mut Bytes<'_>) {
        let tag = self.tag();
        self.open.insert(tag, None);
        let name = Name::new("a").expect("a good name");
        match bytes.below(7) {
            0 => self.engine.inspect(self.now, &name, tag),
            1 => self.engine.list(self.now, "", 3, tag),
            2 | 4 => {
                let named = (!self.ids.is_empty() && bytes.flip())
                    .then(|| self.ids[bytes.below(self.ids.len())]);
                let what = Break { lock: name, token: bytes.number(), hold: named };
                self.engine.break_lock(self.now, what, tag);
            }
            5 => self.engine.resize(self.now, &name, bytes.number() as u32, tag),
            6 => self.engine.revoke(self.now, &name, tag),
            _ => self.engine.ping(self.now, tag),
        }
    }

    fn reply(&mut self, bytes: &mut Bytes<'_>) {
        if self.sent.is_empty() || bytes.below(32) == 31 {
            let request = RequestId(bytes.number());
            if self.sent.iter().all(|sent| sent.id != request) {
                let reply = Reply { now: self.store_time(), body: Body::Time };
                self.engine.handle(self.now, Event::Reply { request, result: Ok(reply) });
            }
            return;
        }
        let request = self.sent.remove(bytes.below(self.sent.len()));
        let body =
            match &request.op {
                _ if bytes.below(32) == 31 => Body::Time,
                Op::Acquire(_) => Body::Acquire(state(bytes)),
                Op::Beat(beats) => Body::Beat(
                    beats
                        .iter()
                        .map(|_| {
                            if bytes.below(8) == 7 { Err(refusal(bytes)) } else { Ok(state(bytes)) }
                        })
                        .collect(),
                ),
                Op::Release(_) => Body::Release(
                    [Released::Done, Released::Left, Released::Unknown][bytes.below(3)],
                ),
                Op::Inspect(_) => Body::Inspect(None),
                Op::List { .. } => Body::List(Vec::new()),
                Op::Convert(_) => Body::Convert(state(bytes)),
                Op::Resize(_) => Body::Resize(bytes.below(2) == 0),
                Op::Break(what) => Body::Break(
                    [Broken::Ended(1), Broken::NotHeld, Broken::ChangedHands(what.token)]
                        [bytes.below(3)],
                ),
                Op::Revoke(_) => Body::Revoke(false),
                Op::Time => Body::Time,
            };
        let now = if bytes.below(16) == 15 { time(bytes) } else { self.store_time() };
        let result = Ok(Reply { now, body });
        self.engine.handle(self.now, Event::Reply { request: request.id, result });
    }

    fn fail(&mut self, bytes: &mut Bytes<'_>) {
        if self.sent.is_empty() {
            return;
        }
        let request = self.sent.remove(bytes.below(self.sent.len()));
        let failure = match bytes.below(3) {
            0 => Failure::Unknown,
            1 => Failure::NotSent,
            _ => Failure::Refused(refusal(bytes)),
        };
        self.engine.handle(self.now, Event::Reply { request: request.id, result: Err(failure) });
    }

    fn push(&mut self, bytes: &mut Bytes<'_>) {
        let lock = Name::new(["a", "b", "c"][bytes.below(3)]).expect("a good name");
        let hold = match self.ids.len() {
            0 => HoldId(u128::from(bytes.number())),
            known => self.ids[known - 1 - bytes.below(known)],
        };
        let push = match bytes.below(8) {
            0 => Push::Wanted { lock, hold },
            1 => Push::Broken { lock, hold },
            2 => Push::Changed { lock, hold },
            _ => {
                let (token, end) = block(bytes);
                let abandoned = Abandoned::Unknown;
                let losses = u32::from(bytes.byte());
                Push::Granted { lock, hold, token, end, abandoned, losses, others_waiting: 1 }
            }
        };
        self.engine.handle(self.now, Event::Push(push));
    }

    fn pass(&mut self, bytes: &mut Bytes<'_>) {
        self.now = match (bytes.below(4), self.engine.next_wake()) {
            // Clock readings may come in the other order.
            (0, _) => self.now - Duration::from_millis(1),
            (1, _) => self.now + span(bytes),
            (_, Some(wake)) => self.now.max(wake),
            (_, None) => self.now + Duration::from_micros(1),
        };
        self.wake();
    }

    /// Whatever is due is done by a few wakes, so that nobody wakes the engine for ever.
    fn wake(&mut self) {
        for _ in 0..64 {
            self.engine.wake(self.now);
            self.follow();
            if self.engine.next_wake().is_none_or(|wake| wake > self.now) {
                return;
            }
        }
        panic!("the engine wants to be woken for ever");
    }

    fn follow(&mut self) {
        for _ in 0..EFFECTS {
            let Some(effect) = self.engine.poll_effect() else { return };
            match effect {
                Effect::Send(request) => {
                    match &request.op {
                        Op::Acquire(ask) => self.know(ask.hold),
                        Op::Release(release) => self.know(release.hold),
                        Op::Beat(beats) => assert!((1..=100).contains(&beats.len())),
                        _ => {}
                    }
                    self.sent.push(request);
                }
                Effect::Complete(tag, outcome) => {
                    assert!(
                        self.open.remove(&tag).is_some(),
                        "call {tag} ended twice: {outcome:?}"
                    );
                    if let Outcome::Granted(grant) = outcome {
                        self.take(tag, grant.hold);
                    }
                }
                Effect::Lost(tag, _) => {
                    assert!(self.granted.contains(&tag), "the loss of a hold that never was");
                    assert!(self.lost.insert(tag), "a loss told twice");
                }
                Effect::Wanted(tag) => assert!(self.granted.contains(&tag)),
                Effect::Reconnect(_) | Effect::Note(_) => {}
            }
        }
        panic!("effects without end");
    }

    fn know(&mut self, hold: HoldId) {
        if !self.ids.contains(&hold) {
            self.ids.push(hold);
        }
    }

    /// Closes: then every call ends within the bound, answered or not.
    fn end(&mut self) {
        let tag = self.tag();
        self.open.insert(tag, None);
        self.engine.close(self.now, tag);
        self.follow();
        while let Some(wake) = self.engine.next_wake().filter(|_| !self.open.is_empty()) {
            self.now = self.now.max(wake);
            self.wake();
        }
        assert!(self.open.is_empty(), "calls that never end: {:?}", self.open);
        assert!(self.engine.is_closed());
        assert_eq!(self.engine.waiting(), 0);
        for (_, hold) in &self.holds {
            assert!(self.engine.remaining(self.now, *hold).is_none(), "held after the close");
        }
    }
}

/// From a microsecond to some hours.
fn span(bytes: &mut Bytes<'_>) -> Duration {
    match bytes.below(8) {
        0 => Duration::from_micros(bytes.number().min(1 << 40)),
        1 => Duration::MAX,
        _ => Duration::from_millis(100 * (u64::from(bytes.byte()) + 1)),
    }
}

/// A store's time, which may be anything that leaves room for tokens.
fn time(bytes: &mut Bytes<'_>) -> u64 {
    bytes.number().min(fencelock_engine::token::MAX_STORE_TIME)
}

/// A token, mostly one that a sound store would give about now.
fn token(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.below(8) {
        0 => bytes.number() & ((1 << 53) - 1),
        _ => EPOCH + u64::from(bytes.byte()) * 64,
    }
}

fn block(bytes: &mut Bytes<'_>) -> (u64, u64) {
    let first = token(bytes);
    (first, first + bytes.below(4) as u64 * 341)
}

fn state(bytes: &mut Bytes<'_>) -> State {
    let standing = match bytes.below(12) {
        0..5 => Standing::Granted,
        5..8 => Standing::Queued,
        8 => Standing::Contended,
        9 => Standing::Late,
        10 => Standing::Gone,
        _ => {
            let of = 1 + u32::from(bytes.byte() >> 6);
            let last = [
                Standing::Released,
                Standing::NotHeld,
                Standing::Deadlock,
                Standing::Doomed { of },
                Standing::Unconfirmed { by: of - 1, of },
            ];
            last[bytes.below(5)]
        }
    };
    let (token, end) = block(bytes);
    let flags = bytes.byte();
    State {
        token,
        end,
        last: token,
        lease: Duration::from_secs(30),
        abandoned: [Abandoned::No, Abandoned::Yes, Abandoned::Unknown][bytes.below(3)],
        losses: u32::from(flags >> 6),
        expires_in: (flags & 1 == 1).then(|| Duration::from_micros(bytes.number())),
        others_waiting: u32::from(flags >> 4),
        ahead: u32::from(flags & 2) * u32::from(flags),
        ticket: EPOCH,
        publish_failed: flags & 4 == 4,
        ..State::bare(standing)
    }
}

fn refusal(bytes: &mut Bytes<'_>) -> Refusal {
    let kind = match bytes.below(6) {
        4 | 5 => RefusalKind::OtherPermits { of: bytes.below(6) as u32 },
        0 => RefusalKind::Retry,
        1 => RefusalKind::Again,
        2 => RefusalKind::Misconfigured,
        _ => RefusalKind::Unsupported,
    };
    Refusal { kind, message: "no".to_owned() }
}
