//! Every error reply that a real server can be made to give.

mod common;

use std::time::Duration;

use common::{Client, beat, hold, refused};
use fencelock_engine::event::Event;
use fencelock_engine::reply::{Body, Failure, RefusalKind, Released, Standing};
use fencelock_redis::Options;
use fencelock_testkit::{RedisServer, eventually, skip_servers};

fn retried(client: &Client, code: &str) {
    let (kind, message) = refused(client.acquire("new", hold(), false));
    assert_eq!(kind, RefusalKind::Retry, "{message}");
    assert!(message.contains(code), "{message}");
}

#[test]
fn oom_refuses_new_locks_and_keeps_those_held() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let held = client.grant("held");
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();
    retried(&client, "OOM");
    match client.call(beat(&[("held", held)])).unwrap().body {
        Body::Beat(states) => {
            assert_eq!(states[0].as_ref().unwrap().standing, Standing::Granted);
        }
        body => panic!("{body:?}"),
    }
    assert_eq!(client.release("held", held), Ok(Released::Done));
    server.cli(&["CONFIG", "SET", "maxmemory", "0"]).unwrap();
    client.grant("new");
}

#[test]
fn misconf_when_the_snapshot_cannot_be_written() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().config("dbfilename taken.rdb").start().unwrap();
    let client = Client::to(&server);
    std::fs::create_dir(server.folder().join("taken.rdb")).unwrap();
    server.cli(&["CONFIG", "SET", "save", "3600 1000000"]).unwrap();
    server.cli(&["BGSAVE"]).unwrap();
    eventually("the snapshot fails", || {
        let redis::Value::BulkString(info) = server.cli(&["INFO", "persistence"]).unwrap() else {
            panic!()
        };
        String::from_utf8(info).unwrap().contains("rdb_last_bgsave_status:err").then_some(())
    });
    retried(&client, "MISCONF");
    server.cli(&["CONFIG", "SET", "stop-writes-on-bgsave-error", "no"]).unwrap();
    client.grant("new");
}

#[test]
fn noreplicas_when_too_few_are_connected() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
    retried(&client, "NOREPLICAS");
    server.cli(&["CONFIG", "SET", "min-replicas-to-write", "0"]).unwrap();
    client.grant("new");
}

#[test]
fn readonly_and_masterdown_on_a_replica() {
    if skip_servers() {
        return;
    }
    let master = RedisServer::start().unwrap();
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let port = master.port().to_string();
    server.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    eventually("the replica has its data", || {
        let redis::Value::BulkString(info) = server.cli(&["INFO", "replication"]).unwrap() else {
            panic!()
        };
        String::from_utf8(info).unwrap().contains("master_link_status:up").then_some(())
    });
    let refusal = |code: &str| {
        eventually(code, || match client.acquire("new", hold(), false) {
            Err(Failure::Refused(refusal)) if refusal.message.contains(code) => Some(refusal.kind),
            _ => None,
        })
    };
    assert_eq!(refusal("READONLY"), RefusalKind::Retry);
    // The host's name may lead to the new master by now: it connects anew.
    eventually("it connects anew", || {
        // The answer does not matter here.
        let _ = client.acquire("new", hold(), false);
        let down =
            |event: &Event| matches!(event, Event::Down { reason } if reason.contains("replica"));
        client.sink.all().iter().any(down).then_some(())
    });
    client.await_up();
    server.cli(&["CONFIG", "SET", "replica-serve-stale-data", "no"]).unwrap();
    drop(master);
    assert_eq!(refusal("MASTERDOWN"), RefusalKind::Retry);
    server.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    eventually("it locks again", || client.acquire("new", hold(), false).ok());
}

#[test]
fn busy_while_a_script_runs_for_long() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().config("lua-time-limit 20").start().unwrap();
    let client = Client::to(&server);
    let mut stuck = server.connection().unwrap();
    let script = std::thread::spawn(move || {
        redis::cmd("EVAL").arg("while true do end").arg(0).query::<redis::Value>(&mut stuck)
    });
    eventually("the server is busy", || {
        match client.acquire("new", hold(), false) {
            // Before the limit has passed an answer may still come; it is asked again.
            Ok(_) => None,
            Err(_) => Some(()),
        }
    });
    retried(&client, "BUSY");
    // A client that comes now cannot load its scripts; it is down, not misconfigured.
    let late = Client::open(Options::from_url(&server.url()).unwrap());
    assert!(late.await_down().contains("BUSY"));
    server.cli(&["SCRIPT", "KILL"]).unwrap();
    assert!(script.join().unwrap().is_err());
    late.await_up();
    client.grant("again");
}

