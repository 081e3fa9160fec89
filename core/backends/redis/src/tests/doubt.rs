//! The engine and the transport doubt a connection both, or neither, in whatever order the pump and
//! the thread that wakes the engine get to act.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fencelock_engine::redis::session::{Asked, Awaited, Guarded as _};
use fencelock_engine::redis::sync::{Naming, Replicas, Terms};
use fencelock_engine::redis::{Codec, Inbox};
use fencelock_engine::reply::{Body, Reply, Standing, State};
use fencelock_engine::request::RequestId;
use fencelock_engine::transport::{Doubt, Sink};
use fencelock_engine::{Acquired, Ask, ClientId, Effect, Engine, Event, Name, Options, Time};
use fencelock_testkit::orders;

use crate::link::{Link, Writer};
use crate::shared::Shared;

const EPOCH: u64 = 1_700_000_000_000_000;
/// Longer than a request may take.
const SILENCE: Duration = Duration::from_secs(4);

/// The engine behind its mutex.
struct Engines(Mutex<(Engine<u32>, Time)>);

impl Sink for Engines {
    fn deliver(&self, event: Event) {
        let (engine, now) = &mut *self.0.lock().unwrap();
        engine.handle(*now, event);
    }
}

struct World {
    engine: Arc<Engines>,
    shared: Shared,
    /// What the pump has read and not passed on.
    read: Vec<Event>,
    /// The request whose script the server has forgotten.
    forgotten: Option<RequestId>,
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
    /// Reads that the server has forgotten a script.
    Forgotten,
    /// Asks it to load that.
    Load,
    Pass,
    /// The connection ends, and another is up.
    Anew,
}

impl World {
    /// Two requests are on their way, and nothing has been answered for long.
    fn new() -> World {
        let mut world = World::with(None);
        for call in [1, 2] {
            let (engine, now) = &mut *world.engine.0.lock().unwrap();
            engine.inspect(*now, &Name::new("a").unwrap(), call);
        }
        world.follow();
        world.engine.0.lock().unwrap().1 = Time::ZERO + SILENCE;
        world
    }

    fn with(terms: Option<Terms>) -> World {
        let engine = Engine::new(Options::default(), [7; 32]).unwrap();
        let engine = Arc::new(Engines(Mutex::new((engine, Time::ZERO))));
        let codec = || Codec::new(ClientId::new(1, "").unwrap(), "fl:").unwrap();
        let terms = terms.map(|terms| (terms, codec()));
        let shared = Shared::new(codec(), engine.clone()).confirmed(terms);
        let mut world = World { engine, shared, read: Vec::new(), forgotten: None, doubt: None };
        world.up();
        world
    }

    fn up(&mut self) {
        let link = Arc::new(Link::new(Writer::Pump));
        self.shared.up(link, Vec::new(), Inbox::Subscribed, None, 0);
        self.shared.deliver(&mut vec![Event::Up { now: EPOCH }]);
    }

    /// Does what the engine wants; whether that was to send anything.
    fn follow(&mut self) -> bool {
        let mut sent = false;
        let (engine, _) = &mut *self.engine.0.lock().unwrap();
        while let Some(effect) = engine.poll_effect() {
            match effect {
                Effect::Send(request) => {
                    sent = true;
                    self.shared.enqueue(request);
                }
                Effect::Reconnect(doubt) => self.doubt = Some(doubt),
                _ => {}
            }
        }
        sent
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Wake => {
                let (engine, now) = &mut *self.engine.0.lock().unwrap();
                engine.wake(*now);
            }
            Step::Tell => {
                if let Some(doubt) = self.doubt.take() {
                    self.shared.doubt(doubt);
                }
            }
            Step::Read => {
                let Some(Awaited::Request(request, _)) = self.shared.with(Asked::answered) else {
                    panic!("nothing is awaited");
                };
                let result = Ok(Reply { now: EPOCH, body: Body::Inspect(None) });
                self.read.push(Event::Reply { request, result });
            }
            Step::Forgotten => {
                let Some(Awaited::Request(request, _)) = self.shared.with(Asked::answered) else {
                    panic!("nothing is awaited");
                };
                self.forgotten = Some(request);
            }
            Step::Load => {
                let request = self.forgotten.take().expect("a script was forgotten");
                self.shared.with(|asked| asked.load(&Codec::scripts()[0], request));
            }
            Step::Pass => self.shared.deliver(&mut self.read),
            Step::Anew => {
                let mut events = Vec::new();
                self.shared.down(|asked| asked.end(&mut events));
                events.push(Event::Down { reason: "cut".to_owned() });
                self.shared.deliver(&mut events);
                self.up();
            }
        }
        self.follow();
    }

    /// Whether the engine doubts its connection: then it asks nothing new.
    fn engine_doubts(&mut self) -> bool {
        let asked = {
            let (engine, now) = &mut *self.engine.0.lock().unwrap();
            let lock = engine.lock(&Name::new("b").unwrap());
            engine.acquire(*now, lock, Ask::local(1), 9).unwrap()
        };
        assert!(matches!(asked, Acquired::Pending(_)));
        !self.follow()
    }
}

