//! What comes on a connection that is up: answers to what was asked, and pushes.

use std::time::Duration;

use crate::event::Event;
use crate::id::HoldId;
use crate::name::Name;
use crate::redis::cluster::{self, Redirect, Redirected};
use crate::redis::error::is_reborn;
use crate::redis::session::asked::{Asked, Awaited};
use crate::redis::session::greeting::Greeted;
use crate::redis::session::incoming::Incoming;
use crate::redis::session::resp::Frame;
use crate::redis::sync::Question;
use crate::redis::{Codec, Command, ListStep, Listing, Value};
use crate::reply::{Body, Failure, Push, Refusal, RefusalKind, Reply, Standing};
use crate::request::{Op, RequestId};
use crate::time::Time;

/// After a failover the host's name may lead to the new master: a connection to a server that
/// refuses to write is given up, but not more often than so.
const DEMOTED_AFTER: Duration = Duration::from_secs(1);

/// Where a hearing finds what was asked. A host whose callers ask on threads of their own guards it.
pub trait Guarded {
    /// Acts upon it, while nobody else does.
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R;
}

/// What a log may tell of what was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The server forgot a script of this name, which is loaded again.
    Forgotten(&'static str),
    /// A message of so many bytes that is not ours.
    Strange(usize),
    /// A push of so many parts that is no message.
    NoMessage(usize),
    /// The server refused ASKING: locks of slots that are moving are not served.
    NoAsking(String),
    /// The user may not subscribe to channels of locks: waiting polls instead.
    NoChannels(String),
}

/// What comes on one connection while it is up: hand it the bytes, and pass its events to the engine.
#[derive(Debug)]
pub struct Hearing {
    codec: Codec,
    main: Incoming,
    /// Of the connection of the subscription, when it is not the same.
    apart: Incoming,
    /// What the engine is to be passed, in order.
    pub events: Vec<Event>,
    /// What a log may tell.
    pub heard: Vec<Heard>,
    /// What was answered to questions beside the requests.
    pub aside: Vec<(Question, Value)>,
    /// Whose answer is being read: a panic there must not swallow it.
    reading: Option<RequestId>,
    since: Time,
    /// The server refused to write, and this connection is not new.
    demoted: bool,
    /// A server of a quorum has forgotten what it said of itself.
    reborn: bool,
    /// What the server sent to others, where it is one of a cluster.
    redirected: Option<Vec<Redirected>>,
    /// It said something that speaks against the map of slots.
    suspect: bool,
}

impl Hearing {
    /// Begins, on a connection that is ready, and on that of its subscription if it is another.
    pub fn new(now: Time, codec: Codec, main: Greeted, apart: Option<Greeted>) -> Hearing {
        let mut hearing = Hearing {
            codec,
            main: main.incoming,
            apart: apart.map(|greeted| greeted.incoming).unwrap_or_default(),
            events: vec![Event::Up { now: main.now }],
            heard: Vec::new(),
            aside: Vec::new(),
            reading: None,
            since: now,
            demoted: false,
            reborn: false,
            redirected: None,
            suspect: false,
        };
        // What came early is heard after the engine knows that it is up.
        for values in main.early {
            hearing.push(&values);
        }
        hearing
    }

    /// Begins on a connection beside another one, which tells that it is up, or down.
    #[must_use]
    pub fn beside(mut self) -> Hearing {
        self.events.clear();
        self
    }

    /// Such a one has ended: what was not read to its end is not known.
    pub fn end_beside(&mut self, events: &mut Vec<Event>) {
        let unread = self.reading.take();
        events
            .extend(unread.map(|request| Event::Reply { request, result: Err(Failure::Unknown) }));
    }

    /// The server is one of a cluster: what it sends to others is told by [`Hearing::redirected`], and
    /// not answered here.
    #[must_use]
    pub fn in_cluster(mut self) -> Hearing {
        self.redirected = Some(Vec::new());
        self
    }

