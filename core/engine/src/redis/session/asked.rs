//! What was asked on a connection, and is not yet answered.

use std::collections::{BTreeSet, VecDeque};
use std::mem;
use std::time::Duration;

use crate::event::Event;
use crate::id::HoldId;
use crate::name::Name;
use crate::redis::session::channels::{Channels, Use};
use crate::redis::session::outbox::Outbox;
use crate::redis::session::pack;
use crate::redis::sync::Question;
use crate::redis::{Birth, Codec, Command, Inbox, Listing, Script, Wide};
use crate::reply::Failure;
use crate::request::{Op, Request, RequestId};
use crate::time::Time;
use crate::transport::Doubt;

/// A command that was encoded and not yet answered.
#[derive(Debug)]
struct Pending {
    /// Where its first byte stands in all that was ever encoded for this connection.
    start: u64,
    what: Awaited,
}

/// What an answer is awaited for.
#[derive(Debug)]
pub enum Awaited {
    /// For a request.
    Request(RequestId, Op),
    /// For one round of a listing.
    Round(RequestId, Op, Listing),
    /// For the loading of a script that the server had forgotten, which these requests need.
    Script(&'static str, Vec<RequestId>),
    /// For ASKING, of whose answer only a refusal is of interest.
    Asking,
    /// For a question beside the requests.
    Aside(Question),
    /// For a subscription to a lock's channel, which these holds hear by.
    Subscribed(Name, Vec<HoldId>),
    /// For the end of one.
    Unsubscribed(Name),
}

impl Awaited {
    /// Whether `request` waits for it.
    fn is_for(&self, request: RequestId) -> bool {
        match self {
            Awaited::Request(id, _) | Awaited::Round(id, ..) => *id == request,
            Awaited::Script(_, ids) => ids.contains(&request),
            Awaited::Asking
            | Awaited::Aside(_)
            | Awaited::Subscribed(..)
            | Awaited::Unsubscribed(_) => false,
        }
    }
}

/// What was asked on a connection, as bytes that are to be written, and as answers that are awaited. It
/// outlives its connections.
#[derive(Debug)]
pub struct Asked {
    codec: Codec,
    outbox: Outbox,
    in_flight: VecDeque<Pending>,
    /// Whose answer is being read: it is owed until the engine is told, or it is asked anew.
    reading: Option<RequestId>,
    /// Whose answer the engine was passed last, on this connection.
    told: Option<RequestId>,
    /// The engine doubts the connection: nothing was answered for long.
    doubted: bool,
    /// Locks whose slot is moving here from another server of a cluster: this one answers for them only
    /// if it is told so before each request.
    asking: BTreeSet<Name>,
    /// Which locks' channels are subscribed to, where each has its own.
    channels: Channels,
}

impl Asked {
    /// Nothing yet.
    pub fn new(codec: Codec) -> Asked {
        Asked {
            codec,
            outbox: Outbox::default(),
            in_flight: VecDeque::new(),
            reading: None,
            told: None,
            doubted: false,
            asking: BTreeSet::new(),
            channels: Channels::default(),
        }
    }

    /// Which locks are shared, for the codec that reads the replies.
    pub fn wide(&self) -> Wide {
        self.codec.wide()
    }

    /// What the server last said of itself, where it is one of a quorum.
    pub fn birth(&self) -> Option<&Birth> {
        self.codec.birth()
    }

    /// The connection that begins next is with a server of a quorum, which said this of itself.
    pub fn set_birth(&mut self, birth: Option<Birth>) {
        self.codec.set_birth(birth);
    }

    /// A new connection is there.
    pub fn begin(&mut self, inbox: Inbox) {
        self.codec.set_inbox(inbox);
        self.channels.begin(inbox == Inbox::Sharded(true));
        self.outbox.renew();
        (self.reading, self.told, self.doubted) = (None, None, false);
    }

