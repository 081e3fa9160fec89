//! The machine before servers that keep the rules, each answering when it is told to.

mod acquire;
mod hold;
mod link;
mod query;

use std::collections::VecDeque;
use std::time::Duration;

use crate::error::ErrorKind;
use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::options::Options;
use crate::quorum::{Config, Input, Machine, Output};
use crate::reply::{Body, Failure, Push, Refusal, Released, Reply, Standing, State};
use crate::request::{Acquire, Beat, Op, Release, Request, RequestId, Wait};
use crate::store::{Announce, Caller, Delivery, Record};
use crate::time::Time;

const MS: Duration = Duration::from_millis(1);
const LEASE: Duration = Duration::from_secs(10);
/// What the servers' clocks read at the beginning.
const EPOCH: u64 = 1_000_000_000;

/// One server: a lock, and the requests that have arrived.
struct Server {
    record: Record,
    ahead: u64,
    arrived: VecDeque<Request>,
}

/// A machine of client 1, and three servers that others may use beside it.
struct Talk {
    machine: Machine,
    now: Time,
    servers: Vec<Server>,
    events: Vec<Event>,
    requests: u64,
    doubts: Vec<usize>,
}

#[derive(Default)]
struct Heard(Vec<(String, Push)>);

impl Announce for Heard {
    fn announce(&mut self, client: &str, push: Push) -> Delivery {
        self.0.push((client.to_owned(), push));
        Delivery::Delivered
    }
}

fn client(number: u64) -> Caller {
    Caller { client: ClientId::new(number, "").unwrap(), polling: false }
}

fn hold(number: u128) -> HoldId {
    HoldId(number << 64)
}

fn name() -> Name {
    Name::new("cart").unwrap()
}

fn config(servers: &[&str]) -> Config {
    let options = Options { max_lease: Duration::from_secs(60), ..Options::default() };
    Config::new(servers.iter().map(|&it| it.to_owned()).collect(), &options)
}

impl Talk {
    fn idle() -> Talk {
        let server = |ahead| Server { record: Record::default(), ahead, arrived: VecDeque::new() };
        Talk {
            machine: Machine::new(config(&["a", "b", "c"]), [7; 32]).unwrap(),
            now: Time::ZERO + MS,
            servers: vec![server(0), server(0), server(0)],
            events: Vec::new(),
            requests: 0,
            doubts: Vec::new(),
        }
    }

    /// All servers are up, and old enough.
    fn new() -> Talk {
        let mut talk = Talk::idle();
        for server in 0..3 {
            talk.up(server, Duration::ZERO);
        }
        assert_eq!(talk.events(), [Event::Up { now: talk.read(0) }]);
        talk
    }

    fn read(&self, server: usize) -> u64 {
        EPOCH + self.servers[server].ahead + self.now.as_nanos() / 1_000
    }

    fn up(&mut self, server: usize, wait: Duration) {
        let now = self.read(server);
        self.tell(server, Input::Up { now, wait });
    }

    fn down(&mut self, server: usize) {
        self.servers[server].arrived.clear();
        self.tell(server, Input::Event(Event::Down { reason: "cut".to_owned() }));
    }

