//! Connections that break, and what becomes of requests.

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{Client, acquire, hold, name};
use fencelock_engine::event::Event;
use fencelock_engine::reply::{Body, Failure, Push, Released, Standing};
use fencelock_engine::request::Op;
use fencelock_engine::transport::{Doubt, Transport};
use fencelock_redis::Options;
use fencelock_testkit::{Fault, Proxy, RedisServer, eventually, skip_servers};

fn through(proxy: &Proxy) -> Client {
    Client::up(Options::from_url(&format!("redis://{}", proxy.address())).unwrap())
}

#[test]
fn the_server_is_killed_and_comes_back_empty() {
    if skip_servers() {
        return;
    }
    let mut server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let held = client.grant("x");
    server.kill().unwrap();
    client.await_down();
    assert_eq!(client.call(Op::Time), Err(Failure::NotSent));
    server.restart().unwrap();
    client.await_up();
    // The scripts are loaded and the inbox is subscribed: a hand-off works.
    assert_eq!(client.release("x", held), Ok(Released::Unknown));
    let first = client.grant("x");
    let second = hold();
    assert_eq!(client.acquire("x", second, true).unwrap().standing, Standing::Queued);
    client.release("x", first).unwrap();
    client.sink.find("granted", |event| {
        matches!(event, Event::Push(Push::Granted { hold, .. }) if *hold == second).then_some(())
    });
}

#[test]
fn a_request_that_was_lost_is_unknown_and_did_nothing() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    proxy.set(Fault::SwallowRequests);
    let asked = client.send(acquire("x", hold(), false));
    eventually("it is lost", || (proxy.counts().swallowed_requests > 0).then_some(()));
    proxy.set(Fault::Pass);
    proxy.cut();
    assert_eq!(client.answer(asked), Err(Failure::Unknown));
    client.await_down();
    client.await_up();
    assert_eq!(client.call(Op::Inspect(name("x"))).unwrap().body, Body::Inspect(None));
}

#[test]
fn a_request_whose_reply_was_lost_is_unknown_and_may_be_repeated() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    let id = hold();
    proxy.set(Fault::SwallowReplies);
    let asked = client.send(acquire("x", id, false));
    eventually("the reply is lost", || (proxy.counts().swallowed_replies > 0).then_some(()));
    proxy.set(Fault::Pass);
    proxy.cut();
    assert_eq!(client.answer(asked), Err(Failure::Unknown));
    client.await_down();
    client.await_up();
    assert_eq!(client.acquire("x", id, false).unwrap().standing, Standing::Granted);
    match client.call(Op::Inspect(name("x"))).unwrap().body {
        Body::Inspect(Some(info)) => assert_eq!(info.holds.len(), 1, "counted once"),
        body => panic!("{body:?}"),
    }
}

#[test]
fn every_request_gets_one_answer_however_often_the_connection_breaks() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Arc::new(through(&proxy));
    let callers: Vec<_> = (0..4)
        .map(|_| {
            let client = client.clone();
            std::thread::spawn(move || {
                let mut asked = Vec::new();
                for _ in 0..300 {
                    asked.push(client.send(Op::Time));
                    std::thread::sleep(Duration::from_micros(300));
                }
                asked
            })
        })
        .collect();
    for _ in 0..8 {
        std::thread::sleep(Duration::from_millis(15));
        proxy.cut();
    }
    let mut asked: Vec<_> = callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect();
    let mut answered = eventually("every answer", || {
        let answered: Vec<_> = client
            .sink
            .all()
            .into_iter()
            .filter_map(|event| match event {
                Event::Reply { request, result } => {
                    assert!(
                        matches!(result, Ok(_) | Err(Failure::Unknown | Failure::NotSent)),
                        "{result:?}"
                    );
                    Some(request)
                }
                _ => None,
            })
            .collect();
        (answered.len() >= asked.len()).then_some(answered)
    });
    asked.sort_unstable();
    answered.sort_unstable();
    assert_eq!(answered, asked);
}

