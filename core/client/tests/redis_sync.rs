//! Grants that count once replicas have them: what is granted then, and what is not.

use std::time::Duration;

use fencelock::{Builder, Client, ErrorKind};
use fencelock_testkit::{RedisCluster, RedisSentinels, RedisServer, eventually, skip_servers};

const LIMIT: Duration = Duration::from_secs(40);

/// A master and its replicas, which follow it.
struct Servers {
    master: RedisServer,
    replicas: Vec<RedisServer>,
}

impl Servers {
    /// `None` when servers are left out.
    fn start(replicas: usize) -> Option<Servers> {
        if skip_servers() {
            return None;
        }
        let server = || RedisServer::builder().config("repl-diskless-sync-delay 0");
        let master = server().start().unwrap();
        let primary = format!("replicaof 127.0.0.1 {}", master.port());
        let replica = |_| server().config(&primary).start().unwrap();
        let replicas: Vec<RedisServer> = (0..replicas).map(replica).collect();
        for replica in &replicas {
            eventually("the replica follows", || {
                let info = replica.cli(&["INFO", "replication"]).ok()?;
                let info: String = redis::from_redis_value(info).ok()?;
                info.contains("master_link_status:up").then_some(())
            });
        }
        // The master counts one only once it has heard from it.
        eventually("all replicas are online", || {
            let info: String =
                redis::from_redis_value(master.cli(&["INFO", "replication"]).ok()?).ok()?;
            (info.matches("state=online").count() == replicas.len()).then_some(())
        });
        Some(Servers { master, replicas })
    }

    fn builder(&self, options: &str) -> Builder {
        Client::builder(format!("{}?{options}", self.master.url())).connect_timeout(LIMIT)
    }

    async fn client(&self, options: &str) -> Client {
        self.builder(options).connect().await.unwrap()
    }
}

async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for: {what}"),
    }
}