    fn tell(&mut self, server: usize, input: Input) {
        self.machine.handle(self.now, server, input);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send(server, request) => self.servers[server].arrived.push_back(request),
                Output::Reconnect(server, _) => self.doubts.push(server),
                Output::Event(event) => self.events.push(event),
            }
        }
    }

    /// What the engine was told since it was last asked.
    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(wake) = self.machine.next_wake().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.machine.wake(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn ask(&mut self, op: Op) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.machine.request(self.now, Request { id, op });
        self.drain();
        id
    }

    fn acquire(&mut self, number: u128, wait: bool) -> RequestId {
        let claim = Duration::from_secs(3);
        let wait = wait.then_some(Wait { ticket: 0, claim, silence: claim });
        let ask = Acquire { wait, ..Acquire::new(name(), hold(number), LEASE, u64::MAX) };
        self.ask(Op::Acquire(ask))
    }

    fn beat(&mut self, number: u128, used: u64) -> RequestId {
        self.ask(Op::Beat(vec![Beat { used, ..Beat::new(name(), hold(number), LEASE) }]))
    }

    fn release(&mut self, number: u128, used: u64) -> RequestId {
        self.ask(Op::Release(Release::new(name(), hold(number), used)))
    }

    /// A server answers the oldest request that has arrived there; it was this.
    fn serve(&mut self, server: usize) -> Op {
        let (request, result) = self.execute(server);
        let id = request.id;
        self.tell(server, Input::Event(Event::Reply { request: id, result }));
        request.op
    }

    /// It carries it out, and says nothing.
    fn execute(&mut self, server: usize) -> (Request, Result<Reply, Failure>) {
        let request = self.servers[server].arrived.pop_front().expect("nothing has arrived");
        let (result, said) = self.apply(server, &client(1), &request.op);
        for (to, push) in said {
            if to == client(1).client.id() {
                self.tell(server, Input::Event(Event::Push(push)));
            }
        }
        (request, result)
    }

    fn apply(
        &mut self,
        server: usize,
        caller: &Caller,
        op: &Op,
    ) -> (Result<Reply, Failure>, Vec<(String, Push)>) {
        let now = self.read(server);
        let record = &mut self.servers[server].record;
        let mut heard = Heard::default();
        let body = match op {
            Op::Acquire(ask) => {
                Body::Acquire(record.acquire(now, caller, ask, &mut heard).unwrap())
            }
            Op::Beat(beats) => Body::Beat(
                beats.iter().map(|it| record.beat(now, caller, it, &mut heard)).collect(),
            ),
            Op::Release(release) => Body::Release(record.release(now, release, &mut heard)),
            Op::Break(what) => Body::Break(record.break_lock(now, what, &mut heard)),
            Op::Inspect(name) => Body::Inspect(Some(record.inspect(now, name))),
            Op::List { .. } => Body::List(vec![name()]),
            _ => Body::Time,
        };
        (Ok(Reply { now, body }), heard.0)
    }

    /// Another client takes a server's vote.
    fn taken(&mut self, server: usize, number: u128) {
        let not_after = self.read(server) + 1_000_000;
        let ask = Acquire::new(name(), hold(number), LEASE, not_after);
        let (result, _) = self.apply(server, &client(2), &Op::Acquire(ask));
        let state = acquired(result);
        assert_eq!(state.standing, Standing::Granted);
    }

    /// And gives it back.
    fn freed(&mut self, server: usize, number: u128) {
        let release = Op::Release(Release::new(name(), hold(number), u64::MAX >> 12));
        let (_, said) = self.apply(server, &client(2), &release);
        for (to, push) in said {
            assert_eq!(to, client(1).client.id());
            self.tell(server, Input::Event(Event::Push(push)));
        }
    }

    /// All that has arrived anywhere is answered.
    fn serve_all(&mut self) {
        while let Some(server) = (0..3).find(|at| !self.servers[*at].arrived.is_empty()) {
            self.serve(server);
        }
    }

    /// A hold that has the votes of all.
    fn held(&mut self, number: u128) -> State {
        let id = self.acquire(number, true);
        self.serve_all();
        let state = self.granted(id);
        self.events();
        state
    }

    /// The answer to an acquire, or to a beat of one.
    fn granted(&mut self, id: RequestId) -> State {
        let state = self.state(id);
        assert_eq!(state.standing, Standing::Granted);
        state
    }

    fn state(&mut self, id: RequestId) -> State {
        match self.reply(id).expect("an answer") {
            Ok(Body::Acquire(state)) => state,
            Ok(Body::Beat(states)) => states[0].clone().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, id: RequestId) -> Refusal {
        match self.reply(id).expect("an answer") {
            Err(Failure::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    /// What a request of the engine's was answered with, if it was.
    fn reply(&mut self, id: RequestId) -> Option<Result<Body, Failure>> {
        let is_it = |event: &Event| matches!(event, Event::Reply { request, .. } if *request == id);
        let at = self.events.iter().position(is_it)?;
        match self.events.remove(at) {
            Event::Reply { result, .. } => Some(result.map(|reply| reply.body)),
            _ => None,
        }
    }

    fn nothing_is_left(&mut self) {
        #[cfg(feature = "plant")]
        assert_eq!(self.machine.leftovers(), []);
        for server in &self.servers {
            assert!(server.record.holds.is_empty() && server.record.waiters.is_empty());
        }
    }
}

fn acquired(result: Result<Reply, Failure>) -> State {
    match result.unwrap().body {
        Body::Acquire(state) => state,
        other => panic!("{other:?}"),
    }
}
