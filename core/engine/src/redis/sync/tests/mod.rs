//! A server of a few words, and what replicas are to confirm before it.

mod batches;
mod ends;
mod topology;

use std::cell::RefCell;
use std::time::Duration;

use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::redis::session::tests::Reads;
use crate::redis::session::{Asked, Guarded, Hearing};
use crate::redis::sync::{Confirming, Naming, Replicas, Terms};
use crate::redis::{Codec, Inbox};
use crate::reply::{Body, Failure, Standing};
use crate::request::{Acquire, Beat, Op, Release, Request, RequestId};
use crate::time::Time;

pub(super) const SECOND: Duration = Duration::from_secs(1);
const GRANTED: &str = "*5\r\n:1700000000000000\r\n:0\r\n:5\r\n:1028\r\n:30000000\r\n";
const QUEUED: &str = "*3\r\n:1700000000000000\r\n:1\r\n:4\r\n";

pub(super) fn terms(replicas: Replicas, naming: Naming) -> Terms {
    Terms { replicas, naming, timeout: SECOND, disk: false }
}

pub(super) fn codec() -> Codec {
    Codec::new(ClientId::new(7, "test").unwrap(), "fl:").unwrap()
}

pub(super) fn acquire(lock: &str, lease: Duration) -> Op {
    Op::Acquire(Acquire::new(Name::new(lock).unwrap(), HoldId(1 << 64), lease, 0))
}

pub(super) fn beat(leases: &[u64]) -> Op {
    let beat =
        |seconds| Beat::new(Name::new("x").unwrap(), HoldId(1 << 64), Duration::from_secs(seconds));
    Op::Beat(leases.iter().copied().map(beat).collect())
}

pub(super) fn release(lock: &str) -> Op {
    Op::Release(Release::new(Name::new(lock).unwrap(), HoldId(2 << 64), 0))
}

struct Host<'a>(&'a RefCell<Confirming>);

impl Guarded for Host<'_> {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        act(self.0.borrow_mut().asked())
    }
}

/// A master that does what it is asked, and whose replicas do as a test wants.
pub(super) struct World {
    pub now: Time,
    pub confirming: RefCell<Confirming>,
    /// What is asked on the ordinary connection.
    pub main: Asked,
    hearing: Hearing,
    reads: Reads,
    /// Of those that asked to wait; others are granted what they ask.
    pub queues: bool,
    /// How many replicas have it.
    pub replicas: u32,
    /// How many ROLE names, and, with their masters, who is in the cluster.
    pub role: usize,
    pub nodes: &'static str,
    /// Nothing is answered to WAIT.
    pub mute: bool,
    /// What left, in words.
    pub left: Vec<String>,
    pub events: Vec<Event>,
    next: u64,
}

impl World {
    pub fn new(terms: Terms, named: u32) -> World {
        let mut confirming = Confirming::new(terms, codec());
        confirming.begin(Inbox::Subscribed, named);
        let greeted = crate::redis::session::tests::greeted();
        World {
            now: Time::ZERO,
            confirming: RefCell::new(confirming),
            main: Asked::new(codec()),
            hearing: Hearing::new(Time::ZERO, codec(), greeted, None).beside(),
            reads: Reads::default(),
            queues: false,
            replicas: 0,
            role: 0,
            nodes: "",
            mute: false,
            left: Vec::new(),
            events: Vec::new(),
            next: 0,
        }
    }

    pub fn ask(&mut self, op: Op) -> RequestId {
        self.next += 1;
        let id = RequestId(self.next);
        match Confirming::takes(&op) {
            true => self.confirming.borrow_mut().ask(Request { id, op }, &self.main),
            false => self.main.ask(self.now, Request { id, op }),
        }
        id
    }

    /// What has gathered leaves, and its answers come.
    pub fn run(&mut self) {
        self.leave();
        self.come();
    }

    fn leave(&mut self) {
        self.confirming.borrow_mut().advance(self.now, &self.main);
    }

    fn come(&mut self) {
        let bytes = self.confirming.borrow_mut().outbox().take();
        let mut answers = String::new();
        for words in self.reads.commands(&bytes) {
            answers += &self.answer(&words);
            self.left.push(match words[0].as_str() {
                "EVALSHA" => "script".to_owned(),
                _ => words.join(" "),
            });
        }
        self.hear(&answers);
    }

    pub fn hear(&mut self, answers: &str) {
        let host = Host(&self.confirming);
        self.hearing.receive(self.now, answers.as_bytes(), &host).unwrap();
        let came = std::mem::take(&mut self.hearing.events);
        let aside = std::mem::take(&mut self.hearing.aside);
        let passed = self.confirming.borrow_mut().hear(came, aside);
        self.events.extend(passed);
    }

    fn answer(&self, words: &[String]) -> String {
        match words[0].as_str() {
            "EVALSHA" if self.queues => QUEUED.to_owned(),
            "EVALSHA" if !is_beat(words) => GRANTED.to_owned(),
            "EVALSHA" => {
                let state = GRANTED.replacen("*5\r\n:1700000000000000", "*4", 1);
                format!("*2\r\n:1700000000000000\r\n{state}")
            }
            "WAIT" | "WAITAOF" if self.mute => String::new(),
            "WAIT" => format!(":{}\r\n", self.replicas),
            "WAITAOF" => format!("*2\r\n:0\r\n:{}\r\n", self.replicas),
            "ROLE" => format!(
                "*3\r\n$6\r\nmaster\r\n:5\r\n*{}\r\n{}",
                self.role,
                "*0\r\n".repeat(self.role)
            ),
            "CLUSTER" => format!("${}\r\n{}\r\n", self.nodes.len(), self.nodes),
            word => panic!("{word}"),
        }
    }

    pub fn end(&mut self) {
        self.confirming.borrow_mut().end(&mut self.events);
    }

    /// What was answered, in order, and forgets it.
    pub fn said(&mut self) -> Vec<(u64, Result<Standing, Failure>)> {
        let said = |event| match event {
            Event::Reply { request, result } => {
                let standing = result.map(|reply| match reply.body {
                    Body::Acquire(state) | Body::Convert(state) => state.standing,
                    Body::Beat(states) => states[0].as_ref().unwrap().standing,
                    body => panic!("{body:?}"),
                });
                (request.0, standing)
            }
            event => panic!("{event:?}"),
        };
        self.events.drain(..).map(said).collect()
    }
}

fn is_beat(words: &[String]) -> bool {
    let script = Codec::scripts().iter().find(|script| script.sha == words[1]);
    script.is_some_and(|script| script.name == "beat")
}