#[test]
fn loading_after_a_restart() {
    if skip_servers() {
        return;
    }
    let mut server = RedisServer::builder()
        .persistent()
        .config("key-load-delay 100")
        .config("loading-process-events-interval-bytes 1024")
        .start()
        .unwrap();
    let client = Client::to(&server);
    let fill = "for i = 1, 20000 do redis.call('SET', 'fill:' .. i, string.rep('x', 100)) end";
    server.cli(&["EVAL", fill, "0"]).unwrap();
    server.cli(&["BGREWRITEAOF"]).unwrap();
    eventually("the file is rewritten", || {
        let redis::Value::BulkString(info) = server.cli(&["INFO", "persistence"]).unwrap() else {
            panic!()
        };
        let info = String::from_utf8(info).unwrap();
        (info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0"))
            .then_some(())
    });
    server.restart().unwrap();
    client.await_up();
    let reasons: Vec<_> = client
        .sink
        .take()
        .into_iter()
        .map(|event| match event {
            Event::Down { reason } => reason,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(reasons.iter().any(|reason| reason.contains("LOADING")), "{reasons:?}");
    client.grant("new");
}

#[test]
fn a_foreign_key_is_named() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    server.cli(&["SET", "fl:{x}", "not a lock"]).unwrap();
    let (kind, message) = refused(client.acquire("x", hold(), false));
    assert_eq!(kind, RefusalKind::Misconfigured);
    assert!(message.contains("fl:{x}"), "{message}");
    // In a batch it costs only itself.
    let held = client.grant("y");
    match client.call(beat(&[("x", hold()), ("y", held)])).unwrap().body {
        Body::Beat(states) => {
            assert_eq!(states[0].as_ref().unwrap_err().kind, RefusalKind::Misconfigured);
            assert_eq!(states[1].as_ref().unwrap().standing, Standing::Granted);
        }
        body => panic!("{body:?}"),
    }
}

/// Sets a field of a lock's record, or takes it out.
fn damage(server: &RedisServer, lock: &str, field: &str, text: Option<&str>) {
    let key = format!("fl:{{{lock}}}");
    match text {
        Some(text) => server.cli(&["HSET", &key, field, text]).unwrap(),
        None => server.cli(&["HDEL", &key, field]).unwrap(),
    };
}

#[test]
fn a_damaged_record_costs_only_its_own_hold_in_a_batch() {
    const FIELDS: [&str; 15] =
        ["v", "o", "t", "e", "u", "k", "r", "b", "n", "x", "i", "d", "l", "f", "c"];
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let client = Client::to(&server);
    let (first, last) = (client.grant("first"), client.grant("last"));
    let mut damaged = Vec::new();
    for field in FIELDS {
        for text in [None, Some(""), Some("?"), Some("-1"), Some("1e400"), Some("nan")] {
            let lock = format!("{field} {text:?}");
            let held = client.grant(&lock);
            damage(&server, &lock, field, text);
            damaged.push((lock, held));
        }
    }
    let mut locks = vec![("first", first)];
    locks.extend(damaged.iter().map(|(lock, held)| (lock.as_str(), *held)));
    locks.push(("last", last));
    // The second time it meets what the first one left.
    for _ in 0..2 {
        let Body::Beat(states) = client.call(beat(&locks)).unwrap().body else { panic!() };
        assert_eq!(states.len(), locks.len());
        for at in [0, locks.len() - 1] {
            let state = states[at].as_ref().unwrap();
            assert_eq!(state.standing, Standing::Granted, "{}", locks[at].0);
        }
        for ((lock, _), state) in locks.iter().zip(&states) {
            if ["v", "t", "e", "d", "l", "f"].iter().any(|it| *lock == format!("{it} Some(\"?\")"))
            {
                let refusal = state.as_ref().unwrap_err();
                assert_eq!(refusal.kind, RefusalKind::Misconfigured, "{lock}: {refusal:?}");
            }
        }
    }
    // Who waits behind a damaged hold costs nobody either.
    damage(&server, "first", "d", Some("?"));
    let waits = client.call(beat(&[("first", hold()), ("last", last)])).unwrap().body;
    let Body::Beat(states) = waits else { panic!() };
    assert!(states[0].is_err(), "{states:?}");
    assert_eq!(states[1].as_ref().unwrap().standing, Standing::Granted);
}

#[test]
fn too_many_clients_is_waited_out() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let first = Client::to(&server);
    server.cli(&["CONFIG", "SET", "maxclients", "1"]).unwrap();
    let mut options = Options::from_url(&server.url()).unwrap();
    options.backoff_max = Duration::from_millis(50);
    let second = Client::open(options);
    assert!(second.await_down().contains("max number of clients"));
    drop(first);
    second.await_up();
}