#[test]
fn a_connection_that_stays_silent_gives_way_to_one_that_is_answered() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    proxy.set(Fault::SwallowRequests);
    let asked = client.send(Op::Time);
    eventually("it is lost", || (proxy.counts().swallowed_requests > 0).then_some(()));
    proxy.set(Fault::Pass);
    client.transport.reconnect(Doubt { owed: asked, heard: None });
    assert_eq!(client.answer(asked), Err(Failure::Unknown));
    assert!(client.await_down().contains("another connection"));
    client.await_up();
    client.grant("after");
}

#[test]
fn a_connection_whose_server_stands_still_is_kept() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    server.stop().unwrap();
    let asked = client.send(Op::Time);
    client.transport.reconnect(Doubt { owed: asked, heard: None });
    eventually("another one is made", || (proxy.counts().connections > 1).then_some(()));
    server.cont().unwrap();
    assert!(client.answer(asked).is_ok());
    client.grant("after");
    let down = |event: &Event| matches!(event, Event::Down { .. });
    assert!(!client.sink.all().iter().any(down), "it was given up");
}

#[test]
fn a_stopped_server_takes_what_fits_and_the_rest_is_known_not_to_be_sent() {
    if skip_servers() {
        return;
    }
    let mut server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    server.stop().unwrap();
    // More than the socket's buffers hold.
    let names: Vec<String> = (0..60_000).map(|n| format!("{n:0>500}")).collect();
    let asked: Vec<_> =
        names.iter().map(|name| client.send(Op::Inspect(common::name(name)))).collect();
    server.kill().unwrap();
    client.await_down();
    let answers = eventually("every answer", || {
        let events = client.sink.all();
        let replies: Vec<_> = events
            .into_iter()
            .filter_map(|event| match event {
                Event::Reply { request, result: Err(failure) } => Some((request, failure)),
                _ => None,
            })
            .collect();
        (replies.len() == asked.len()).then_some(replies)
    });
    let first_unsent =
        answers.iter().position(|(_, failure)| *failure == Failure::NotSent).expect("some unsent");
    assert!(first_unsent > 0);
    for (n, ((id, failure), asked)) in answers.iter().zip(&asked).enumerate() {
        assert_eq!(id, asked);
        let expected = if n < first_unsent { Failure::Unknown } else { Failure::NotSent };
        assert_eq!(*failure, expected, "at {n}, with {first_unsent} sent");
    }
}

#[test]
fn a_slow_server_is_written_to_in_pieces() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    server.stop().unwrap();
    let names: Vec<String> = (0..40_000).map(|n| format!("{n:0>500}")).collect();
    let asked: Vec<_> =
        names.iter().map(|name| client.send(Op::Inspect(common::name(name)))).collect();
    server.cont().unwrap();
    let events = eventually("every answer", || {
        let events = client.sink.all();
        (events.len() == asked.len()).then_some(events)
    });
    for (event, id) in events.iter().zip(&asked) {
        match event {
            Event::Reply { request, result: Ok(reply) } => {
                assert_eq!((request, &reply.body), (id, &Body::Inspect(None)));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn new_connections_are_refused_for_a_while() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    proxy.set(Fault::Refuse);
    proxy.cut();
    eventually("it tries again and again", || (proxy.counts().refused >= 3).then_some(()));
    proxy.set(Fault::Pass);
    client.await_up();
}

#[test]
fn nothing_is_delivered_after_close() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = through(&proxy);
    proxy.set(Fault::SwallowReplies);
    for n in 0..100 {
        client.send(acquire(&format!("x{n}"), hold(), false));
    }
    eventually("the replies are lost", || (proxy.counts().swallowed_replies > 0).then_some(()));
    client.sink.take();
    client.transport.close();
    proxy.cut();
    client.send(Op::Time);
    eventually("the server sees no client", || {
        let redis::Value::BulkString(list) = server.cli(&["CLIENT", "LIST"]).unwrap() else {
            panic!()
        };
        (!String::from_utf8(list).unwrap().contains("fencelock:")).then_some(())
    });
    assert_eq!(client.sink.all(), []);

    // Dropping is closing.
    let client = Client::to(&server);
    let sink = client.sink.clone();
    drop(client);
    eventually("the transport lets go of its sink", || {
        (Arc::strong_count(&sink) == 1).then_some(())
    });
}
