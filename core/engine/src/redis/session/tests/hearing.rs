use std::cell::RefCell;
use std::time::Duration;

use crate::event::Event;
use crate::id::{ClientId, HoldId};
use crate::name::Name;
use crate::redis::session::tests::{Reads, script, sound};
use crate::redis::session::{Asked, Greeted, Greeting, Guarded, Heard, Hearing, Protocol, Purpose};
use crate::redis::{Codec, Inbox};
use crate::reply::{Body, Failure, Push, RefusalKind, Released};
use crate::request::{Op, Release, Request, RequestId};
use crate::time::Time;
use crate::transport::Doubt;

const START: Time = Time::from_nanos(0);
const TIME: &str = "*2\r\n$10\r\n1700000000\r\n$3\r\n123\r\n";
const RELEASED: &str = "*2\r\n:1700000000000000\r\n:0\r\n";
const LOADED: &str = "+loaded\r\n";

/// A host with one thread.
struct Host(RefCell<Asked>);

impl Guarded for Host {
    fn with<R>(&self, act: impl FnOnce(&mut Asked) -> R) -> R {
        act(&mut self.0.borrow_mut())
    }
}

fn codec() -> Codec {
    Codec::new(ClientId::new(7, "test").unwrap(), "fl:").unwrap()
}

/// What a sound server's greeting gives, `behind` being sent in the same breath.
fn greeted(behind: &str) -> Greeted {
    let (client, channel) = (ClientId::new(7, "test").unwrap(), codec().channel().to_vec());
    let purpose = Purpose::Requests { client, channel, db: 0, master: false, cluster: false };
    let mut greeting = Greeting::new(purpose, Protocol::Auto, None);
    let mut reads = Reads::default();
    loop {
        let commands = reads.commands(&greeting.take());
        let mut answer: String = commands.iter().map(|words| sound(words)).collect();
        if commands.last().is_some_and(|words| words[0] == "TIME") {
            answer += behind;
        }
        if let Some(greeted) = greeting.receive(answer.as_bytes()).unwrap() {
            return greeted;
        }
    }
}

struct World {
    host: Host,
    hearing: Hearing,
    reads: Reads,
    /// Commands that left.
    left: Vec<String>,
    /// Scripts of which the server knows nothing.
    forgotten: bool,
    cursor: u32,
}

impl World {
    fn new() -> World {
        World::behind("")
    }

    fn behind(behind: &str) -> World {
        let host = Host(RefCell::new(Asked::new(codec())));
        host.with(|asked| asked.begin(Inbox::Subscribed));
        let mut hearing = Hearing::new(START, codec(), greeted(behind), None);
        assert_eq!(hearing.receive(START, b"", &host), Ok(false));
        let (reads, left) = (Reads::default(), Vec::new());
        World { host, hearing, reads, left, forgotten: false, cursor: 0 }
    }

    fn ask(&self, id: u64, op: Op) {
        self.host.with(|asked| asked.ask(START, Request { id: RequestId(id), op }));
    }

    /// Writes what is to be written; gives what the server answers to it.
    fn flush(&mut self) -> String {
        let bytes = self.host.with(|asked| asked.outbox().take());
        self.host.with(|asked| asked.outbox().keep(bytes.clone()));
        let mut answers = String::new();
        for words in self.reads.commands(&bytes) {
            answers += &self.answer(&words);
            self.left.push(match words[0].as_str() {
                "EVALSHA" => script(&words[1]).name.to_owned(),
                word => word.to_owned(),
            });
        }
        answers
    }

    fn answer(&mut self, words: &[String]) -> String {
        match words[0].as_str() {
            "TIME" => TIME.to_owned(),
            "SCRIPT" => {
                self.forgotten = false;
                LOADED.to_owned()
            }
            "EVALSHA" if self.forgotten => "-NOSCRIPT No matching script.\r\n".to_owned(),
            "EVALSHA" => RELEASED.to_owned(),
            "SCAN" => {
                self.cursor = (self.cursor + 1) % 3;
                let key = format!("fl:{{key{}}}", self.cursor);
                format!("*2\r\n$1\r\n{}\r\n*1\r\n${}\r\n{key}\r\n", self.cursor, key.len())
            }
            word => panic!("{word}"),
        }
    }

    fn end(&mut self) -> Vec<Event> {
        let World { host, hearing, .. } = self;
        host.with(|asked| hearing.end("cut".to_owned(), asked));
        std::mem::take(&mut hearing.events)
    }
}

fn release(lock: &str) -> Op {
    Op::Release(Release::new(Name::new(lock).unwrap(), HoldId(1 << 64), 0))
}

fn wanted(lock: &str) -> String {
    let payload = format!("1 wanted {} {lock}", HoldId(5));
    format!(">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n${}\r\n{payload}\r\n", payload.len())
}

fn result(events: &[Event], id: u64) -> &Result<crate::reply::Reply, Failure> {
    let mut results = events.iter().filter_map(|event| match event {
        Event::Reply { request, result } if *request == RequestId(id) => Some(result),
        _ => None,
    });
    let first = results.next().unwrap_or_else(|| panic!("no answer to {id}: {events:?}"));
    assert!(results.next().is_none(), "two answers to {id}: {events:?}");
    first
}

