//! Channels of locks, as a server of a cluster with version 7 has them.

use std::cell::RefCell;
use std::time::Duration;

use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::redis::session::tests::{Reads, script};
use crate::redis::session::{Asked, Greeted, Guarded, Heard, Hearing, Incoming};
use crate::redis::{Codec, Inbox};
use crate::reply::Push;
use crate::request::{Acquire, Beat, Op, Request, RequestId, Wait};
use crate::secret::Secrets;
use crate::time::Time;

const START: Time = Time::from_nanos(0);
const GRANTED: &str = "*6\r\n:1700000000000000\r\n:0\r\n:5\r\n:9\r\n:1000000\r\n:0\r\n";
const QUEUED: &str = "*7\r\n:1700000000000000\r\n:1\r\n:5\r\n:-1\r\n:0\r\n:9\r\n:0\r\n";
const BEATEN: &str = "*2\r\n:1700000000000000\r\n*6\r\n:1\r\n:5\r\n:-1\r\n:0\r\n:9\r\n:0\r\n";

struct Host(RefCell<Asked>);

impl Guarded for Host {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        act(&mut self.0.borrow_mut())
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn codec() -> Codec {
    Codec::new(ClientId::new(7, "test").unwrap(), "fl:").unwrap().in_cluster()
}

fn acquire(lock: &str, waits: bool) -> Op {
    let ask = Acquire::new(name(lock), HoldId(7), Duration::from_secs(1), 7);
    let span = Duration::from_secs(3);
    let wait = waits.then_some(Wait { ticket: 0, claim: span, silence: span });
    Op::Acquire(Acquire { wait, ..ask })
}

fn beat(lock: &str) -> Op {
    Op::Beat(vec![Beat::new(name(lock), HoldId(7), Duration::from_secs(1))])
}

/// A push about a channel.
fn push(kind: &str, lock: &str, last: &str) -> String {
    let channel = String::from_utf8(codec().channel_of(&name(lock))).unwrap();
    format!(">3\r\n${}\r\n{kind}\r\n${}\r\n{channel}\r\n{last}", kind.len(), channel.len())
}

/// A connection, whose server answers as it is told.
struct World {
    host: Host,
    hearing: Hearing,
    reads: Reads,
    next: u64,
}

impl World {
    fn new() -> World {
        let inbox = Inbox::Sharded(true);
        let host = Host(RefCell::new(Asked::new(codec())));
        host.with(|asked| asked.begin(inbox));
        let greeted = Greeted {
            replicas: 0,
            resp3: true,
            inbox,
            denied: None,
            now: 1_700_000_000_000_000,
            incoming: Incoming::default(),
            early: Vec::new(),
            secrets: Secrets::default(),
            birth: None,
        };
        let mut codec = codec();
        codec.set_inbox(inbox);
        let hearing = Hearing::new(START, codec, greeted, None).in_cluster();
        let mut world = World { host, hearing, reads: Reads::default(), next: 0 };
        world.hear("");
        world
    }

    /// What leaves when this is asked after so many seconds: scripts by their names, with what they are
    /// told of the subscription.
    fn ask(&mut self, after: u64, op: Op) -> Vec<String> {
        let (now, id) = (START + Duration::from_secs(after), RequestId(self.next));
        self.next += 1;
        let flag = if matches!(op, Op::Beat(_)) { 1 } else { 5 };
        self.host.with(|asked| asked.ask(now, Request { id, op }));
        let bytes = self.host.with(|asked| asked.outbox().take());
        let said = self.reads.commands(&bytes).into_iter().map(|words| match words[0].as_str() {
            "EVALSHA" => {
                assert!(Codec::sharded_scripts().iter().any(|it| it.sha == words[1]));
                let args = 3 + words[2].parse::<usize>().unwrap();
                let polls = words[args + flag].parse::<u64>().unwrap() % 2 == 1;
                let how = if polls { "polls" } else { "listens" };
                format!("{} {how}", script(&words[1]).name)
            }
            _ => words.join(" "),
        });
        said.collect()
    }