    /// The connection has ended: answers for what is under way.
    pub fn end(&mut self, events: &mut Vec<Event>) {
        for pending in mem::take(&mut self.in_flight) {
            match pending.what {
                Awaited::Request(request, _) | Awaited::Round(request, ..) => {
                    let failure = match self.outbox.may_have_left(pending.start) {
                        true => Failure::Unknown,
                        false => Failure::NotSent,
                    };
                    events.push(Event::Reply { request, result: Err(failure) });
                }
                Awaited::Asking
                | Awaited::Aside(_)
                | Awaited::Subscribed(..)
                | Awaited::Unsubscribed(_) => {}
                // The server said that it did not execute these.
                Awaited::Script(_, requests) => {
                    let failed = |request| Event::Reply { request, result: Err(Failure::NotSent) };
                    events.extend(requests.into_iter().map(failed));
                }
            }
        }
        self.outbox.clear();
        (self.reading, self.doubted) = (None, false);
    }

    /// Forgets everything: nobody waits for an answer any more.
    pub fn clear(&mut self) {
        self.in_flight.clear();
        self.outbox.clear();
        (self.reading, self.doubted) = (None, false);
    }

    /// Whether an answer is awaited.
    pub fn is_owed(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Whether requests have left that are not answered yet.
    pub fn awaits_answers(&self) -> bool {
        self.in_flight.front().is_some_and(|pending| self.outbox.may_have_left(pending.start))
    }

    /// What is to be written.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// These locks are asked for here while their slot moves.
    pub fn add_asking(&mut self, locks: Vec<Name>) {
        self.asking.extend(locks);
    }

    /// No slot moves here any more.
    pub fn end_asking(&mut self) {
        self.asking.clear();
    }

    /// Asks what the engine wants to know.
    pub fn ask(&mut self, now: Time, request: Request) {
        if self.channels.are_on() {
            self.listen(now, &request.op);
        }
        if !self.asking.is_empty() && request.op.locks().iter().any(|it| self.asking.contains(it)) {
            self.say_asking();
        }
        let command = self.codec.encode(&request.op);
        let awaited = match &request.op {
            Op::List { .. } => Awaited::Round(request.id, request.op, Listing::default()),
            _ => Awaited::Request(request.id, request.op),
        };
        self.ask_on(awaited, &command);
    }

    /// Asks beside the requests.
    pub fn ask_aside<W: AsRef<[u8]>>(&mut self, question: Question, words: &[W]) {
        self.push(Awaited::Aside(question), |out| pack::words(out, words));
    }

    fn say_asking(&mut self) {
        self.push(Awaited::Asking, |out| pack::words(out, &["ASKING"]));
    }

    /// Subscribes before what is asked, and gives up what is idle. What is asked says whether all that it is
    /// about is subscribed to.
    fn listen(&mut self, now: Time, op: &Op) {
        for lock in self.channels.idle(now) {
            let channel = self.codec.channel_of(&lock);
            self.push(Awaited::Unsubscribed(lock), |out| {
                pack::words(out, &[&b"SUNSUBSCRIBE"[..], &channel]);
            });
        }
        let all = match op {
            Op::Acquire(ask) => {
                let silence = ask.wait.as_ref().map_or(Duration::ZERO, |wait| wait.silence);
                let listens = self.listen_to(now, &ask.lock, ask.hold, false, silence);
                if !listens {
                    self.channels.polls(now, &ask.lock, ask.hold);
                }
                listens
            }
            Op::Convert(ask) => self.listen_to(now, &ask.lock, ask.hold, false, Duration::ZERO),
            // Of a lock that is asked for by its record alone the slot is moving: it will be asked elsewhere.
            Op::Beat(beats) => {
                let mut all = true;
                for beat in beats {
                    let wanted = !beat.apart;
                    all &= self.listen_to(now, &beat.lock, beat.hold, wanted, beat.silence);
                }
                all
            }
            _ => return,
        };
        self.codec.set_inbox(Inbox::Sharded(all));
    }

    /// Whether it is subscribed to the lock's channel from now on.
    fn listen_to(
        &mut self,
        now: Time,
        lock: &Name,
        hold: HoldId,
        wanted: bool,
        silence: Duration,
    ) -> bool {
        match self.channels.used(now, lock, wanted, silence) {
            Use::Open => true,
            Use::Poll => false,
            Use::Subscribe => {
                if self.asking.contains(lock) {
                    self.say_asking();
                }
                let channel = self.codec.channel_of(lock);
                self.push(Awaited::Subscribed(lock.clone(), vec![hold]), |out| {
                    pack::words(out, &[&b"SSUBSCRIBE"[..], &channel]);
                });
                true
            }
        }
    }

    /// Which locks' channels are subscribed to.
    pub(super) fn channels(&mut self) -> &mut Channels {
        &mut self.channels
    }

    /// This user may subscribe to none: what is asked from now on says so.
    pub(super) fn refuse_channels(&mut self) {
        self.channels.refuse();
        self.codec.set_inbox(Inbox::Sharded(false));
    }

    /// A push says that a channel was opened or closed: whether it answers what was asked next.
    pub(super) fn confirmed(&mut self, opened: bool, lock: &Name) -> bool {
        let asked = match self.in_flight.front().map(|pending| &pending.what) {
            Some(Awaited::Subscribed(asked, _)) if opened => asked == lock,
            Some(Awaited::Unsubscribed(asked)) if !opened => asked == lock,
            _ => false,
        };
        if asked {
            self.in_flight.pop_front();
        }
        asked
    }

    /// Asks further on behalf of a request that was under way already.
    pub(super) fn ask_on(&mut self, awaited: Awaited, command: &Command) {
        self.push(awaited, |out| pack::command(out, command));
    }

    /// Loads a script that the server has forgotten; `request` is answered when it is there.
    pub fn load(&mut self, script: &Script, request: RequestId) {
        let waiting = self.in_flight.iter_mut().find_map(|pending| match &mut pending.what {
            Awaited::Script(sha, requests) if *sha == script.sha => Some(requests),
            _ => None,
        });
        match waiting {
            Some(requests) => requests.push(request),
            None => self.push(Awaited::Script(script.sha, vec![request]), |out| {
                pack::words(out, &["SCRIPT", "LOAD", script.text]);
            }),
        }
    }

    fn push(&mut self, what: Awaited, encode: impl FnOnce(&mut Vec<u8>)) {
        let start = self.outbox.push(encode);
        self.in_flight.push_back(Pending { start, what });
    }

    /// What the answer that has come is for; `None` when nobody asked.
    pub fn answered(&mut self) -> Option<Awaited> {
        let what = self.in_flight.pop_front()?.what;
        self.reading = match &what {
            Awaited::Request(request, _) | Awaited::Round(request, ..) => Some(*request),
            // Its answer is theirs.
            Awaited::Script(..)
            | Awaited::Asking
            | Awaited::Aside(_)
            | Awaited::Subscribed(..)
            | Awaited::Unsubscribed(_) => None,
        };
        Some(what)
    }

    /// The connection may be dead; so it is until the engine is passed an answer. A doubt that comes
    /// late is none, and false: the engine has been passed one since, or it will be, or the connection
    /// is another.
    pub fn doubt(&mut self, doubt: Doubt) -> bool {
        let owes = self.owes(doubt.owed);
        self.doubt_of(doubt, owes)
    }

    /// The same, where it may be that the answer is owed on a connection beside this one.
    pub fn doubt_of(&mut self, doubt: Doubt, owes: bool) -> bool {
        let counts = owes && self.told == doubt.heard;
        self.doubted |= counts;
        counts
    }

    /// Whether the answer to this request is owed.
    pub fn owes(&self, request: RequestId) -> bool {
        self.reading == Some(request) || self.awaits(request)
    }

    /// Whether the server has yet to answer this request.
    pub fn awaits(&self, request: RequestId) -> bool {
        self.in_flight.iter().any(|pending| pending.what.is_for(request))
    }

    /// The last release of this lock whose answer is owed.
    pub fn releases(&self, lock: &Name) -> Option<RequestId> {
        self.in_flight.iter().rev().find_map(|pending| match &pending.what {
            Awaited::Request(id, Op::Release(release)) if release.lock == *lock => Some(*id),
            _ => None,
        })
    }

    /// Whether the engine doubts the connection.
    pub fn is_doubted(&self) -> bool {
        self.doubted
    }

    /// The engine is about to be passed these. An answer ends its doubt, and so ours; before the engine
    /// hears it, so that a doubt that comes after it is not lost.
    pub fn tells(&mut self, events: &[Event]) {
        if let Some(told) = events.iter().rev().find_map(answered) {
            (self.told, self.doubted) = (Some(told), false);
        }
    }
}

/// Whose answer an event is; what is known without the server is none.
fn answered(event: &Event) -> Option<RequestId> {
    match event {
        Event::Reply { request, result: Ok(_) | Err(Failure::Refused(_)) } => Some(*request),
        _ => None,
    }
}