/// A time, a listing of three rounds and two releases whose script was forgotten, pushes between, and
/// the server heard in two pieces that meet at `cut`, and to the byte `until`.
fn run(cut: usize, until: usize) -> (Vec<Event>, Vec<String>, usize) {
    let mut world = World::new();
    world.forgotten = true;
    world.ask(1, Op::Time);
    world.ask(2, Op::List { prefix: String::new(), limit: 10 });
    world.ask(3, release("a"));
    world.ask(4, release("b"));
    let mut heard = 0;
    loop {
        let answers = world.flush();
        if answers.is_empty() {
            break;
        }
        let said = format!("{}{answers}", wanted("between"));
        let bytes = &said.as_bytes()[..said.len().min(until - heard)];
        let (one, two) = bytes.split_at(cut.saturating_sub(heard).min(bytes.len()));
        for piece in [one, two] {
            heard += piece.len();
            world.hearing.receive(START, piece, &world.host).unwrap();
        }
        if bytes.len() < said.len() {
            break;
        }
    }
    assert_eq!(world.host.with(|asked| asked.is_owed()), until != usize::MAX);
    (world.end(), world.left, heard)
}

#[test]
fn answers_that_are_cut_anywhere_are_the_same() {
    let (events, left, heard) = run(0, usize::MAX);
    assert_eq!(
        left,
        ["TIME", "SCAN", "release", "release", "SCAN", "SCRIPT", "SCAN", "TIME"],
        "the script is loaded once"
    );
    assert_eq!(events[0], Event::Up { now: 1_700_000_000_000_123 });
    assert_eq!(result(&events, 1).as_ref().unwrap().body, Body::Time);
    let Body::List(names) = &result(&events, 2).as_ref().unwrap().body else { panic!() };
    assert_eq!(names.iter().map(Name::as_str).collect::<Vec<_>>(), ["key0", "key1", "key2"]);
    for id in [3, 4] {
        let Err(Failure::Refused(refusal)) = result(&events, id) else { panic!("{events:?}") };
        assert_eq!(refusal.kind, RefusalKind::Again);
    }
    assert_eq!(*events.last().unwrap(), Event::Down { reason: "cut".to_owned() });
    for cut in 1..heard {
        assert_eq!(run(cut, usize::MAX), (events.clone(), left.clone(), heard), "cut at {cut}");
    }
}

#[test]
fn a_connection_that_is_lost_anywhere_answers_each_request_once() {
    let (whole, _, heard) = run(0, usize::MAX);
    for until in 0..heard {
        let (events, ..) = run(0, until);
        for id in [1, 2, 3, 4] {
            match result(&events, id) {
                // The next round had not left, or the server said that it did not execute this.
                Err(Failure::NotSent) => assert!(id > 1, "{id} lost at {until}"),
                Err(Failure::Unknown) => {}
                known => assert_eq!(known, result(&whole, id), "{id} lost at {until}"),
            }
        }
        assert!(matches!(events.last(), Some(Event::Down { .. })));
    }
}

#[test]
fn what_never_left_was_not_sent() {
    let mut world = World::new();
    world.ask(1, release("a"));
    world.flush();
    world.ask(2, release("b"));
    // Of this one a part may have left.
    world.ask(3, release("c"));
    let bytes = world.host.with(|asked| asked.outbox().take());
    world.host.with(|asked| asked.outbox().put_back(bytes, 1));
    let events = world.end();
    assert_eq!(*result(&events, 1), Err(Failure::Unknown));
    assert_eq!(*result(&events, 2), Err(Failure::Unknown));
    assert_eq!(*result(&events, 3), Err(Failure::NotSent));
}

#[test]
fn a_script_that_is_there_again_is_asked_for_again_and_one_that_is_refused_is_told() {
    for (answer, kind, part) in [
        (LOADED, RefusalKind::Again, "loaded again"),
        ("-NOPERM no\r\n", RefusalKind::Misconfigured, "cannot be loaded: NOPERM"),
        ("-LOADING it is\r\n", RefusalKind::Retry, "cannot be loaded: LOADING"),
    ] {
        let mut world = World::new();
        world.forgotten = true;
        world.ask(1, release("a"));
        let said = world.flush();
        assert_eq!(world.hearing.receive(START, said.as_bytes(), &world.host), Ok(true));
        assert_eq!(world.hearing.heard, [Heard::Forgotten("release")]);
        world.flush();
        assert_eq!(world.left, ["release", "SCRIPT"]);
        assert_eq!(world.hearing.receive(START, answer.as_bytes(), &world.host), Ok(false));
        let Err(Failure::Refused(refusal)) = result(&world.hearing.events, 1) else { panic!() };
        assert_eq!(refusal.kind, kind);
        assert!(refusal.message.contains(part), "{}", refusal.message);
        world.ask(2, release("a"));
        world.forgotten = false;
        let said = world.flush();
        world.hearing.receive(START, said.as_bytes(), &world.host).unwrap();
        let answer = result(&world.hearing.events, 2).as_ref().unwrap();
        assert_eq!(answer.body, Body::Release(Released::Done));
    }
}

