//! The engine and the transport doubt a connection both, or neither, in whatever order the pump and
//! the thread that wakes the engine get to act.

use std::collections::VecDeque;
use std::time::Duration;

use fencelock_engine::reply::{Body, Failure, Reply};
use fencelock_engine::request::RequestId;
use fencelock_engine::transport::Doubt;
use fencelock_engine::{Acquired, Ask, Effect, Engine, Event, Name, Options, Time};
use fencelock_testkit::orders;

use crate::doubts::Doubts;

const EPOCH: u64 = 1_700_000_000_000_000;
/// Longer than a request may take.
const SILENCE: Duration = Duration::from_secs(4);

struct World {
    engine: Engine<u32>,
    now: Time,
    doubts: Doubts,
    /// What the servers have been asked and have not answered.
    asked: VecDeque<RequestId>,
    /// What is known and not passed on.
    events: Vec<Event>,
    /// What the thread that woke the engine has yet to tell the transport.
    doubt: Option<Doubt>,
}

/// What the pump, or the other thread, does in one go.
#[derive(Clone, Copy, Debug)]
enum Step {
    Wake,
    Tell,
    /// Reads the answer of the oldest request.
    Read,
    /// Fails the oldest request without the servers.
    Fail,
    Pass,
    /// The connection ends.
    Cut,
    /// Another is up.
    Up,
}

impl World {
    /// Two requests are on their way, and nothing has been answered for long.
    fn new() -> World {
        let engine = Engine::new(Options::default(), [7; 32]).unwrap();
        let mut world = World {
            engine,
            now: Time::ZERO,
            doubts: Doubts::default(),
            asked: VecDeque::new(),
            events: Vec::new(),
            doubt: None,
        };
        world.step(Step::Up);
        world.step(Step::Pass);
        for call in [1, 2] {
            world.engine.inspect(Time::ZERO, &Name::new("a").unwrap(), call);
        }
        assert!(world.follow());
        world.now = Time::ZERO + SILENCE;
        world
    }

    /// Does what the engine wants; whether that was to send anything.
    fn follow(&mut self) -> bool {
        let mut sent = false;
        while let Some(effect) = self.engine.poll_effect() {
            match effect {
                Effect::Send(request) => {
                    sent = true;
                    self.doubts.asked(request.id);
                    self.asked.push_back(request.id);
                }
                Effect::Reconnect(doubt) => self.doubt = Some(doubt),
                _ => {}
            }
        }
        sent
    }

    fn tells(&mut self, event: Event) {
        self.doubts.tells(&event);
        self.events.push(event);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wake => self.engine.wake(self.now),
            Step::Tell => {
                if let Some(doubt) = self.doubt.take() {
                    self.doubts.doubt(self.now, doubt, false);
                }
            }
            Step::Read => {
                let request = self.asked.pop_front().expect("something is awaited");
                let result = Ok(Reply { now: EPOCH, body: Body::Inspect(None) });
                self.tells(Event::Reply { request, result });
            }
            Step::Fail => {
                let request = self.asked.pop_front().expect("something is awaited");
                self.tells(Event::Reply { request, result: Err(Failure::Unknown) });
            }
            Step::Pass => {
                for event in std::mem::take(&mut self.events) {
                    self.engine.handle(self.now, event);
                }
            }
            Step::Cut => {
                while !self.asked.is_empty() {
                    self.step(Step::Fail);
                }
                self.tells(Event::Down { reason: "cut".to_owned() });
            }
            Step::Up => self.tells(Event::Up { now: EPOCH }),
        }
        self.follow();
    }

    /// Whether the engine doubts its connection: then it asks nothing new.
    fn engine_doubts(&mut self) -> bool {
        let lock = self.engine.lock(&Name::new("b").unwrap());
        let asked = self.engine.acquire(self.now, lock, Ask::local(1), 9).unwrap();
        assert!(matches!(asked, Acquired::Pending(_)));
        !self.follow()
    }
}

#[test]
fn engine_and_transport_doubt_a_connection_both_or_neither() {
    let threads: [&[Step]; 6] = [
        &[Step::Read, Step::Pass],
        &[Step::Read, Step::Read, Step::Pass],
        &[Step::Fail, Step::Pass],
        &[Step::Fail, Step::Read, Step::Pass],
        &[Step::Cut, Step::Pass, Step::Up, Step::Pass],
        &[Step::Read, Step::Pass, Step::Cut, Step::Up, Step::Pass],
    ];
    let mut doubts = 0;
    for pump in threads {
        for order in orders(&[Step::Wake, Step::Tell], pump) {
            let mut world = World::new();
            order.iter().for_each(|step| world.step(*step));
            let transport = world.doubts.due().is_some();
            assert_eq!(world.engine_doubts(), transport, "{order:?}");
            doubts += usize::from(transport);
        }
    }
    assert!(doubts > 0, "no order ends in a doubt");
}

#[test]
fn a_connection_is_given_up_a_moment_after_the_doubt_and_not_when_it_was_answered() {
    let mut world = World::new();
    for step in [Step::Wake, Step::Tell] {
        world.step(step);
    }
    assert!(world.doubts.due().is_some_and(|due| due > world.now), "answers are read first");
    for step in [Step::Read, Step::Pass] {
        world.step(step);
    }
    assert_eq!(world.doubts.due(), None);
    assert!(!world.engine_doubts());
}

#[test]
fn what_has_yet_to_be_sent_is_owed_too() {
    let mut world = World::new();
    let unsent = Doubt { owed: RequestId(99), heard: None };
    world.doubts.doubt(world.now, unsent, false);
    assert_eq!(world.doubts.due(), None);
    world.doubts.doubt(world.now, unsent, true);
    assert!(world.doubts.due().is_some());
}