    fn hear(&mut self, bytes: &str) -> Vec<Event> {
        self.hearing.receive(START, bytes.as_bytes(), &self.host).unwrap();
        std::mem::take(&mut self.hearing.events)
    }
}

fn opened(lock: &str) -> String {
    push("ssubscribe", lock, ":1\r\n")
}

/// Pushes that ask for another contact.
fn calls(events: &[Event]) -> usize {
    let call = |event: &&Event| matches!(event, Event::Push(Push::Changed { .. }));
    events.iter().filter(call).count()
}

#[test]
fn a_lock_that_is_used_once_polls_and_one_that_is_used_again_has_a_channel() {
    let mut world = World::new();
    assert_eq!(world.ask(0, acquire("job", false)), ["acquire polls"]);
    assert_eq!(calls(&world.hear(GRANTED)), 0);
    let subscribe = "SSUBSCRIBE fl:inbox:0000000000000007:{job}";
    assert_eq!(world.ask(9, acquire("job", false)), [subscribe, "acquire listens"]);
    // The answer to the subscription is a push, in its place.
    assert_eq!(world.hear(&(opened("job") + GRANTED)).len(), 1);
    assert_eq!(world.ask(10, acquire("job", true)), ["acquire listens"]);
    assert_eq!(calls(&world.hear(QUEUED)), 0, "it hears by its channel");
    let granted = "1 granted 00000000000000000000000000000007 9 9 0 0 job";
    let message = push("smessage", "job", &format!("${}\r\n{granted}\r\n", granted.len()));
    assert!(matches!(world.hear(&message)[..], [Event::Push(Push::Granted { .. })]));
}

#[test]
fn who_is_queued_at_first_use_subscribes_before_its_next_word() {
    let mut world = World::new();
    assert_eq!(world.ask(0, acquire("a{b", true)), ["acquire polls"]);
    let events = world.hear(QUEUED);
    assert!(
        matches!(&events[..], [Event::Reply { .. }, Event::Push(Push::Changed { hold, .. })]
            if *hold == HoldId(7)),
        "{events:?}"
    );
    let subscribe = "SSUBSCRIBE fl:inbox:0000000000000007:{a%7Bb}";
    assert_eq!(world.ask(0, beat("a{b")), [subscribe, "beat listens"]);
    assert_eq!(calls(&world.hear(&(opened("a{b") + BEATEN))), 0);
    assert_eq!(world.ask(1, beat("a{b")), ["beat listens"]);
}

#[test]
fn a_channel_that_the_server_closes_is_opened_anew_and_the_map_is_doubted() {
    let mut world = World::new();
    world.ask(0, beat("job"));
    world.hear(&(opened("job") + BEATEN));
    assert!(!world.hearing.is_suspect());
    world.hear(&push("sunsubscribe", "job", ":0\r\n"));
    assert!(world.hearing.is_suspect());
    assert!(world.ask(1, beat("job"))[0].starts_with("SSUBSCRIBE"));
    // What was asked for, and what is not ours, doubts nothing.
    world.hear(&(opened("job") + BEATEN));
    world.hear(&push("sunsubscribe", "other", ":0\r\n"));
    let said = world.ask(100, acquire("x", false));
    assert_eq!(said, ["SUNSUBSCRIBE fl:inbox:0000000000000007:{job}", "acquire polls"]);
    world.hear(&(push("sunsubscribe", "job", ":0\r\n") + GRANTED));
    assert!(!world.hearing.is_suspect());
}

#[test]
fn who_may_not_subscribe_says_so_at_once_and_asks_no_more() {
    let mut world = World::new();
    assert_eq!(world.ask(0, beat("job"))[1], "beat listens");
    let events = world.hear(&format!("-NOPERM this user has no permissions\r\n{BEATEN}"));
    assert_eq!(calls(&events), 1);
    assert!(matches!(world.hearing.heard[..], [Heard::NoChannels(_)]));
    assert_eq!(world.ask(0, beat("job")), ["beat polls"]);
    assert_eq!(calls(&world.hear(BEATEN)), 0);
    assert_eq!(world.ask(1, acquire("other", true)), ["acquire polls"]);
    assert_eq!(calls(&world.hear(QUEUED)), 0);
    world.host.with(|asked| asked.begin(Inbox::Sharded(true)));
    assert_eq!(world.ask(2, beat("job")).len(), 2, "the next connection tries again");
}

#[test]
fn a_subscription_that_is_sent_elsewhere_is_not_sent_again_until_something_is_asked() {
    let mut world = World::new();
    world.ask(0, beat("job"));
    let moved = "-MOVED 7 127.0.0.1:7001\r\n";
    let events = world.hear(&format!("{moved}{moved}"));
    assert!(events.is_empty() && world.hearing.is_suspect());
    assert_eq!(world.hearing.redirected().len(), 1, "the request's, not the subscription's");
    assert!(world.host.with(|asked| asked.outbox().is_empty()));
    assert_eq!(world.ask(1, beat("job")).len(), 2);
}

#[test]
fn while_a_slot_is_moving_here_asking_stands_before_the_subscription_too() {
    let mut world = World::new();
    world.host.with(|asked| asked.add_asking(vec![name("job")]));
    let said = world.ask(0, beat("job"));
    assert_eq!(said.len(), 4);
    assert_eq!((said[0].as_str(), said[2].as_str()), ("ASKING", "ASKING"));
    assert!(said[1].starts_with("SSUBSCRIBE") && said[3] == "beat listens");
    let answers = format!("+OK\r\n{}+OK\r\n{BEATEN}", opened("job"));
    assert_eq!(world.hear(&answers).len(), 1);
}

#[test]
fn who_holds_for_a_while_without_a_channel_is_called() {
    let mut world = World::new();
    assert_eq!(world.ask(0, acquire("job", false)), ["acquire polls"]);
    world.hear(GRANTED);
    assert!(world.hearing.call_due(START, &world.host).is_some());
    assert!(world.hearing.events.is_empty());
    let later = START + Duration::from_secs(1);
    assert_eq!(world.hearing.call_due(later, &world.host), None);
    assert_eq!(calls(&world.hearing.events), 1);
    assert_eq!(world.ask(1, beat("job"))[1], "beat listens");
}
