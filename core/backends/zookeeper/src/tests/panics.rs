//! Whoever is told panics, as a waker or a tracing subscriber of a program can.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fencelock_engine::ClientId;
use fencelock_engine::event::Event;
use fencelock_engine::transport::Sink;
use fencelock_engine::zookeeper::{Input, Machine};
use fencelock_testkit::recorder::{BOUND, Recorder};

use crate::options::{Acl, Options};
use crate::shared::Shared;

/// Panics once, and keeps what it is told from then on.
#[derive(Default)]
struct Jumpy {
    panicked: AtomicBool,
    recorder: Recorder,
}

impl Sink for Jumpy {
    fn deliver(&self, event: Event) {
        assert!(self.panicked.swap(true, Ordering::Relaxed), "startled by {event:?}");
        self.recorder.deliver(event);
    }
}

impl Jumpy {
    /// The reason of the next word that the store cannot be reached.
    fn down(&self) -> String {
        let reason = |event: &Event| match event {
            Event::Down { reason } => Some(reason.clone()),
            _ => None,
        };
        self.recorder.wait(BOUND, reason).expect("the client is told")
    }
}

fn client() -> ClientId {
    ClientId::new(1, "").unwrap()
}

#[test]
fn a_panic_of_whoever_is_told_does_not_silence_the_client() {
    let sink = Arc::new(Jumpy::default());
    let machine = Machine::new(Options::new(Vec::new()).machine(), client()).unwrap();
    let shared = Shared::new(machine, Acl::Open, sink.clone());
    let tell = |reason: &str| shared.handle(Input::Unreachable { reason: reason.to_owned() });
    catch_unwind(AssertUnwindSafe(|| tell("first"))).expect_err("it panics");
    tell("second");
    assert_eq!(sink.down(), "second");
}

#[test]
fn a_panic_in_the_transports_task_is_told_and_it_tries_again() {
    let port = fencelock_testkit::free_port().unwrap();
    let options = Options::from_url(&format!("zk://127.0.0.1:{port}")).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let sink = Arc::new(Jumpy::default());
    let transport = crate::open(options, client(), sink.clone(), runtime.handle()).unwrap();
    let reason = sink.down();
    assert!(reason.contains("startled by") && reason.contains("report"), "{reason}");
    let next = sink.down();
    assert!(next.contains(&port.to_string()), "another attempt: {next}");
    drop(transport);
}
