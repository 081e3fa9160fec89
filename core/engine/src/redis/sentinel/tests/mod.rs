//! Sentinels that say what a test wants, and a host that moves the bytes between them and the machine.

mod believing;
mod lines;
mod world;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::redis::Node;
use crate::redis::sentinel::{Input, Machine, Output, Terms};
use crate::redis::session::tests::Reads;
use crate::redis::session::{NoSession, Protocol};
use crate::time::Time;

pub(super) const MILLI: Duration = Duration::from_millis(1);

pub(super) fn server(number: u64) -> Node {
    Node { host: format!("10.0.0.{number}"), port: 6379 }
}

/// One Sentinel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sentinel {
    /// Says that this server is the master since this epoch.
    Says { epoch: u64, master: u64 },
    /// The leader of a failover, whose own list has still the old address: epoch, new master, old one.
    Leads { epoch: u64, master: u64, old: u64 },
    /// Knows no such master.
    Knows,
    /// Wants a password.
    Closed,
    /// Is a Redis server, and no Sentinel.
    Server,
    /// Takes connections and answers nothing.
    Silent,
    /// Cannot be reached.
    Away,
}

impl Sentinel {
    fn answer(self, words: &[String]) -> String {
        let Some((epoch, master, listed)) = (match self {
            Sentinel::Says { epoch, master } => Some((epoch, master, master)),
            Sentinel::Leads { epoch, master, old } => Some((epoch, master, old)),
            _ => None,
        }) else {
            return match (self, words[0].as_str(), words.get(1).map(String::as_str)) {
                (Sentinel::Closed, ..) => "-NOAUTH Authentication required.\r\n".to_owned(),
                (_, "HELLO", _) => "%0\r\n".to_owned(),
                (_, "SUBSCRIBE", _) => subscribed(),
                (Sentinel::Server, ..) => "-ERR unknown command 'SENTINEL'\r\n".to_owned(),
                (_, "SENTINEL", Some("MASTER" | "REPLICAS")) => {
                    "-ERR No such master with that name\r\n".to_owned()
                }
                _ => "*-1\r\n".to_owned(),
            };
        };
        match (words[0].as_str(), words.get(1).map(String::as_str)) {
            ("HELLO", _) => "%0\r\n".to_owned(),
            ("SUBSCRIBE", _) => subscribed(),
            ("SENTINEL", Some("REPLICAS")) => "*2\r\n%0\r\n%0\r\n".to_owned(),
            ("SENTINEL", Some("MASTER")) => {
                let listed = server(listed).host;
                let fields = ["name", "shop", "ip", &listed, "config-epoch", &epoch.to_string()];
                let fields = fields.map(|field| format!("${}\r\n{field}\r\n", field.len()));
                format!("%3\r\n{}", fields.concat())
            }
            _ => {
                let host = server(master).host;
                format!("*2\r\n${}\r\n{host}\r\n$4\r\n6379\r\n", host.len())
            }
        }
    }
}

fn subscribed() -> String {
    ">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n".to_owned()
}

/// What the machine said last, in the order it said so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Found(Node),
    Nobody(String),
    Misconfigured(String),
    Moved,
}

/// What stands between the machine and one Sentinel.
#[derive(Default)]
enum Wire {
    #[default]
    None,
    Dialled,
    Open(Reads),
}

/// A host.
pub(super) struct Host {
    pub now: Time,
    pub machine: Machine,
    pub sentinels: Vec<Sentinel>,
    wires: Vec<Wire>,
    pub said: Vec<Said>,
    /// How many connections were asked for.
    pub dials: usize,
    /// How many replicas were named, one after the other.
    pub replicas: Vec<u32>,
}

impl Host {
    pub fn new(sentinels: &[Sentinel]) -> Host {
        Host::behind_nat(sentinels, BTreeMap::new())
    }

