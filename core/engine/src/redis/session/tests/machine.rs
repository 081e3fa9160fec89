use std::time::Duration;

use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::id::ClientId;
use crate::redis::session::tests::{Answers, Reads, old, sound};
use crate::redis::session::{
    Input, Machine, NoSession, Note, Output, Protocol, Server, Session, Terms, Wire,
};
use crate::redis::sync::{self, Naming, Replicas};
use crate::redis::{Inbox, Node};
use crate::time::Time;

const MILLI: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(5);

fn terms() -> Terms {
    Terms {
        client: ClientId::new(7, "test").unwrap(),
        prefix: "fl:".to_owned(),
        db: 0,
        protocol: Protocol::Auto,
        server: Server::Fixed("host:6379".to_owned()),
        cluster: false,
        charter: None,
        sync: None,
        tls: false,
        connect_timeout: LIMIT,
        backoff_min: 10 * MILLI,
        backoff_max: 1_000 * MILLI,
    }
}

fn node(number: u8) -> Node {
    Node { host: format!("10.0.0.{number}"), port: 6379 }
}

/// What the machine asked for last, and has not been told of.
#[derive(Debug)]
enum Errand {
    Seek,
    Login,
    Dial,
    Say(Wire, Vec<u8>),
}

/// A host before a server, both of which do as a test wants.
struct World {
    now: Time,
    machine: Machine,
    answers: Answers,
    reads: [Reads; 3],
    errand: Option<Errand>,
    /// All that the machine wanted, in words.
    log: Vec<String>,
    /// The session that is up.
    session: Option<Session>,
}

impl World {
    fn new(terms: Terms, answers: Answers) -> World {
        let machine = Machine::new(Time::ZERO, terms, [3; 32]);
        let (log, reads) = (Vec::new(), Default::default());
        let mut world =
            World { now: Time::ZERO, machine, answers, reads, errand: None, log, session: None };
        world.drain();
        world
    }

    /// One whose session is up.
    fn up(answers: Answers) -> World {
        let mut world = World::new(terms(), answers);
        world.serve();
        assert!(world.session.is_some());
        world.log.clear();
        world
    }

    fn drain(&mut self) {
        while let Some(output) = self.machine.poll_output() {
            let (word, errand) = match output {
                Output::Seek => ("seek".to_owned(), Some(Errand::Seek)),
                Output::Login => ("login".to_owned(), Some(Errand::Login)),
                Output::Dial(wire, node) => {
                    self.reads[wire as usize] = Reads::default();
                    let to = node.map_or(String::new(), |node| format!(" {node}"));
                    (format!("dial {wire:?}{to}"), Some(Errand::Dial))
                }
                Output::Say(wire, bytes) => {
                    let word = if bytes.is_empty() { "hear" } else { "say" };
                    (format!("{word} {wire:?}"), Some(Errand::Say(wire, bytes)))
                }
                Output::Abandon => {
                    self.errand = None;
                    ("abandon".to_owned(), None)
                }
                Output::GiveUp(reason) => {
                    assert!(self.session.take().is_some(), "there is none to give up");
                    (format!("give up: {reason}"), None)
                }
                Output::Up(session) => {
                    assert!(self.session.replace(*session).is_none(), "there is one already");
                    ("up".to_owned(), None)
                }
                Output::Event(Event::Down { reason }) => (format!("down: {reason}"), None),
                Output::Event(Event::Misconfigured(error)) => {
                    (format!("misconfigured: {}", error.message()), None)
                }
                Output::Event(event) => panic!("{event:?}"),
                Output::Note(note) => (format!("{note:?}"), None),
            };
            self.log.push(word);
            if let Some(errand) = errand {
                assert!(self.errand.replace(errand).is_none(), "two at once: {:?}", self.log);
            }
        }
        if self.errand.is_some() {
            assert!(self.machine.next_wake().is_some(), "an errand that nobody times");
        }
    }

    fn handle(&mut self, input: Input<'_>) {
        self.machine.handle(self.now, input);
        self.drain();
    }

