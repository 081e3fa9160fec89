//! Scripted conversations: what ZooKeeper answers is written out, call by call.

mod acquire;
mod errors;
mod leave;
mod modes;
mod names;
mod next;
mod owner;
mod permits;
mod query;
mod said;
mod session;
mod simple;
mod turn;
mod unwatch;

use std::time::Duration;

use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::reply::{Body, Failure, Push, Released, Reply, State};
use crate::request::{Acquire, Beat, Op, Release, Request, RequestId, Wait};
use crate::time::Time;
use crate::zookeeper::name::{Kind, node_stem};
use crate::zookeeper::{
    Call, Change, Input, Machine, Options, Output, Recipe, Stat, ZkError, ZkOp, ZkReply,
};

const SESSION: i64 = 7;
const TIMEOUT: Duration = Duration::from_secs(6);
const LOCK: &str = "/shop/cart";

/// Of every token that is given here a holder has been told.
const USED: u64 = u64::MAX;

type Result = std::result::Result<ZkReply, ZkError>;

/// A machine, and one who writes ZooKeeper's part.
struct Talk {
    machine: Machine,
    now: Time,
    calls: Vec<Call>,
    events: Vec<Event>,
    /// What was last looked at.
    seen: Vec<Event>,
    /// The nodes that nobody waits for any more.
    unwatched: Vec<String>,
    /// How many batches left since the last look.
    batches: usize,
    requests: u64,
    said: said::Said,
}

fn hold(number: u128) -> HoldId {
    HoldId(0xabc0_0000_0000_0000_0000_0000_0000_0000 + number)
}

fn name() -> Name {
    Name::new("shop/cart").unwrap()
}

/// The name of a hold's node.
fn node(number: u128, sequence: i32) -> String {
    node_of(number, sequence, Kind::Lock)
}

fn node_of(number: u128, sequence: i32, kind: Kind) -> String {
    node_stem(LOCK, hold(number), kind).rsplit('/').next().unwrap().to_owned()
        + &format!("{sequence:010}")
}

fn path(name: &str) -> String {
    format!("{LOCK}/{name}")
}

fn created(number: u128, sequence: i32, czxid: i64) -> Result {
    made(&node(number, sequence), czxid)
}

fn made(name: &str, czxid: i64) -> Result {
    let stat = Stat { czxid, ephemeral_owner: SESSION, ..Stat::default() };
    Ok(ZkReply::Created { path: path(name), stat })
}

fn children(names: &[&str]) -> Result {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Ok(ZkReply::Children { names, stat: Stat::default() })
}

fn data(text: &str) -> Result {
    Ok(ZkReply::Data { data: text.as_bytes().to_vec(), stat: Stat::default() })
}

fn exists(stat: Stat) -> Result {
    Ok(ZkReply::Exists(Some(stat)))
}

fn done() -> Result {
    Ok(ZkReply::Done)
}

fn lost() -> Result {
    Err(ZkError::ConnectionLoss)
}

impl Talk {
    fn new() -> Talk {
        Talk::with(Recipe::Queue)
    }

    /// Connected, with the first round trip through the leader under way.
    fn with(recipe: Recipe) -> Talk {
        let options = Options { recipe, ..Options::default() };
        let client = ClientId::new(5, "tests").unwrap();
        let machine = Machine::new(options, client).unwrap();
        let now = Time::from_nanos(1_000_000_000_000);
        let mut talk = Talk {
            machine,
            now,
            calls: Vec::new(),
            events: Vec::new(),
            seen: Vec::new(),
            unwatched: Vec::new(),
            batches: 0,
            requests: 0,
            said: said::Said::new(),
        };
        talk.connect(SESSION);
        assert!(matches!(talk.events(), [Event::Up { .. }]));
        talk.answer_sync(done());
        talk
    }

    fn connect(&mut self, session: i64) {
        let input =
            Input::Connected { session, timeout: TIMEOUT, since: self.now, wall: 1_700_000_000 };
        self.hear(input);
    }

    /// An acquire whose calls nobody answered, on the next connection.
    fn unanswered() -> Talk {
        let mut talk = Talk::new();
        talk.acquire(1, true);
        talk.answer([lost(), lost(), lost()]);
        talk.reattach();
        talk.calls.clear();
        talk.events();
        talk
    }