    /// What the server sent to others since this was last asked; whoever takes it answers for it.
    pub fn redirected(&mut self) -> Vec<Redirected> {
        self.redirected.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Whether something was said against the map of slots since this was last asked.
    pub fn is_suspect(&mut self) -> bool {
        std::mem::take(&mut self.suspect)
    }

    /// How long it has been up.
    fn age(&self, now: Time) -> Duration {
        now.since(self.since)
    }

    /// Why the connection is of no more use, if so.
    pub fn spent(&self) -> Option<String> {
        let why = if self.demoted {
            "the server became a replica; connecting anew"
        } else if self.reborn {
            "the server has forgotten its birth, and with it the locks; connecting anew"
        } else {
            return None;
        };
        Some(why.to_owned())
    }

    /// Takes what has come; true when it led to another question, which is to be written.
    ///
    /// # Errors
    /// Why the connection is to be given up.
    pub fn receive(
        &mut self,
        now: Time,
        bytes: &[u8],
        asked: &impl Guarded,
    ) -> Result<bool, String> {
        self.main.extend(bytes);
        let mut further = false;
        while let Some(frame) = self.main.frame().map_err(|garbage| garbage.to_string())? {
            match frame {
                Frame::Reply(value) => match asked.with(Asked::answered) {
                    Some(Awaited::Request(id, op)) => {
                        further |= self.reply(now, id, &op, value, asked);
                    }
                    Some(Awaited::Round(id, op, listing)) => {
                        further |= self.round(id, op, listing, value, asked);
                    }
                    Some(Awaited::Script(_, requests)) => self.loaded(&requests, &value),
                    Some(Awaited::Subscribed(lock, holds)) => {
                        self.unsubscribed(&lock, holds, &value, asked);
                    }
                    // It is given up all the same.
                    Some(Awaited::Unsubscribed(_)) => {}
                    Some(Awaited::Asking) => {
                        if let Value::Error(line) = &value {
                            let said = self.codec.shown(line).into_owned();
                            self.heard.push(Heard::NoAsking(said));
                        }
                    }
                    Some(Awaited::Aside(question)) => self.aside.push((question, value)),
                    None => {
                        return Err(format!("the server answered what nobody asked: {value:?}"));
                    }
                },
                Frame::Push(values) if self.channel(&values, asked) => {}
                Frame::Push(values) => self.push(&values),
            }
        }
        Ok(further)
    }

    /// Calls who has polled for a while; gives when to do so again. `now` is the time that requests are
    /// asked at.
    pub fn call_due(&mut self, now: Time, asked: &impl Guarded) -> Option<Time> {
        while let Some((lock, hold)) = asked.with(|asked| asked.channels().call(now)) {
            self.call(&lock, hold);
        }
        asked.with(|asked| asked.channels().next_call())
    }

    /// Takes what has come on the connection of the subscription.
    ///
    /// # Errors
    /// Why the connections are to be given up.
    pub fn receive_apart(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.apart.extend(bytes);
        while let Some(frame) = self.apart.frame().map_err(|garbage| garbage.to_string())? {
            match frame {
                Frame::Push(values) | Frame::Reply(Value::Array(values)) => self.push(&values),
                Frame::Reply(_) => {}
            }
        }
        Ok(())
    }

    /// The connection has ended: answers for what is under way, and says why.
    pub fn end(&mut self, reason: String, asked: &mut Asked) {
        if let Some(request) = self.reading.take() {
            self.events.push(Event::Reply { request, result: Err(Failure::Unknown) });
        }
        asked.end(&mut self.events);
        self.events.push(Event::Down { reason });
    }

    /// Takes one answer; true when it led to another question.
    fn reply(
        &mut self,
        now: Time,
        request: RequestId,
        op: &Op,
        value: Value,
        asked: &impl Guarded,
    ) -> bool {
        self.reading = Some(request);
        if let Value::Error(line) = &value
            && line.starts_with("NOSCRIPT")
            && let Command::Script { script, .. } = self.codec.encode(op)
        {
            self.heard.push(Heard::Forgotten(script.name));
            self.demoted |= planted!(ForgottenScriptIsDeath);
            asked.with(|asked| asked.load(script, request));
            self.reading = None;
            return true;
        }
        if let Value::Error(line) = &value
            && let Some(redirected) = &mut self.redirected
        {
            self.suspect |= cluster::is_suspect(line);
            if let Some(to) = Redirect::parse(line) {
                redirected.push(Redirected::new(request, op, to));
                self.reading = None;
                return false;
            }
            if line.starts_with("MOVED") {
                let said = self.codec.shown(line);
                let message = format!("{said} (it does not say where; a map of the slots may)");
                let refusal = Refusal { kind: RefusalKind::Retry, message };
                self.answer(request, Err(Failure::Refused(refusal)));
                return false;
            }
        }
        self.reborn |= matches!(&value, Value::Error(line) if is_reborn(line));
        self.demoted |= matches!(&value, Value::Error(line) if line.starts_with("READONLY"))
            && self.age(now) >= DEMOTED_AFTER;
        let result = self.codec.decode(op, value);
        let polls = match (op, &result) {
            (Op::Acquire(ask), Ok(Reply { body: Body::Acquire(state), .. })) => {
                state.standing == Standing::Queued
                    && asked.with(|it| it.channels().lacks(&ask.lock))
            }
            _ => false,
        };
        self.answer(request, result);
        if let (Op::Acquire(ask), true) = (op, polls) {
            // Its beat subscribes.
            self.call(&ask.lock, ask.hold);
        }
        false
    }

    /// Has the engine ask again at once.
    fn call(&mut self, lock: &Name, hold: HoldId) {
        self.events.push(Event::Push(Push::Changed { lock: lock.clone(), hold }));
    }

    /// A subscription was refused. What was asked behind it is, too, if the slot is elsewhere or the server
    /// does not serve; otherwise this user may have none, and whoever relied on it polls.
    fn unsubscribed(
        &mut self,
        lock: &Name,
        holds: Vec<HoldId>,
        said: &Value,
        asked: &impl Guarded,
    ) {
        let Value::Error(line) = said else { return };
        asked.with(|asked| asked.channels().closed(lock));
        self.suspect |= cluster::is_suspect(line);
        if cluster::is_suspect(line) || is_passing(line) {
            return;
        }
        asked.with(Asked::refuse_channels);
        self.heard.push(Heard::NoChannels(self.codec.shown(line).into_owned()));
        holds.into_iter().for_each(|hold| self.call(lock, hold));
    }

    /// Takes a push that is about a lock's channel; false for any other.
    fn channel(&mut self, values: &[Value], asked: &impl Guarded) -> bool {
        let [Value::Bytes(kind), Value::Bytes(channel), _] = values else { return false };
        let opened = kind == b"ssubscribe";
        if !opened && kind != b"sunsubscribe" {
            return false;
        }
        if let Some(lock) = self.codec.lock_of(channel)
            && !asked.with(|asked| asked.confirmed(opened, &lock))
            && !opened
        {
            // Unasked: the slot has moved, or the server is no master any more.
            self.suspect |= asked.with(|asked| asked.channels().closed(&lock));
        }
        true
    }

    /// Takes one round of a listing; true when another one follows.
    fn round(
        &mut self,
        request: RequestId,
        op: Op,
        mut listing: Listing,
        value: Value,
        asked: &impl Guarded,
    ) -> bool {
        self.reading = Some(request);
        let result = match self.codec.list_step(&op, &mut listing, value) {
            Ok(ListStep::Send(command)) => {
                let round = Awaited::Round(request, op, listing);
                asked.with(|asked| asked.ask_on(round, &command));
                self.reading = None;
                return true;
            }
            Ok(ListStep::Done(reply)) => Ok(reply),
            Err(failure) => Err(failure),
        };
        self.answer(request, result);
        false
    }

    fn answer(&mut self, request: RequestId, result: Result<Reply, Failure>) {
        self.events.push(Event::Reply { request, result });
        self.reading = None;
    }

    /// A script that was forgotten is there again, or is refused.
    fn loaded(&mut self, requests: &[RequestId], value: &Value) {
        let (kind, message) = match value {
            Value::Error(line) if line.starts_with("NOPERM") => {
                let said = self.codec.shown(line);
                (RefusalKind::Misconfigured, format!("the script cannot be loaded: {said}"))
            }
            Value::Error(line) => {
                let said = self.codec.shown(line);
                (RefusalKind::Retry, format!("the script cannot be loaded: {said}"))
            }
            _ => (RefusalKind::Again, "the script was forgotten, and is loaded again".to_owned()),
        };
        for &request in requests {
            let refusal = Refusal { kind, message: message.clone() };
            self.events.push(Event::Reply { request, result: Err(Failure::Refused(refusal)) });
        }
    }

    fn push(&mut self, values: &[Value]) {
        match values {
            [Value::Bytes(kind), Value::Bytes(_), Value::Bytes(payload)]
                if kind == b"message" || kind == b"smessage" =>
            {
                match self.codec.decode_push(payload) {
                    Some(push) => self.events.push(Event::Push(push)),
                    None => self.heard.push(Heard::Strange(payload.len())),
                }
            }
            _ => self.heard.push(Heard::NoMessage(values.len())),
        }
    }
}

/// Whether a server that says so serves nothing else now, either.
fn is_passing(line: &str) -> bool {
    let code = line.split(' ').next().unwrap_or_default();
    matches!(code, "TRYAGAIN" | "LOADING" | "BUSY")
}