    /// Does the one errand; false when there is none.
    fn run(&mut self, piece: usize) -> bool {
        match self.errand.take() {
            None => return false,
            Some(Errand::Seek) => self.handle(Input::Found(node(1))),
            Some(Errand::Login) => self.handle(Input::Login(None)),
            Some(Errand::Dial) => self.handle(Input::Dialled),
            Some(Errand::Say(wire, bytes)) => {
                let commands = self.reads[wire as usize].commands(&bytes);
                let said: String = commands.iter().map(|words| (self.answers)(words)).collect();
                for piece in said.as_bytes().chunks(piece) {
                    self.errand = None;
                    self.handle(Input::Received(piece));
                }
            }
        }
        true
    }

    /// Does all errands.
    fn serve(&mut self) {
        while self.run(usize::MAX) {}
    }

    /// The next moment that the machine waits for; how long it waited.
    fn wait(&mut self) -> Duration {
        let wake = self.machine.next_wake().expect("it waits for something");
        let waited = wake.since(self.now);
        // Too early is nothing.
        let early = wake - Duration::from_nanos(1);
        if early > self.now {
            let before = self.log.len();
            self.machine.wake(early);
            self.drain();
            assert_eq!(self.log.len(), before, "too early");
        }
        self.now = wake;
        self.machine.wake(wake);
        self.drain();
        waited
    }

    fn fail(&mut self) {
        self.errand = None;
        self.handle(Input::Failed(NoSession::Later("no".to_owned())));
    }