    /// The connection goes and comes back, with a round trip through the leader.
    fn reattach(&mut self) {
        self.hear(Input::Disconnected { reason: String::new() });
        self.hear(Input::Reattached);
        self.answer_sync(done());
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            self.said.output(&output);
            match output {
                Output::Calls(calls) => {
                    self.batches += 1;
                    self.calls.extend(calls);
                }
                Output::Event(event) => self.events.push(event),
                Output::Unwatch { path } => self.unwatched.push(path),
                Output::Reconnect => {}
            }
        }
        self.said.wake(self.machine.next_wake());
    }

    fn hear(&mut self, input: Input) {
        self.said.input(self.now, &format!("{input:?}"));
        self.machine.handle(self.now, input);
        self.drain();
    }

    fn fired(&mut self, path: String, what: Change) {
        self.hear(Input::Fired { path, what });
    }

    /// Time passes, and what is due is done.
    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.said.input(self.now, "woken");
        self.machine.wake(self.now);
        self.drain();
    }

    fn ask(&mut self, op: Op) -> RequestId {
        self.requests += 1;
        let id = RequestId(self.requests);
        self.said.input(self.now, &format!("request {}: {op:?}", self.requests));
        self.machine.request(self.now, Request { id, op });
        self.drain();
        id
    }

    fn acquire(&mut self, number: u128, waits: bool) -> RequestId {
        let wait =
            Wait { ticket: 0, claim: Duration::from_secs(3), silence: Duration::from_secs(3) };
        self.ask(Op::Acquire(Acquire {
            wait: waits.then_some(wait),
            ..Acquire::new(name(), hold(number), TIMEOUT, u64::MAX)
        }))
    }

    fn release(&mut self, number: u128, told: bool, lost: bool) -> RequestId {
        self.ask(Op::Release(Release { told, lost, ..Release::new(name(), hold(number), USED) }))
    }

    /// Another hold waits, and what one is left with goes along.
    fn release_and_wait(&mut self, old: u128, number: u128) -> RequestId {
        let wait = Some(Wait { ticket: 0, claim: TIMEOUT, silence: TIMEOUT });
        let after = Some(Release::new(name(), hold(old), USED));
        let ask = Acquire::new(name(), hold(number), TIMEOUT, u64::MAX);
        self.ask(Op::Acquire(Acquire { wait, after, ..ask }))
    }

    fn beat(&mut self, number: u128) -> RequestId {
        let beat = Beat::new(name(), hold(number), TIMEOUT);
        self.ask(Op::Beat(vec![beat]))
    }

    /// What is asked of ZooKeeper and not answered.
    fn ops(&self) -> Vec<&ZkOp> {
        self.calls.iter().map(|call| &call.op).collect()
    }

    /// Answers the calls under way, in their order.
    fn answer(&mut self, results: impl IntoIterator<Item = Result>) {
        let calls = std::mem::take(&mut self.calls);
        let mut results = results.into_iter();
        for call in calls {
            let result = results.next().unwrap_or_else(|| panic!("no answer to {:?}", call.op));
            self.hear(Input::Result { call: call.id, result });
        }
        assert!(results.next().is_none(), "more answers than calls");
    }

    /// Answers the round trips through the leader that are under way, and nothing else.
    fn answer_sync(&mut self, result: Result) {
        let is_pace = |call: &Call| matches!(&call.op, ZkOp::Sync { path } if path == "/");
        while let Some(at) = self.calls.iter().position(is_pace) {
            let call = self.calls.remove(at);
            self.hear(Input::Result { call: call.id, result: result.clone() });
        }
    }

    /// What the engine was told since the last look.
    fn events(&mut self) -> &[Event] {
        self.seen = std::mem::take(&mut self.events);
        &self.seen
    }

    fn reply(&mut self, request: RequestId) -> std::result::Result<Body, Failure> {
        for event in self.events() {
            if let Event::Reply { request: id, result } = event
                && *id == request
            {
                return result.clone().map(|Reply { body, .. }| body);
            }
        }
        panic!("no reply");
    }

    fn state(&mut self, request: RequestId) -> State {
        match self.reply(request) {
            Ok(Body::Acquire(state)) => state,
            Ok(Body::Beat(mut states)) => states.remove(0).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    fn released(&mut self, request: RequestId) -> Released {
        match self.reply(request) {
            Ok(Body::Release(released)) => released,
            other => panic!("{other:?}"),
        }
    }

    fn pushes(&mut self) -> Vec<Push> {
        let pushes = self.events().iter().filter_map(|event| match event {
            Event::Push(push) => Some(push.clone()),
            _ => None,
        });
        pushes.collect()
    }

    /// A hold that is granted, as the only one.
    fn held(number: u128, sequence: i32) -> Talk {
        let mut talk = Talk::new();
        let request = talk.acquire(number, true);
        talk.answer([
            created(number, sequence, 100),
            children(&[&node(number, sequence)]),
            data(""),
        ]);
        assert_eq!(talk.state(request).token, 100 * 1024);
        talk
    }

    /// A waiter behind the holder with number 1 and sequence number 4.
    fn waiting(number: u128, sequence: i32) -> Talk {
        let mut talk = Talk::new();
        talk.acquire(number, true);
        let names = [node(1, 4), node(number, sequence)];
        talk.answer([
            created(number, sequence, 100),
            children(&[&names[0], &names[1]]),
            data("fencelock 1 held 4 1"),
        ]);
        talk.answer([data("fencelock 1 6000 00 other")]);
        talk.events();
        talk
    }
}
