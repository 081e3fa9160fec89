//! The client: both machines, as a host drives them.

use std::collections::BTreeMap;
use std::time::Duration;

use fencelock_engine::ClientId;
use fencelock_engine::redis::Node;
use fencelock_engine::redis::sentinel;
use fencelock_engine::redis::session::{self, NoSession, Protocol};
use fencelock_engine::time::Time;

use crate::clock::{Instant, MS, SEC};
use crate::sentinel::cast::NAME;

/// Where bytes go, and come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// To a Sentinel.
    Sentinel(usize),
    /// To the server that is connected to.
    Server,
}

/// What the client wants of the world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A connection; to which server, if it is to one.
    Dial(Wire, Option<Node>),
    /// Bytes on their way.
    Say(Wire, Vec<u8>),
    /// The connection is closed, or given up.
    Close(Wire),
    /// The session is up, or not any more.
    Up(bool),
}

/// The two machines.
pub struct Client {
    sentinels: sentinel::Machine,
    session: session::Machine,
    wishes: Vec<Wish>,
}

/// The client's clock.
pub fn at(now: Instant) -> Time {
    Time::ZERO + Duration::from_nanos(now)
}

impl Client {
    pub fn new(now: Instant, all: usize, seeds: [[u8; 32]; 2]) -> Client {
        let node = |at| Node { host: format!("s{at}"), port: 26379 };
        let limit = Duration::from_nanos(SEC);
        let (least, most) = (Duration::from_nanos(10 * MS), Duration::from_nanos(500 * MS));
        let asked = sentinel::Terms {
            sentinels: (0..all).map(node).collect(),
            master: NAME.to_owned(),
            login: None,
            protocol: Protocol::Auto,
            tls: false,
            replicas: false,
            map: BTreeMap::new(),
            connect_timeout: limit,
            backoff_min: least,
            backoff_max: most,
        };
        let terms = session::Terms {
            client: ClientId::new(7, "world").expect("a plain label"),
            prefix: "fl:".to_owned(),
            db: 0,
            protocol: Protocol::Auto,
            server: session::Server::Sought("the master".to_owned()),
            cluster: false,
            charter: None,
            sync: None,
            tls: false,
            connect_timeout: limit,
            backoff_min: least,
            backoff_max: most,
        };
        Client {
            sentinels: sentinel::Machine::new(at(now), asked, seeds[0]),
            session: session::Machine::new(at(now), terms, seeds[1]),
            wishes: Vec::new(),
        }
    }

    /// When either wants to be woken.
    pub fn next_wake(&self) -> Option<Time> {
        self.sentinels.next_wake().into_iter().chain(self.session.next_wake()).min()
    }

    pub fn wake(&mut self, now: Instant) -> Vec<Wish> {
        self.sentinels.wake(at(now));
        self.session.wake(at(now));
        self.settle(now)
    }

    pub fn dialled(&mut self, now: Instant, wire: Wire) -> Vec<Wish> {
        match wire {
            Wire::Sentinel(to) => self.sentinels.handle(at(now), sentinel::Input::Dialled(to)),
            Wire::Server => self.session.handle(at(now), session::Input::Dialled),
        }
        self.settle(now)
    }

    pub fn received(&mut self, now: Instant, wire: Wire, bytes: &[u8]) -> Vec<Wish> {
        match wire {
            Wire::Sentinel(to) => {
                self.sentinels.handle(at(now), sentinel::Input::Received(to, bytes));
            }
            Wire::Server => self.session.handle(at(now), session::Input::Received(bytes)),
        }
        self.settle(now)
    }

    pub fn failed(&mut self, now: Instant, wire: Wire) -> Vec<Wish> {
        let why = NoSession::Later("cut".to_owned());
        match wire {
            Wire::Sentinel(to) => self.sentinels.handle(at(now), sentinel::Input::Failed(to, why)),
            Wire::Server => self.session.handle(at(now), session::Input::Failed(why)),
        }
        self.settle(now)
    }

    /// The session that was up is gone.
    pub fn lost(&mut self, now: Instant) -> Vec<Wish> {
        self.sentinels.handle(at(now), sentinel::Input::With(None));
        self.session.handle(at(now), session::Input::Lost);
        self.settle(now)
    }

    /// The engine doubts the session that is up, or no longer.
    pub fn doubt(&mut self, now: Instant, doubted: bool) -> Vec<Wish> {
        self.session.handle(at(now), session::Input::Doubt(doubted));
        self.settle(now)
    }

    /// Passes on what one machine has to say to the other; gives what both want of the world.
    fn settle(&mut self, now: Instant) -> Vec<Wish> {
        loop {
            if let Some(output) = self.session.poll_output() {
                self.obey_session(now, output);
            } else if let Some(output) = self.sentinels.poll_output() {
                self.obey_sentinels(now, output);
            } else {
                return std::mem::take(&mut self.wishes);
            }
        }
    }

    fn obey_session(&mut self, now: Instant, output: session::Output) {
        use session::Output;
        let wish = match output {
            Output::Seek => {
                return self.sentinels.handle(at(now), sentinel::Input::Seek);
            }
            Output::Login => return self.session.handle(at(now), session::Input::Login(None)),
            Output::Dial(_, node) => Wish::Dial(Wire::Server, node),
            Output::Say(_, bytes) => Wish::Say(Wire::Server, bytes),
            Output::Abandon => Wish::Close(Wire::Server),
            Output::GiveUp(_) => {
                self.sentinels.handle(at(now), sentinel::Input::With(None));
                Wish::Up(false)
            }
            Output::Up(session) => {
                self.sentinels.handle(at(now), sentinel::Input::With(session.node));
                Wish::Up(true)
            }
            Output::Event(_) | Output::Note(_) => return,
        };
        self.wishes.push(wish);
    }

    fn obey_sentinels(&mut self, now: Instant, output: sentinel::Output) {
        use sentinel::Output;
        let input = match output {
            Output::Dial(to) => return self.wishes.push(Wish::Dial(Wire::Sentinel(to), None)),
            Output::Say(to, bytes) => {
                return self.wishes.push(Wish::Say(Wire::Sentinel(to), bytes));
            }
            Output::Close(to) => return self.wishes.push(Wish::Close(Wire::Sentinel(to))),
            Output::Found(node) => session::Input::Found(node),
            Output::Nobody(why) => session::Input::Failed(why),
            // Nobody asks for these.
            Output::Replicas(_) => return,
            Output::Moved(reason) => session::Input::Moved(reason),
        };
        self.session.handle(at(now), input);
    }
}