#[test]
fn engine_and_transport_doubt_a_connection_both_or_neither() {
    let threads: [&[Step]; 7] = [
        &[Step::Read, Step::Pass],
        &[Step::Read, Step::Read, Step::Pass],
        &[Step::Forgotten, Step::Load, Step::Pass],
        &[Step::Forgotten, Step::Load, Step::Read, Step::Pass],
        &[Step::Read, Step::Forgotten, Step::Load, Step::Pass],
        &[Step::Anew],
        &[Step::Read, Step::Pass, Step::Anew],
    ];
    let mut doubts = 0;
    for pump in threads {
        for order in orders(&[Step::Wake, Step::Tell], pump) {
            let mut world = World::new();
            order.iter().for_each(|step| world.step(*step));
            let transport = world.shared.is_doubted();
            assert_eq!(world.engine_doubts(), transport, "{order:?}");
            doubts += usize::from(transport);
        }
    }
    assert!(doubts > 0, "no order ends in a doubt");
}

#[test]
fn an_answer_ends_the_doubt_of_both() {
    let mut world = World::new();
    for step in [Step::Wake, Step::Tell] {
        world.step(step);
    }
    assert!(world.shared.is_doubted());
    for step in [Step::Read, Step::Pass] {
        world.step(step);
    }
    assert!(!world.shared.is_doubted());
    assert!(!world.engine_doubts());
    // What was owed besides is doubted anew, if it stays away for as long as the slow answer allows.
    world.engine.0.lock().unwrap().1 = Time::ZERO + SILENCE * 6;
    for step in [Step::Wake, Step::Tell] {
        world.step(step);
    }
    assert!(world.shared.is_doubted());
}

#[test]
fn what_replicas_are_to_confirm_is_owed_as_well() {
    let (replicas, naming) = (Replicas::AtLeast(1), Naming::Role);
    let terms = Terms { replicas, naming, timeout: Duration::from_secs(1), disk: false };
    // Before it has left, after that, and as an answer that waits for replicas.
    for steps in 0..3 {
        let mut world = World::with(Some(terms));
        assert!(!world.engine_doubts());
        if steps > 0 {
            let left = world.shared.confirming(|it, main| it.advance(Time::ZERO, main));
            assert!(left.is_some());
        }
        if steps > 1 {
            let asked = world.shared.confirming(|it, _| it.asked().answered()).unwrap();
            let Some(Awaited::Request(request, _)) = asked else { panic!("{asked:?}") };
            let granted = State { token: 5, ..State::bare(Standing::Granted) };
            let result = Ok(Reply { now: EPOCH, body: Body::Acquire(granted) });
            let event = Event::Reply { request, result };
            let passed = world.shared.confirming(|it, _| it.hear(vec![event], Vec::new()));
            assert_eq!(passed, Some(Vec::new()));
        }
        world.engine.0.lock().unwrap().1 = Time::ZERO + SILENCE;
        for step in [Step::Wake, Step::Tell] {
            world.step(step);
        }
        assert!(world.shared.is_doubted(), "{steps}");
    }
}