#[test]
fn a_server_that_became_a_replica_is_left_but_not_at_once() {
    let readonly = b"-READONLY You can't write against a read only replica.\r\n";
    for (age, left) in [(999, false), (1_000, true)] {
        let mut world = World::new();
        world.ask(1, release("a"));
        world.flush();
        let now = START + Duration::from_millis(age);
        world.hearing.receive(now, readonly, &world.host).unwrap();
        let Err(Failure::Refused(refusal)) = result(&world.hearing.events, 1) else { panic!() };
        assert_eq!(refusal.kind, RefusalKind::Retry);
        assert_eq!(world.hearing.spent().is_some(), left, "after {age} ms");
    }
}

#[test]
fn what_nobody_asked_and_what_is_no_answer_end_the_connection() {
    let mut world = World::new();
    let why = world.hearing.receive(START, b"+surprise\r\n", &world.host).unwrap_err();
    assert!(why.contains("what nobody asked"), "{why}");
    let mut world = World::new();
    world.ask(1, Op::Time);
    world.flush();
    let why = world.hearing.receive(START, b"HTTP/1.1 400\r\n", &world.host).unwrap_err();
    assert!(why.contains("is this a Redis server?"), "{why}");
    assert_eq!(*result(&world.end(), 1), Err(Failure::Unknown));
    let why = World::new().hearing.receive_apart(b"?\r\n").unwrap_err();
    assert!(why.contains("is this a Redis server?"), "{why}");
}

#[test]
fn pushes_are_heard_on_both_connections_cut_anywhere_and_others_are_left_out() {
    let push =
        |lock: &str| Event::Push(Push::Wanted { lock: Name::new(lock).unwrap(), hold: HoldId(5) });
    let strange = ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$5\r\nhello\r\n>1\r\n+x\r\n";
    let said = format!("{}{strange}{}", wanted("a"), wanted("b"));
    // As RESP2 says them, an answer of another kind between.
    let old = format!("{}+PONG\r\n", said.replace('>', "*"));
    for cut in 0..said.len() {
        let mut world = World::new();
        let (one, two) = said.split_at(cut);
        for piece in [one, two] {
            assert_eq!(world.hearing.receive(START, piece.as_bytes(), &world.host), Ok(false));
        }
        assert_eq!(world.hearing.events[1..], [push("a"), push("b")]);
        assert_eq!(world.hearing.heard, [Heard::Strange(5), Heard::NoMessage(1)]);
        let mut world = World::new();
        let (one, two) = old.split_at(cut);
        for piece in [one, two] {
            world.hearing.receive_apart(piece.as_bytes()).unwrap();
        }
        assert_eq!(world.hearing.events[1..], [push("a"), push("b")]);
    }
}

#[test]
fn a_push_in_the_same_breath_as_the_last_word_of_the_greeting_does_not_wait_for_the_next() {
    let whole = wanted("early");
    for length in [whole.len(), whole.len() - 1] {
        let mut world = World::behind(&whole[..length]);
        if length < whole.len() {
            assert_eq!(world.hearing.events.len(), 1);
            world.hearing.receive(START, &whole.as_bytes()[length..], &world.host).unwrap();
        }
        assert!(matches!(world.hearing.events[..], [Event::Up { .. }, Event::Push(_)]));
    }
}

#[test]
fn a_new_connection_owes_nothing_of_the_one_before() {
    let mut world = World::new();
    world.ask(1, Op::Time);
    world.flush();
    let doubt = Doubt { owed: RequestId(1), heard: None };
    assert!(world.host.with(|asked| asked.doubt(doubt)));
    assert_eq!(*result(&world.end(), 1), Err(Failure::Unknown));
    assert!(!world.host.with(|asked| asked.is_doubted() || asked.is_owed()));
    world.host.with(|asked| asked.begin(Inbox::Polling));
    assert!(!world.host.with(|asked| asked.doubt(doubt)), "it is another connection");
    world.hearing = Hearing::new(START, codec(), greeted(""), None);
    world.ask(2, Op::Time);
    let said = world.flush();
    assert_eq!(world.hearing.receive(START, said.as_bytes(), &world.host), Ok(false));
    assert!(result(&world.hearing.events, 2).is_ok());
}

/// With `cluster-preferred-endpoint-type hostname`, and a master that was given none.
#[test]
fn a_redirect_that_does_not_say_where_to_may_pass_by_itself() {
    let mut world = World::new();
    world.hearing = Hearing::new(START, codec(), greeted(""), None).in_cluster();
    world.ask(1, release("a"));
    world.flush();
    let said = b"-MOVED 77 ?:6379\r\n";
    assert_eq!(world.hearing.receive(START, said, &world.host), Ok(false));
    assert!(world.hearing.is_suspect(), "a map tells more");
    let answer = result(&world.hearing.events, 1);
    let Err(Failure::Refused(refusal)) = answer else { panic!("{answer:?}") };
    assert_eq!(refusal.kind, RefusalKind::Retry, "{}", refusal.message);
}
