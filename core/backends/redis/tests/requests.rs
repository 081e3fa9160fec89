//! Requests, replies and pushes over a real server.

mod common;

use std::time::Duration;

use common::{Client, acquire, beat, hold, name, release};
use fencelock_engine::event::Event;
use fencelock_engine::reply::{Body, Broken, Failure, Push, RefusalKind, Released, Standing};
use fencelock_engine::request::{Break, Op, Release};
use fencelock_engine::transport::Transport;
use fencelock_redis::Options;
use fencelock_testkit::{RedisServer, eventually, skip_servers};

#[test]
fn grant_queue_push_and_cancel() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let (a, b) = (Client::to(&server), Client::to(&server));

    let first = a.grant("job");
    assert_eq!(b.acquire("job", hold(), false).unwrap().standing, Standing::Contended);
    let second = hold();
    let queued = b.acquire("job", second, true).unwrap();
    assert_eq!(queued.standing, Standing::Queued);
    assert!(queued.ahead == 0 && queued.expires_in.is_some() && !queued.publish_failed);
    match a.await_push() {
        Push::Wanted { lock, hold } => assert_eq!((lock, hold), (name("job"), first)),
        other => panic!("{other:?}"),
    }

    assert_eq!(a.release("job", first), Ok(Released::Done));
    match b.await_push() {
        Push::Granted { lock, hold, token, .. } => {
            assert_eq!((lock, hold), (name("job"), second));
            assert!(token > queued.last);
        }
        other => panic!("{other:?}"),
    }
    let third = hold();
    assert_eq!(a.acquire("job", third, true).unwrap().standing, Standing::Queued);
    assert_eq!(a.release("job", third), Ok(Released::Left));
    assert_eq!(b.release("job", second), Ok(Released::Done));
    assert_eq!(a.release("job", first), Ok(Released::Unknown));
}

#[test]
fn a_released_lock_leaves_128_bytes_at_the_most_for_the_retention() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let lock = "order-number-1234567";
    assert_eq!(lock.len(), 20);
    let held = hold();
    let used = client.acquire(lock, held, false).unwrap().token;
    let Op::Release(release) = release(lock, held) else { panic!() };
    let retention = Duration::from_secs(7);
    client.call(Op::Release(Release { used, retention, ..release })).unwrap();
    let key = format!("fl:{{{lock}}}");
    let number = |words: &[&str]| match server.cli(words).unwrap() {
        redis::Value::Int(number) => number,
        other => panic!("{other:?}"),
    };
    let bytes = number(&["MEMORY", "USAGE", &key]);
    assert!((1..=128).contains(&bytes), "{bytes} bytes");
    let left = number(&["PTTL", &key]);
    assert!(left <= 7_000, "{left} ms");
    assert_eq!(number(&["DBSIZE"]), 1);
}

#[test]
fn a_thousand_requests_are_pipelined_and_answered_in_order() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let holds: Vec<_> = (0..500).map(|n| (format!("lock {n}"), hold())).collect();
    let mut asked = Vec::new();
    for (name, hold) in &holds {
        asked.push(client.enqueue(acquire(name, *hold, false)));
        asked.push(client.enqueue(release(name, *hold)));
    }
    client.transport.flush();
    let answers = eventually("a thousand answers", || {
        let events = client.sink.all();
        (events.len() >= asked.len()).then_some(events)
    });
    for (n, (event, id)) in answers.iter().zip(&asked).enumerate() {
        let Event::Reply { request, result: Ok(reply) } = event else { panic!("{event:?}") };
        assert_eq!(request, id);
        match &reply.body {
            Body::Acquire(state) if n % 2 == 0 => assert_eq!(state.standing, Standing::Granted),
            Body::Release(released) if n % 2 == 1 => assert_eq!(*released, Released::Done),
            body => panic!("{body:?}"),
        }
    }
}

#[test]
fn many_threads_share_one_connection() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            scope.spawn(move || {
                for n in 0..50 {
                    let name = format!("{thread}/{n}");
                    let hold = client.grant(&name);
                    assert_eq!(client.release(&name, hold), Ok(Released::Done));
                }
            });
        }
    });
    assert_eq!(client.sink.take(), []);
}

