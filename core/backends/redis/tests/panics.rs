//! What panics in the connection's task does not end it.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::{Client, Collector};
use fencelock_engine::event::Event;
use fencelock_engine::request::{Op, Request, RequestId};
use fencelock_engine::transport::{Sink, Transport as _};
use fencelock_engine::{ClientId, Error};
use fencelock_redis::{Login, Options, open};
use fencelock_testkit::{RedisServer, skip_servers};

#[test]
fn a_credentials_callback_that_panics_is_asked_again() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().password("pw").start().unwrap();
    let mut options = Options::from_url(&format!("redis://{}", server.address())).unwrap();
    let asked = AtomicUsize::new(0);
    options.credentials = Some(Arc::new(move || {
        assert_ne!(asked.fetch_add(1, Ordering::SeqCst), 1, "the vault is on fire");
        Ok::<_, Error>(Login { user: None, password: "pw".to_owned() })
    }));
    let client = Client::up(options);
    server.cli(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
    client.await_down();
    let reason = client.await_down();
    assert!(reason.contains("credentials callback panicked"), "{reason}");
    assert!(reason.contains("the vault is on fire"), "{reason}");
    client.await_up();
    client.grant("after");
}

/// Panics when it first hears an answer.
#[derive(Default)]
struct Fragile {
    heard: Collector,
    broken: AtomicBool,
}

impl Sink for Fragile {
    fn deliver(&self, event: Event) {
        let answer = matches!(event, Event::Reply { .. });
        assert!(!answer || self.broken.swap(true, Ordering::SeqCst), "fragile");
        self.heard.deliver(event);
    }
}

#[test]
fn a_panic_in_the_task_is_told_as_the_connections_loss() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.unwrap();
    let sink = Arc::new(Fragile::default());
    let options = Options::from_url(&server.url()).unwrap();
    let client = ClientId::new(1, "fragile").unwrap();
    let transport = open(options, client, sink.clone(), runtime.handle()).unwrap();
    let up = |event: &Event| matches!(event, Event::Up { .. }).then_some(());
    sink.heard.find("up", up);
    let ask = |number| {
        transport.enqueue(Request { id: RequestId(number), op: Op::Time });
        transport.flush();
    };
    ask(1);
    let reason = sink.heard.find("down", |event| match event {
        Event::Down { reason } => Some(reason.clone()),
        _ => None,
    });
    assert!(reason.contains("panicked: fragile"), "{reason}");
    sink.heard.find("up again", up);
    ask(2);
    sink.heard.find("an answer", |event| match event {
        Event::Reply { request, result: Ok(_) } => (request.0 == 2).then_some(()),
        _ => None,
    });
    transport.close();
    runtime.shutdown_background();
}