    fn lose(&mut self) {
        self.session = None;
        self.handle(Input::Lost);
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// The pause is of this step of the backoff.
fn is_step(pause: Duration, step: u64) {
    let step = Duration::from_millis(step);
    assert!(pause >= step / 2 && pause <= step, "{pause:?} is no pause of {step:?}");
}

fn misconfigured() -> NoSession {
    NoSession::Misconfigured(Error::new(ErrorKind::Misconfigured, "mend it"))
}

#[test]
fn with_resp3_a_session_is_one_connection_and_otherwise_two() {
    let mut world = World::new(terms(), sound);
    world.serve();
    assert_eq!(world.log(), ["login", "dial Main", "say Main", "say Main", "up"]);
    let session = world.session.take().unwrap();
    assert!(session.apart.is_none());
    assert_eq!((session.inbox, session.main.now), (Inbox::Subscribed, 1_700_000_000_000_123));
    assert_eq!(world.machine.next_wake(), None);

    let mut world = World::new(terms(), old);
    world.serve();
    let first = ["login", "dial Main", "say Main", "say Main", "say Main"];
    let second = ["dial Apart", "say Apart", "say Apart", "up"];
    assert_eq!(world.log(), [&first[..], &second].concat());
    let session = world.session.unwrap();
    assert!(session.apart.is_some());
    assert_eq!(session.inbox, Inbox::Subscribed);

    // Who may not subscribe has no use for the second.
    let mut world = World::new(terms(), |words| match words[0].as_str() {
        "SUBSCRIBE" => "-NOPERM no\r\n".to_owned(),
        _ => old(words),
    });
    world.serve();
    let session = world.session.unwrap();
    assert!(session.apart.is_none());
    assert_eq!(session.inbox, Inbox::Polling);
    assert_eq!(session.denied.unwrap(), "NOPERM no");
}

#[test]
fn answers_that_come_byte_by_byte_make_the_same_session() {
    for answers in [sound as Answers, old] {
        let mut world = World::new(terms(), answers);
        while world.run(1) {}
        let mut words = world.log();
        words.retain(|word| !word.starts_with("hear"));
        let mut whole = World::new(terms(), answers);
        whole.serve();
        assert_eq!(words, whole.log());
        let (one, other) = (world.session.unwrap(), whole.session.unwrap());
        assert_eq!((one.inbox, one.main.now), (other.inbox, other.main.now));
    }
}

#[test]
fn an_attempt_that_fails_at_any_step_is_made_again_from_its_beginning() {
    for answers in [sound as Answers, old] {
        let mut whole = World::new(terms(), answers);
        whole.serve();
        let whole = whole.log();
        for step in 0..whole.len() - 1 {
            let mut runs = Vec::new();
            for _ in 0..2 {
                let mut world = World::new(terms(), answers);
                for _ in 0..step {
                    world.run(usize::MAX);
                }
                world.fail();
                let log = world.log();
                assert_eq!(log[log.len() - 2..], ["abandon", "down: no"]);
                let pause = world.wait();
                is_step(pause, 10);
                world.serve();
                assert_eq!(world.log(), whole);
                assert!(world.session.is_some());
                runs.push((log, pause));
            }
            assert_eq!(runs[0], runs[1], "the same seed");
        }
    }
}

#[test]
fn an_attempt_that_is_late_at_any_step_gives_the_next_one_longer() {
    for step in 0..8 {
        let mut world = World::new(Terms { tls: step % 2 == 1, ..terms() }, old);
        for (late, times) in [1, 2, 4, 4].into_iter().enumerate() {
            for _ in 0..step {
                world.run(usize::MAX);
            }
            assert_eq!(world.wait(), LIMIT * times, "the whole attempt counts");
            let log = world.log();
            let limit = LIMIT * times;
            let mut why =
                format!("down: no connection to host:6379 within {limit:?} (connect_timeout)");
            if step % 2 == 1 {
                why += "; does this port speak TLS?";
            }
            assert_eq!(log[log.len() - 2..], ["abandon".to_owned(), why]);
            is_step(world.wait(), 10 << late);
        }
        // One that ended in time, be it badly, ends that.
        world.fail();
        is_step(world.wait(), 160);
        assert_eq!(world.wait(), LIMIT);
    }
}

#[test]
fn pauses_double_up_to_a_bound_and_begin_anew_after_a_session_that_lasted() {
    let mut world = World::new(terms(), sound);
    for step in [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000] {
        world.fail();
        is_step(world.wait(), step);
    }
    // One that did not last is no success.
    for (lasted, step) in [(999, 1_000), (1_000, 10)] {
        world.serve();
        world.now = world.now + lasted * MILLI;
        world.lose();
        is_step(world.wait(), step);
    }
    world.log();
    world.serve();
    assert_eq!(world.log().last().unwrap(), "up");
}

#[test]
fn what_an_operator_must_mend_is_looked_at_each_second() {
    let mut world = World::new(terms(), |_| "-DENIED not you\r\n".to_owned());
    for _ in 0..3 {
        world.serve();
        let log = world.log();
        assert_eq!(log[log.len() - 2], "abandon");
        assert!(log[log.len() - 1].starts_with("misconfigured: Redis refused HELLO"), "{log:?}");
        assert_eq!(world.wait(), 1_000 * MILLI);
    }
    world.answers = sound;
    world.serve();
    assert!(world.session.is_some());
}

#[test]
fn a_silent_session_gives_way_to_one_that_is_answered() {
    let mut world = World::up(sound);
    world.handle(Input::Doubt(true));
    assert!(world.machine.is_doubting());
    assert_eq!(world.log(), [format!("{:?}", Note::Silent)]);
    is_step(world.wait(), 250);
    // The other is not answered either, and the next ones after pauses that double.
    for step in [500, 1_000, 1_000] {
        world.fail();
        let log = world.log();
        assert_eq!(log, ["login", "abandon", "Unanswered(\"no\")"]);
        is_step(world.wait(), step);
    }
    world.serve();
    let log = world.log();
    let reason = "give up: it was silent, and another connection is answered";
    assert_eq!(log[log.len() - 2..], [reason, "up"]);
    assert!(!world.machine.is_doubting());
    assert_eq!(world.machine.next_wake(), None);
}

#[test]
fn a_session_that_is_heard_again_is_kept_whatever_the_other_has_come_to() {
    for step in 0..5 {
        let mut world = World::up(sound);
        world.handle(Input::Doubt(true));
        if step > 0 {
            world.wait();
        }
        for _ in 1..step {
            world.run(usize::MAX);
        }
        world.log();
        if world.machine.is_doubting() {
            world.handle(Input::Doubt(false));
            let abandons = if step > 0 { &["Answers", "abandon"][..] } else { &["Answers"] };
            assert_eq!(world.log(), abandons);
        }
        assert!(world.session.is_some());
        assert_eq!(world.machine.next_wake(), None);
        // The next doubt begins with the first pause.
        world.handle(Input::Doubt(true));
        is_step(world.wait(), 250);
    }
}

#[test]
fn a_session_that_is_lost_while_another_is_tried_is_made_anew_in_the_ordinary_way() {
    for step in 0..4 {
        let mut world = World::up(sound);
        world.handle(Input::Doubt(true));
        if step > 0 {
            world.wait();
        }
        for _ in 1..step {
            world.run(usize::MAX);
        }
        world.log();
        world.lose();
        assert_eq!(world.log(), if step > 0 { &["abandon"][..] } else { &[] });
        assert!(!world.machine.is_doubting());
        is_step(world.wait(), 10);
        world.serve();
        assert!(world.session.is_some());
    }
}

#[test]
fn a_silent_session_whose_successor_must_be_mended_is_given_up() {
    let mut world = World::up(sound);
    world.handle(Input::Doubt(true));
    world.wait();
    world.errand = None;
    world.handle(Input::Failed(misconfigured()));
    let log = world.log();
    assert_eq!(log[log.len() - 3..], ["abandon", "give up: mend it", "misconfigured: mend it"]);
    assert!(!world.machine.is_doubting());
    assert_eq!(world.wait(), 1_000 * MILLI);
    world.serve();
    assert!(world.session.is_some());
}

#[test]
fn what_comes_late_is_nothing() {
    let mut world = World::up(sound);
    for input in [
        Input::Login(None),
        Input::Dialled,
        Input::Received(b"+PONG\r\n"),
        Input::Found(node(1)),
        Input::Failed(misconfigured()),
    ] {
        world.handle(input);
    }
    world.handle(Input::Doubt(false));
    assert!(world.log().is_empty());
    world.lose();
    world.log();
    world.handle(Input::Lost);
    world.handle(Input::Doubt(true));
    assert!(world.log().is_empty());
    is_step(world.wait(), 10);
}

fn sought(answers: Answers) -> World {
    let server = Server::Sought("the master 'shop'".to_owned());
    World::new(Terms { server, ..terms() }, answers)
}

/// A server that has become a replica.
fn replica(words: &[String]) -> String {
    match words[0].as_str() {
        "ROLE" => {
            "*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.2\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n".to_owned()
        }
        _ => sound(words),
    }
}

#[test]
fn a_master_is_sought_before_each_attempt_and_must_say_that_it_is_one() {
    let mut world = sought(sound);
    world.serve();
    assert_eq!(world.log()[..3], ["seek", "login", "dial Main 10.0.0.1:6379"]);
    assert!(world.session.is_some());
    world.lose();
    world.wait();
    assert_eq!(world.log()[0], "seek");

    let mut world = sought(replica);
    world.serve();
    let log = world.log();
    let why = "down: 10.0.0.1:6379: it is no master but a slave";
    assert_eq!(log[log.len() - 2..], ["abandon", why]);
    is_step(world.wait(), 10);
    assert_eq!(world.log(), ["seek"]);
}

#[test]
fn when_the_master_is_another_all_that_leads_to_the_old_one_ends_at_once() {
    for doubted in [false, true] {
        let mut world = sought(sound);
        world.serve();
        if doubted {
            world.handle(Input::Doubt(true));
            world.wait();
        }
        world.log();
        world.handle(Input::Moved("another".to_owned()));
        let log = world.log();
        let begun = if doubted { &["abandon"][..] } else { &[] };
        assert_eq!(log, [begun, &["give up: another", "seek"]].concat());
        assert!(!world.machine.is_doubting());
        world.serve();
        assert!(world.session.is_some());
    }
    // On the way there, and in the pause after it was in vain.
    let mut world = sought(sound);
    world.run(usize::MAX);
    world.log();
    world.handle(Input::Moved("another".to_owned()));
    assert_eq!(world.log(), ["abandon", "seek"]);
    world.errand = None;
    world.handle(Input::Failed(NoSession::Later("nobody knows".to_owned())));
    assert_eq!(world.log(), ["abandon", "down: nobody knows"]);
    world.handle(Input::Moved("another".to_owned()));
    assert_eq!(world.log(), ["seek"]);
}

#[test]
fn a_session_that_lives_is_kept_while_nobody_says_who_the_master_is() {
    let mut world = sought(sound);
    world.serve();
    world.handle(Input::Doubt(true));
    world.wait();
    for why in [misconfigured(), NoSession::Later("nobody knows".to_owned())] {
        world.log();
        assert!(matches!(world.errand.take(), Some(Errand::Seek)));
        world.handle(Input::Failed(why));
        let log = world.log();
        assert_eq!(log[0], "abandon");
        assert!(log[1].starts_with("Unanswered"), "{log:?}");
        assert!(world.session.is_some());
        world.wait();
    }
    // What the server itself wants mended, ends it.
    world.run(usize::MAX);
    world.errand = None;
    world.log();
    world.handle(Input::Failed(misconfigured()));
    let log = world.log();
    assert_eq!(
        log[1..],
        ["give up: 10.0.0.1:6379: mend it", "misconfigured: 10.0.0.1:6379: mend it"]
    );
}

/// A session whose grants replicas confirm.
fn confirmed(replicas: Replicas, disk: bool, answers: Answers) -> World {
    let (naming, timeout) = (Naming::Nodes, LIMIT);
    let sync = Some(sync::Terms { replicas, naming, timeout, disk });
    let mut world = World::new(Terms { sync, cluster: true, ..terms() }, answers);
    world.serve();
    world
}

#[test]
fn grants_that_replicas_confirm_have_a_connection_of_their_own() {
    let mut world = confirmed(Replicas::AtLeast(1), false, sound);
    let main = ["login", "dial Main", "say Main", "say Main"];
    let sync = ["dial Sync", "say Sync", "say Sync", "up"];
    assert_eq!(world.log(), [&main[..], &sync].concat());
    let session = world.session.take().unwrap();
    assert!(session.apart.is_none() && session.sync.is_some());
    // Beside that of the pushes, where RESP3 is not to be had.
    let mut world = confirmed(Replicas::AtLeast(1), false, old);
    let dials: Vec<_> = world.log().into_iter().filter(|it| it.starts_with("dial")).collect();
    assert_eq!(dials, ["dial Main", "dial Apart", "dial Sync"]);
    assert!(world.session.unwrap().apart.is_some());
}

#[test]
fn all_replicas_are_counted_before_the_session_is_up() {
    let world = confirmed(Replicas::All, false, |words| match words[0].as_str() {
        "CLUSTER" => {
            let nodes = "aa h:1@2 myself,master - 0 0 1 connected 0-16383\n\
                         bb h:2@3 slave,fail aa 0 0 1 disconnected\n";
            format!("${}\r\n{nodes}\r\n", nodes.len())
        }
        _ => sound(words),
    });
    let (_, greeted) = world.session.unwrap().sync.unwrap();
    assert_eq!(greeted.replicas, 1);
}

#[test]
fn bug_143_a_server_that_cannot_wait_as_it_is_to_is_misconfigured() {
    for (disk, answers, why) in [
        (true, (|words| refuses(words, "-ERR unknown command 'WAITAOF'")) as Answers, "7.2"),
        (
            true,
            |words| {
                refuses(
                    words,
                    "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.",
                )
            },
            "appendonly yes",
        ),
        (true, |words| refuses(words, "-NOPERM no"), "ACL"),
        (false, |words| refuses(words, "-NOPERM no"), "ACL"),
    ] {
        let mut world = confirmed(Replicas::AtLeast(1), disk, answers);
        let said = world.log().pop().unwrap();
        assert!(said.starts_with("misconfigured") && said.contains(why), "{said}");
        assert!(world.session.is_none());
    }
}

fn refuses(words: &[String], line: &str) -> String {
    match words[0].as_str() {
        "WAIT" | "WAITAOF" => format!("{line}\r\n"),
        _ => sound(words),
    }
}