    pub fn behind_nat(sentinels: &[Sentinel], map: BTreeMap<Node, Node>) -> Host {
        let terms = Terms {
            sentinels: (0..sentinels.len())
                .map(|at| Node { host: format!("s{at}"), port: 26379 })
                .collect(),
            master: "shop".to_owned(),
            login: None,
            protocol: Protocol::Auto,
            tls: false,
            replicas: true,
            map,
            connect_timeout: 5_000 * MILLI,
            backoff_min: 10 * MILLI,
            backoff_max: 1_000 * MILLI,
        };
        let mut host = Host {
            now: Time::ZERO,
            machine: Machine::new(Time::ZERO, terms, [5; 32]),
            sentinels: sentinels.to_vec(),
            wires: sentinels.iter().map(|_| Wire::None).collect(),
            said: Vec::new(),
            dials: 0,
            replicas: Vec::new(),
        };
        host.run();
        host
    }

    pub fn seek(&mut self) {
        self.machine.handle(self.now, Input::Seek);
        self.run();
    }

    pub fn session(&mut self, number: Option<u64>) {
        self.machine.handle(self.now, Input::With(number.map(server)));
        self.run();
    }

    /// Does all that the machine wants now.
    pub fn run(&mut self) {
        loop {
            while let Some(output) = self.machine.poll_output() {
                self.obey(output);
            }
            let dialled = self.wires.iter().position(|wire| matches!(wire, Wire::Dialled));
            let Some(at) = dialled else { return };
            match self.sentinels[at] {
                Sentinel::Away => {
                    self.wires[at] = Wire::None;
                    let why = NoSession::Later("refused".to_owned());
                    self.machine.handle(self.now, Input::Failed(at, why));
                }
                _ => {
                    self.wires[at] = Wire::Open(Reads::default());
                    self.machine.handle(self.now, Input::Dialled(at));
                }
            }
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Dial(at) => {
                assert!(matches!(self.wires[at], Wire::None), "there is one already");
                self.wires[at] = Wire::Dialled;
                self.dials += 1;
            }
            Output::Say(at, bytes) => {
                let Wire::Open(reads) = &mut self.wires[at] else { panic!("no connection") };
                let commands = reads.commands(&bytes);
                let sentinel = self.sentinels[at];
                if sentinel == Sentinel::Silent {
                    return;
                }
                let answers: String = commands.iter().map(|words| sentinel.answer(words)).collect();
                self.hear(at, &answers);
            }
            Output::Close(at) => self.wires[at] = Wire::None,
            Output::Found(node) => self.said.push(Said::Found(node)),
            Output::Nobody(NoSession::Later(why)) => self.said.push(Said::Nobody(why)),
            Output::Nobody(NoSession::Misconfigured(error)) => {
                self.said.push(Said::Misconfigured(error.message().to_owned()));
            }
            Output::Replicas(count) => self.replicas.push(count),
            Output::Moved(reason) => {
                assert!(reason.contains("'shop'"), "{reason}");
                self.said.push(Said::Moved);
            }
        }
    }

    /// These bytes come from a Sentinel, cut anywhere.
    pub fn hear(&mut self, at: usize, bytes: &str) {
        for byte in bytes.as_bytes().chunks(7) {
            self.machine.handle(self.now, Input::Received(at, byte));
        }
    }

    /// It tells that there was a failover.
    pub fn switch(&mut self, at: usize, text: &str) {
        if matches!(self.wires[at], Wire::Open(_)) {
            let message = format!("${}\r\n{text}\r\n", text.len());
            self.hear(at, &format!(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n{message}"));
            self.run();
        }
    }

    /// The connection to it breaks.
    pub fn cut(&mut self, at: usize) {
        if !matches!(self.wires[at], Wire::None) {
            self.wires[at] = Wire::None;
            self.machine.handle(self.now, Input::Failed(at, NoSession::Later("cut".to_owned())));
            self.run();
        }
    }

    /// So much time passes.
    pub fn pass(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(wake) = self.machine.next_wake().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            self.machine.wake(self.now);
            self.run();
        }
        self.now = end;
    }

    pub fn said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }
}