#[test]
fn renew_inspect_break_and_time() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let (x, y) = (client.grant("x"), client.grant("y"));
    let gone = hold();
    match client.call(beat(&[("x", x), ("y", y), ("z", gone)])).unwrap().body {
        Body::Beat(states) => {
            let standing: Vec<_> =
                states.into_iter().map(|state| state.unwrap().standing).collect();
            assert_eq!(standing, [Standing::Granted, Standing::Granted, Standing::Gone]);
        }
        body => panic!("{body:?}"),
    }
    let seen = match client.call(Op::Inspect(name("x"))).unwrap().body {
        Body::Inspect(Some(info)) => {
            assert_eq!(info.holds.len(), 1);
            assert_eq!(info.holds[0].client, client.id.id());
            assert_eq!(info.holds[0].label, "a test");
            info.token
        }
        body => panic!("{body:?}"),
    };
    assert_eq!(client.call(Op::Inspect(name("never"))).unwrap().body, Body::Inspect(None));
    let break_x = |token, hold| {
        let what = Break { lock: name("x"), token, hold };
        let Body::Break(broken) = client.call(Op::Break(what)).unwrap().body else { panic!() };
        broken
    };
    assert_eq!(break_x(seen - 1, None), Broken::ChangedHands(seen));
    assert_eq!(break_x(seen, Some(y)), Broken::NotHeld);
    assert_eq!(break_x(seen, Some(x)), Broken::Ended(1));
    assert_eq!(break_x(u64::MAX, None), Broken::NotHeld);
    match client.await_push() {
        Push::Broken { lock, hold } => assert_eq!((lock, hold), (name("x"), x)),
        other => panic!("{other:?}"),
    }
    let time = client.call(Op::Time).unwrap();
    assert_eq!(time.body, Body::Time);
    assert!(time.now.abs_diff(common::micros()) < 60_000_000);
}

#[test]
fn a_long_list_takes_rounds_and_blocks_nobody() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    for n in 0..3000 {
        client.enqueue(acquire(&format!("list/{n:04}"), hold(), false));
    }
    client.transport.flush();
    eventually("all are held", || (client.sink.all().len() == 3000).then_some(()));
    client.sink.take();

    let listing = client.send(Op::List { prefix: "list/1".to_owned(), limit: 10_000 });
    let other = client.send(acquire("other", hold(), false));
    let order = eventually("both answers", || {
        let events = client.sink.all();
        (events.len() == 2).then_some(events)
    });
    let ids: Vec<_> = order
        .iter()
        .map(|event| match event {
            Event::Reply { request, .. } => *request,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [other, listing], "an acquire passes between the rounds of a listing");
    match client.answer(listing).unwrap().body {
        Body::List(names) => {
            let expected: Vec<_> = (1000..2000).map(|n| name(&format!("list/{n}"))).collect();
            assert_eq!(names, expected);
        }
        body => panic!("{body:?}"),
    }
}

#[test]
fn forgotten_scripts_are_loaded_again() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    server.cli(&["SCRIPT", "FLUSH"]).unwrap();
    let asked: Vec<_> =
        (0..20).map(|n| client.enqueue(acquire(&format!("l{n}"), hold(), false))).collect();
    client.transport.flush();
    for id in asked {
        match client.answer(id) {
            Err(Failure::Refused(refusal)) => assert_eq!(refusal.kind, RefusalKind::Again),
            other => panic!("{other:?}"),
        }
    }
    client.grant("l0");
    let calls = server.cli(&["INFO", "commandstats"]).unwrap();
    let redis::Value::BulkString(text) = calls else { panic!("{calls:?}") };
    let text = String::from_utf8(text).unwrap();
    let loads = fencelock_engine::redis::Codec::scripts().len() as u64 + 1;
    // Before version 7 the flush counts under the same name.
    let count = |line: &str, calls: u64| {
        text.lines().any(|stat| stat.starts_with(&format!("{line}:calls={calls},")))
    };
    assert!(
        count("cmdstat_script|load", loads) || count("cmdstat_script", loads + 1),
        "each at connect and one for all twenty: {text}"
    );
}

#[test]
fn prefix_and_database_keep_apart() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let plain = Client::to(&server);
    let url = format!("{}/2", server.url());
    let other_db = Client::up(Options::from_url(&url).unwrap());
    let url = format!("{}?prefix=shop%3A", server.url());
    let other_prefix = Client::up(Options::from_url(&url).unwrap());
    for client in [&plain, &other_db, &other_prefix] {
        client.grant("same");
    }
    assert_eq!(server.cli(&["EXISTS", "fl:{same}", "shop:{same}"]).unwrap(), redis::Value::Int(2));

    // The inbox is found in both: pushes know no databases.
    for client in [&other_db, &other_prefix] {
        let first = client.grant("pair");
        let second = hold();
        assert_eq!(client.acquire("pair", second, true).unwrap().standing, Standing::Queued);
        client.release("pair", first).unwrap();
        client.sink.find("granted", |event| {
            matches!(event, Event::Push(Push::Granted { hold, .. }) if *hold == second)
                .then_some(())
        });
    }
}