/// Waits until nobody has the lock, as a client sees it that waits for no replica.
async fn free(plain: &Client, name: &str) {
    let free = async {
        while plain.inspect(name).await.unwrap().is_some_and(|info| !info.holds.is_empty()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the lock is given back", free).await;
}

/// Waits until somebody has the lock, or waits for it.
async fn taken(plain: &Client, name: &str, holds: usize, waiters: usize) {
    let taken = async {
        loop {
            let info = plain.inspect(name).await.unwrap();
            let seen = info.map_or((0, 0), |info| (info.holds.len(), info.waiters.len()));
            if seen == (holds, waiters) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("holds and waiters at the store", taken).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_granted_is_at_the_replicas() {
    let Some(servers) = Servers::start(2) else { return };
    for options in ["sync_replicas=2", "sync_replicas=all", "sync_replicas=all&protocol=2"] {
        let client = servers.client(options).await;
        for number in 0..50 {
            let name = format!("{options} {number}");
            let guard = client.lock(&name).unwrap().try_acquire().await.unwrap();
            for replica in &servers.replicas {
                let there = replica.cli(&["EXISTS", &format!("fl:{{{name}}}")]).unwrap();
                assert_eq!(there, redis::Value::Int(1), "{name}");
            }
            guard.release().await.unwrap();
        }
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_141_without_replicas_nothing_is_granted_and_nothing_is_left_held() {
    let Some(servers) = Servers::start(1) else { return };
    let builder = servers.builder("sync_replicas=1&sync_timeout=100ms");
    let client = builder.request_timeout(Duration::from_secs(1)).connect().await.unwrap();
    let plain = servers.client("").await;
    servers.replicas[0].stop().unwrap();
    let lock = client.lock("x").unwrap();
    for _ in 0..2 {
        let error = lock.try_acquire().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
        assert!(error.message().contains("of 1 replica that must have it"), "{error}");
        assert!(error.message().contains("sync_replicas"), "{error}");
        free(&plain, "x").await;
    }
    let error = lock.acquire_timeout(Duration::from_millis(500)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    free(&plain, "x").await;
    // Who waits without a bound goes on until there is a replica.
    let wait = tokio::spawn({
        let lock = client.lock("y").unwrap();
        async move { lock.acquire().await }
    });
    taken(&plain, "y", 1, 0).await;
    assert!(!wait.is_finished());
    servers.replicas[0].cont().unwrap();
    soon("the grant", wait).await.unwrap().unwrap().release().await.unwrap();
    free(&plain, "y").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_of_several_are_enough_and_all_are_not_without_one_that_is_down() {
    let Some(mut servers) = Servers::start(2) else { return };
    let some = servers.client("sync_replicas=1").await;
    let all = "sync_replicas=all&sync_timeout=100ms&request_timeout=1s";
    let all = servers.client(all).await;
    all.lock("x").unwrap().try_acquire().await.unwrap().release().await.unwrap();
    servers.replicas[1].kill().unwrap();
    some.lock("x").unwrap().try_acquire().await.unwrap().release().await.unwrap();
    let error = all.lock("x").unwrap().try_acquire().await.unwrap_err();
    assert!(error.message().contains("of 2 replicas"), "{error}");
    servers.replicas[1].restart().unwrap();
    let lock = all.lock("x").unwrap();
    let again = lock.acquire_timeout(LIMIT).await.unwrap();
    again.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_144_a_lock_that_is_handed_over_counts_once_replicas_have_it() {
    let Some(servers) = Servers::start(1) else { return };
    let options = "sync_replicas=1&sync_timeout=100ms";
    let (one, other) = (servers.client(options).await, servers.client(options).await);
    let plain = servers.client("").await;
    let guard = one.lock("x").unwrap().acquire().await.unwrap();
    let lock = other.lock("x").unwrap();
    let wait = tokio::spawn(async move { lock.acquire().await });
    taken(&plain, "x", 1, 1).await;
    servers.replicas[0].stop().unwrap();
    // A release waits for nobody.
    let token = guard.token();
    guard.release().await.unwrap();
    taken(&plain, "x", 1, 0).await;
    // It is the waiter's at the store, and the waiter has not heard so.
    assert!(!wait.is_finished());
    servers.replicas[0].cont().unwrap();
    let next = soon("the grant", wait).await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p08_a_hold_whose_renewals_nobody_confirms_is_lost_and_told() {
    let Some(servers) = Servers::start(1) else { return };
    let builder = servers.builder("sync_replicas=1").lease(Duration::from_secs(2));
    let client = builder.connect().await.unwrap();
    let plain = servers.client("").await;
    let guard = client.lock("x").unwrap().acquire().await.unwrap();
    servers.replicas[0].stop().unwrap();
    soon("the loss", guard.lost()).await;
    assert!(!guard.is_valid());
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    free(&plain, "x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p07_many_holds_are_renewed_and_confirmed_together() {
    let Some(servers) = Servers::start(1) else { return };
    let builder = servers.builder("sync_replicas=1").lease(Duration::from_secs(1));
    let client = builder.connect().await.unwrap();
    let names = (0..300).map(|number| format!("held {number}"));
    let takes = names.map(|name| {
        let lock = client.lock(&name).unwrap();
        tokio::spawn(async move { lock.acquire().await.unwrap() })
    });
    let mut guards = Vec::new();
    for take in takes.collect::<Vec<_>>() {
        guards.push(soon("a grant", take).await.unwrap());
    }
    while client.metrics().renewals < 900 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for guard in guards {
        guard.release().await.unwrap();
    }
    assert_eq!(client.metrics().losses(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_gives_a_lock_up_and_tries_it_again_gets_it() {
    let Some(servers) = Servers::start(1) else { return };
    let client = servers.client("sync_replicas=1").await;
    let lock = client.lock("x").unwrap();
    let mut token = None;
    for _ in 0..200 {
        // Released in the background, by the other connection.
        let guard = lock.try_acquire().await.unwrap();
        assert!(Some(guard.token()) > token);
        token = Some(guard.token());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_and_permits_are_confirmed_too() {
    let Some(servers) = Servers::start(1) else { return };
    let client = servers.client("sync_replicas=all&sync_timeout=100ms&request_timeout=1s").await;
    let reader = client.rw_lock("x").unwrap().read().await.unwrap();
    let permits = client.semaphore("p", 2).unwrap().acquire_many(2).await.unwrap();
    servers.replicas[0].stop().unwrap();
    // It reads on: that it may write is confirmed by nobody.
    let error = reader.try_upgrade().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(client.rw_lock("y").unwrap().try_read().await.is_err());
    servers.replicas[0].cont().unwrap();
    permits.release().await.unwrap();
    reader.release().await.unwrap();
    let writer = client.rw_lock("x").unwrap().write_timeout(LIMIT).await.unwrap();
    writer.downgrade().await.unwrap();
    writer.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_143_disks_confirm_only_where_they_can() {
    let Some(servers) = Servers::start(1) else { return };
    let url = format!("{}?sync_replicas=1&sync_disk=yes", servers.master.url());
    let error = Client::connect(&url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    let knows = servers.master.cli(&["COMMAND", "INFO", "WAITAOF"]).unwrap();
    let knows = knows != redis::Value::Array(vec![redis::Value::Nil]);
    let why = if knows { "appendonly yes" } else { "7.2" };
    assert!(error.message().contains(why), "{error}");
    assert!(error.message().contains("leave sync_disk out"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p01_what_all_replicas_have_outlives_the_master() {
    if skip_servers() {
        return;
    }
    let mut all = RedisSentinels::start().unwrap();
    let builder = Client::builder(format!("{}?sync_replicas=all", all.url()));
    let client = builder.connect_timeout(LIMIT).connect().await.unwrap();
    let plain = Client::builder(all.url()).connect_timeout(LIMIT).connect().await.unwrap();
    let mut guards = Vec::new();
    for number in 0..50 {
        guards.push(client.lock(format!("held {number}")).unwrap().acquire().await.unwrap());
    }
    // Right after the last grant.
    tokio::task::block_in_place(|| {
        all.servers[0].kill().unwrap();
        all.await_master_after(0);
        all.servers[0].restart().unwrap();
    });
    for (number, guard) in guards.iter().enumerate() {
        let taken = async {
            loop {
                let lock = plain.lock(format!("held {number}")).unwrap();
                match lock.try_acquire().await {
                    Err(error) if error.kind() == ErrorKind::Contended => return,
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
                    Ok(_) => panic!("{number} was granted to another"),
                }
            }
        };
        soon("the other's answer", taken).await;
        assert!(guard.is_valid(), "{number}");
    }
    for guard in guards {
        soon("the release", guard.release()).await.unwrap();
    }
    assert_eq!(client.metrics().losses(), 0);
    // The old master is a replica again: all of them confirm.
    let again = client.lock("again").unwrap().acquire_timeout(LIMIT).await.unwrap();
    again.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_master_of_a_cluster_waits_for_its_own_replicas() {
    if skip_servers() {
        return;
    }
    // A replica that is down is no reason to stop serving.
    let cluster = RedisCluster::start().unwrap();
    let options = "sync_replicas=all&sync_timeout=100ms&request_timeout=1s";
    let builder = Client::builder(format!("{}?{options}", cluster.url()));
    let client = builder.connect_timeout(LIMIT).connect().await.unwrap();
    let names: Vec<String> = (0..3).map(|at| cluster.name_at(at, "confirmed ")).collect();
    for name in &names {
        let guard = client.lock(name).unwrap().acquire_timeout(LIMIT).await.unwrap();
        guard.release().await.unwrap();
    }
    cluster.servers[3].stop().unwrap();
    let error = client.lock(&names[0]).unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("of 1 replica"), "{error}");
    for name in &names[1..] {
        client.lock(name).unwrap().try_acquire().await.unwrap().release().await.unwrap();
    }
    cluster.servers[3].cont().unwrap();
    let guard = client.lock(&names[0]).unwrap().acquire_timeout(LIMIT).await.unwrap();
    guard.release().await.unwrap();
}
