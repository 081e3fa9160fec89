//! Errors, names, inspection, metrics.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fencelock::{ErrorKind, LockInfo, OwnerId};

use super::{LIMIT, World, eventually, queued, soon, waiting};

pub async fn p14_kinds_of_errors(world: &World) {
    let client = world.client().await;
    for name in [String::new(), "a\0b".to_owned(), "x".repeat(513)] {
        assert_eq!(client.lock(name).unwrap_err().kind(), ErrorKind::InvalidArgument);
    }
    let lock = client.lock("errors").unwrap();
    for lease in [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(8 * 24 * 3600)] {
        let error = lock.clone().lease(lease).acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{lease:?}");
    }
    assert!(OwnerId::new("").is_err());
    let label = world.builder().label("x".repeat(200)).connect().await.unwrap_err();
    assert_eq!(label.kind(), ErrorKind::InvalidArgument);
    let lease = world.builder().lease(Duration::from_millis(1)).connect().await.unwrap_err();
    assert_eq!(lease.kind(), ErrorKind::InvalidArgument);
}

pub async fn odd_names_are_names_of_their_own(world: &World) {
    let client = world.client().await;
    let long = "é".repeat(256);
    let names = [
        "a", "A", " a", "a ", "a:b", "a/b", "a//b", "{a}", "}a", "{}", "{", "a%7Bb", "a%b", "%",
        "*", "?", "[a]", "a\nb", "'", "\"", ";--", "ä", "a\u{308}", "鎖", "🔒", "fl:{a}", "q:a",
        &long,
    ];
    // Where names are paths, no part may be empty and no lock lie below another.
    let paths = client.capabilities().paths;
    let names: Vec<&str> =
        names.into_iter().filter(|name| !paths || !matches!(*name, "a" | "a//b")).collect();
    if paths {
        for name in ["a//b", "/a", "a/", "a/../b", "."] {
            let error = client.lock(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{name}");
        }
    }
    let mut guards = Vec::new();
    for &name in &names {
        let guard = client.lock(name).unwrap().try_acquire().await.unwrap();
        assert_eq!(guard.name(), name);
        guards.push(guard);
    }
    let mut listed: Vec<_> =
        client.list("", 1000).await.unwrap().iter().map(|n| n.as_str().to_owned()).collect();
    listed.sort();
    let mut expected: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    expected.sort();
    assert_eq!(listed, expected);
    for &name in &names {
        let info = client.inspect(name).await.unwrap().unwrap();
        assert_eq!((info.name.as_str(), info.holds.len()), (name, 1));
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
}

pub async fn inspect_shows_holder_token_and_waiters_in_order(world: &World) {
    let client = world.client().await;
    assert!(client.inspect("seen").await.unwrap().is_none_or(|info| info.holds.is_empty()));
    let guard = client.lock("seen").unwrap().acquire().await.unwrap();
    let mut waiters = Vec::new();
    let mut ids = Vec::new();
    for index in 0..3 {
        let waiter = world.builder().label(format!("w{index}")).connect().await.unwrap();
        ids.push(waiter.id().to_owned());
        let lock = waiter.lock("seen").unwrap();
        waiters.push(tokio::spawn(async move { lock.acquire().await.map(drop) }));
        queued(&client, "seen", index + 1).await;
    }
    let info = client.inspect("seen").await.unwrap().unwrap();
    assert_eq!(info.token, guard.token().get());
    assert!(info.last_token >= info.token);
    assert_eq!(info.holds.len(), 1);
    assert_eq!((&*info.holds[0].client, &*info.holds[0].label), (client.id(), "suite"));
    assert!(info.holds[0].expires_in <= Duration::from_secs(30));
    let shown: Vec<_> = info.waiters.iter().map(|waiter| waiter.client.clone()).collect();
    assert_eq!(shown, ids);
    assert_eq!(info.waiters[2].label, "w2");
    guard.release().await.unwrap();
    for waiter in waiters {
        soon("a waiter", waiter).await.unwrap().unwrap();
    }
}

pub async fn list_finds_by_prefix(world: &World) {
    let client = world.client().await;
    let mut guards = Vec::new();
    for name in ["shop/a", "shop/b", "shop*", "other"] {
        guards.push(client.lock(name).unwrap().acquire().await.unwrap());
    }
    let names = |prefix: &'static str, limit| {
        let client = client.clone();
        async move {
            let mut names: Vec<_> = client
                .list(prefix, limit)
                .await
                .unwrap()
                .iter()
                .map(|name| name.as_str().to_owned())
                .collect();
            names.sort();
            names
        }
    };
    assert_eq!(names("shop/", 10).await, ["shop/a", "shop/b"]);
    assert_eq!(names("shop*", 10).await, ["shop*"], "a prefix is no pattern");
    assert_eq!(names("none", 10).await, [""; 0]);
    assert_eq!(names("", 2).await.len(), 2);
}

pub async fn list_keeps_its_limit_among_many_names(world: &World) {
    let client = world.client().await;
    let name = |at: usize| format!("many/{:04}", (at * 7) % 500);
    for at in 0..500 {
        // Held, so that every store lists them for certain.
        std::mem::forget(client.lock(name(at)).unwrap().acquire().await.unwrap());
    }
    let listed: Vec<String> =
        client.list("many/", 9).await.unwrap().iter().map(|n| n.as_str().to_owned()).collect();
    let first: Vec<String> = (0..9).map(|at| format!("many/{at:04}")).collect();
    assert_eq!(listed, first, "the first by their bytes");
    let nothing = client.list("many/", 0).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::InvalidArgument);
    assert_eq!(client.list("many/", usize::MAX).await.unwrap().len(), 500);
}

pub async fn is_locked_follows_the_holder(world: &World) {
    let (client, other) = (world.client().await, world.client().await);
    let lock = client.lock("followed").unwrap();
    assert!(!lock.is_locked().await.unwrap());
    let guard = other.lock("followed").unwrap().acquire().await.unwrap();
    assert!(lock.is_locked().await.unwrap());
    guard.release().await.unwrap();
    assert!(!lock.is_locked().await.unwrap());
}

pub async fn ping_tells_the_stores_time(world: &World) {
    let client = world.client().await;
    let store = client.ping().await.unwrap();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    if client.capabilities().processes && client.capabilities().store == "redis" {
        assert!(store.abs_diff(wall) < LIMIT, "{store:?} {wall:?}");
    }
    assert!(client.ping().await.unwrap() >= store);
}

pub async fn metrics_count_what_happened(world: &World) {
    let client = world.client().await;
    let lock = client.lock("counted").unwrap();
    let outer = lock.acquire().await.unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    outer.release().await.unwrap();
    let metrics = client.metrics();
    assert_eq!((metrics.grants(), metrics.grants_reentry()), (2, 1));
    assert_eq!((metrics.waits.count(), metrics.holds.count()), (1, 1));
    assert_eq!((metrics.losses(), metrics.waiting), (0, 0));
    assert!(metrics.servers.iter().any(|it| it.connected && it.requests > 0), "{metrics:?}");
    let text = metrics.to_prometheus();
    let server = metrics.servers.iter().find(|it| it.connected).unwrap();
    let connected = format!("fencelock_server_connected{{server=\"{}\"}} 1", server.name);
    for line in [
        connected.as_str(),
        "fencelock_grants_total{how=\"reentry\"} 1",
        "fencelock_hold_seconds_bucket{le=\"+Inf\"} 1",
        "fencelock_hold_seconds_count 1",
        "fencelock_waiting 0",
        "# TYPE fencelock_wait_seconds histogram",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
}

pub async fn one_client_serves_many_tasks_on_many_locks(world: &World) {
    let client = world.client().await;
    let mut tasks = Vec::new();
    for index in 0..32 {
        let lock = client.lock(format!("key/{}", index % 8)).unwrap();
        tasks.push(tokio::spawn(async move {
            for _ in 0..10 {
                let guard = lock.acquire_timeout(LIMIT).await.unwrap();
                assert!(guard.is_valid());
                if index % 3 == 0 {
                    guard.release().await.unwrap();
                }
            }
        }));
    }
    for task in tasks {
        soon("a worker", task).await.unwrap();
    }
    assert_eq!(client.metrics().grants(), 320);
    assert_eq!(client.metrics().losses(), 0);
}

pub async fn inspect_counts_who_waits_within_a_client(world: &World) {
    let holder = world.quick().lease(Duration::from_secs(1)).connect().await.unwrap();
    let (other, third) = (world.client().await, world.client().await);
    let guard = holder.lock("crowded").unwrap().acquire().await.unwrap();
    let mut waits = Vec::new();
    for client in [&holder, &holder, &holder, &other, &other] {
        let lock = client.lock("crowded").unwrap();
        waits.push(tokio::spawn(async move { lock.acquire().await.map(drop) }));
    }
    waiting(&holder, 3).await;
    waiting(&other, 2).await;
    queued(&third, "crowded", 1).await;
    let counts = |info: &LockInfo| {
        (info.holds[0].local_waiters, info.waiters[0].local_waiters, info.waiting)
    };
    // Each knows its own at once.
    let own = holder.inspect("crowded").await.unwrap().unwrap();
    assert_eq!((own.holds[0].local_waiters, own.waiting >= 4), (Some(3), true), "{own:?}");
    let own = other.inspect("crowded").await.unwrap().unwrap();
    assert_eq!((own.waiters[0].local_waiters, own.waiting >= 2), (Some(1), true), "{own:?}");
    if third.capabilities().store == "zookeeper" {
        // What Curator's nodes have no room for is unknown.
        let info = third.inspect("crowded").await.unwrap().unwrap();
        assert_eq!(counts(&info), (None, None, 1));
    } else {
        // Others know what the latest renewal and heartbeat said.
        eventually("the renewals that tell", || async {
            let info = third.inspect("crowded").await.unwrap().unwrap();
            (counts(&info) == (Some(3), Some(1), 5)).then_some(())
        })
        .await;
    }
    guard.release().await.unwrap();
    for wait in waits {
        soon("a waiter", wait).await.unwrap().unwrap();
    }
}
