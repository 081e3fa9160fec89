//! A client of a real cluster, whose servers fail, move slots and stand still.

use std::time::Duration;

use fencelock::{Client, ErrorKind, Guard};
use fencelock_testkit::{RedisCluster, skip_servers};

const LIMIT: Duration = Duration::from_secs(40);

async fn client(cluster: &RedisCluster) -> Client {
    let builder = Client::builder(cluster.url()).connect_timeout(LIMIT);
    builder.lease(Duration::from_secs(20)).connect().await.unwrap()
}

async fn take(client: &Client, name: &str) -> Guard {
    client.lock(name).unwrap().acquire_timeout(LIMIT).await.unwrap()
}

fn spread() -> impl Iterator<Item = String> {
    (0..60).map(|number| format!("lock {number}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_all_slots_are_held_found_and_released() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::start().unwrap();
    let [one, other] = [client(&cluster).await, client(&cluster).await];
    let mut held = Vec::new();
    for number in 0..3_000 {
        held.push(take(&one, &format!("many {number}")).await);
    }
    let names = other.list("many ", 10_000).await.unwrap();
    assert_eq!(names.len(), 3_000);
    assert!(names.is_sorted());
    assert_eq!(other.list("many ", 7).await.unwrap(), names[..7]);
    let taken = other.lock("many 7").unwrap().try_acquire().await;
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Contended);
    assert!(other.ping().await.is_ok());
    let masters: Vec<usize> = (0..3).map(|at| cluster.keys(at)).collect();
    assert!(masters.iter().all(|keys| *keys > 500), "each master has its part: {masters:?}");
    for guard in held {
        guard.release().await.unwrap();
    }
    take(&other, "many 7").await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_at_each_master_is_served() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::start().unwrap();
    let [one, other] = [client(&cluster).await, client(&cluster).await];
    for name in spread().take(20) {
        let held = take(&one, &name).await;
        let wanted = held.wanted();
        let waits = tokio::spawn({
            let (other, name) = (other.clone(), name.clone());
            async move { take(&other, &name).await.token() }
        });
        tokio::time::timeout(LIMIT, wanted).await.expect("the holder is told");
        let first = held.token();
        held.release().await.unwrap();
        assert!(waits.await.unwrap() > first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_planned_failover_keeps_holders_and_waiters() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::start().unwrap();
    let [one, other] = [client(&cluster).await, client(&cluster).await];
    let name = cluster.name_at(0, "planned ");
    let held = take(&one, &name).await;
    let elsewhere = take(&one, &cluster.name_at(1, "planned ")).await;
    let waits = tokio::spawn({
        let (other, name) = (other.clone(), name.clone());
        async move { take(&other, &name).await.token() }
    });
    listening(&cluster, &other, &name, 0).await;
    let heir = cluster.failover(0);
    listening(&cluster, &other, &name, heir).await;
    held.extend(Duration::from_secs(30)).await.unwrap();
    let first = held.token();
    held.release().await.unwrap();
    assert!(waits.await.unwrap() > first);
    elsewhere.release().await.unwrap();
    assert_eq!([one.metrics().losses(), other.metrics().losses()], [0, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_killed_is_replaced_and_its_holders_hold_on() {
    if skip_servers() {
        return;
    }
    let mut cluster = RedisCluster::start().unwrap();
    let one = client(&cluster).await;
    let name = cluster.name_at(0, "killed ");
    let held = take(&one, &name).await;
    replicated(&cluster, 0);
    cluster.servers[0].kill().unwrap();
    cluster.await_heir(0);
    held.check().unwrap();
    let first = held.token();
    held.release().await.unwrap();
    assert!(take(&one, &name).await.token() > first);
    // The old one comes back as a replica.
    cluster.servers[0].restart().unwrap();
    for name in spread() {
        take(&one, &name).await.release().await.unwrap();
    }
    assert_eq!(one.metrics().losses(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stands_still_costs_nothing_elsewhere_and_is_replaced() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::start().unwrap();
    let one = client(&cluster).await;
    let silent = cluster.name_at(0, "silent ");
    let held = take(&one, &silent).await;
    replicated(&cluster, 0);
    cluster.servers[0].stop().unwrap();
    // Tries have a short bound of their own: none waits for the silent one.
    for number in 0..200 {
        let name = cluster.name_at(1 + number % 2, &format!("lively {number} "));
        let held = one.lock(&name).unwrap().acquire_timeout(Duration::from_secs(10)).await.unwrap();
        held.release().await.unwrap();
    }
    cluster.await_heir(0);
    let first = held.token();
    // It may take as long as a silence does to be noticed, and then goes on by itself.
    if let Err(error) = held.release().await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    }
    assert!(take(&one, &silent).await.token() > first);
    cluster.servers[0].cont().unwrap();
    for name in spread() {
        take(&one, &name).await.release().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_moved_under_a_holder_and_a_waiter() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::builder().masters_alone().start().unwrap();
    let [one, other] = [client(&cluster).await, client(&cluster).await];
    for round in 0..3 {
        let name = cluster.name_at(0, &format!("moved {round} "));
        let held = take(&one, &name).await;
        let waits = tokio::spawn({
            let (other, name) = (other.clone(), name.clone());
            async move { take(&other, &name).await.token() }
        });
        listening(&cluster, &other, &name, 0).await;
        cluster.move_slot(cluster.slot(&name), 0, 1);
        listening(&cluster, &other, &name, 1).await;
        held.extend(Duration::from_secs(30)).await.unwrap();
        let first = held.token();
        held.release().await.unwrap();
        assert!(waits.await.unwrap() > first);
    }
    assert_eq!([one.metrics().losses(), other.metrics().losses()], [0, 0]);
}

/// The client hears of the move by this release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_whose_slot_is_moving_is_released_where_it_is() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::builder().masters_alone().start().unwrap();
    let one = client(&cluster).await;
    let name = cluster.name_at(0, "left ");
    let held = take(&one, &name).await;
    cluster.begin_move(cluster.slot(&name), 0, 1);
    cluster.move_keys(cluster.slot(&name), 0, 1);
    held.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_are_no_cluster_or_not_there_are_said_so() {
    if skip_servers() {
        return;
    }
    let alone = fencelock_testkit::RedisServer::start().unwrap();
    let url = format!("redis+cluster://{}", alone.address());
    let error = Client::builder(&url).connect_timeout(LIMIT).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.message().contains("redis://"), "{error}");
    let cluster = RedisCluster::builder().masters_alone().password("sesame").start().unwrap();
    let error = Client::builder(cluster.url()).connect_timeout(LIMIT).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    let url = cluster.url().replace("://", "://:sesame@");
    let client = Client::builder(&url).connect_timeout(LIMIT).connect().await.unwrap();
    take(&client, "x").await.release().await.unwrap();
    let error = Client::connect(format!("{url}/2")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    // The other way round: a server of a cluster without the scheme.
    let plain = format!("redis://:sesame@{}", cluster.servers[0].address());
    let client = Client::connect(plain).await.unwrap();
    let lock = client.lock(cluster.name_at(1, "y")).unwrap();
    let error = lock.try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.message().contains("redis+cluster://"), "{error}");
}

/// Waits until somebody waits for the lock.
async fn queued(client: &Client, name: &str) {
    let begun = std::time::Instant::now();
    while !matches!(client.inspect(name).await, Ok(Some(info)) if !info.waiters.is_empty()) {
        assert!(begun.elapsed() < LIMIT, "nobody waits for {name}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until this client is queued, and subscribed to the lock's channel at this server.
async fn listening(cluster: &RedisCluster, client: &Client, name: &str, server: usize) {
    let (begun, channel) = (std::time::Instant::now(), format!("{}:{{{name}}}", client.id()));
    queued(client, name).await;
    while channels(cluster, server).is_some_and(|all| !all.iter().any(|it| it.ends_with(&channel)))
    {
        assert!(begun.elapsed() < LIMIT, "nobody listens for {name}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The channels of locks at a server; `None` where it is too old to have any.
fn channels(cluster: &RedisCluster, server: usize) -> Option<Vec<String>> {
    let all = cluster.servers[server].cli(&["PUBSUB", "SHARDCHANNELS"]).ok()?;
    Some(redis::from_redis_value(all).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_that_are_used_once_have_no_channel_and_who_may_have_none_polls() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::builder().masters_alone().start().unwrap();
    let one = client(&cluster).await;
    let names: Vec<String> = spread().collect();
    for uses in 0..2 {
        for name in &names {
            take(&one, name).await.release().await.unwrap();
        }
        let there: Option<Vec<_>> = (0..3).map(|server| channels(&cluster, server)).collect();
        let there = there.map(|all| all.concat().len());
        assert!(
            there.is_none_or(|there| there == uses * names.len()),
            "{there:?} after {uses} more"
        );
    }
    for server in 0..3 {
        cluster.ask(server, &["ACL", "SETUSER", "default", "-subscribe", "-ssubscribe"]);
    }
    let other = client(&cluster).await;
    let held = take(&one, "polled").await;
    let waits = tokio::spawn({
        let other = other.clone();
        async move { take(&other, "polled").await.token() }
    });
    queued(&one, "polled").await;
    let silent = |at| channels(&cluster, at).is_none_or(|all| !all.concat().contains(other.id()));
    assert!((0..3).all(silent));
    let first = held.token();
    held.release().await.unwrap();
    assert!(waits.await.unwrap() > first);
}

/// What the master has, its replica has.
fn replicated(cluster: &RedisCluster, master: usize) {
    cluster.ask(master, &["SET", &format!("{{{}}}", cluster.name_at(master, "fl")), "1"]);
    cluster.ask(master, &["WAIT", "1", "10000"]);
}

/// A slot whose move takes its time: some keys are there, some here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_slot_moves_holds_are_renewed_and_released_and_the_others_wait() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::builder().masters_alone().start().unwrap();
    let builder = Client::builder(cluster.url()).connect_timeout(LIMIT);
    let one = builder.lease(Duration::from_secs(2)).connect().await.unwrap();
    let other = client(&cluster).await;
    let name = cluster.name_at(0, "slow ");
    let slot = cluster.slot(&name);
    let held = take(&one, &name).await;
    cluster.begin_move(slot, 0, 1);
    renewed(&one, 3).await;
    let waits = tokio::spawn({
        let (other, name) = (other.clone(), name.clone());
        async move { take(&other, &name).await.token() }
    });
    cluster.move_keys(slot, 0, 1);
    renewed(&one, 3).await;
    held.check().unwrap();
    let first = held.token();
    held.release().await.unwrap();
    cluster.end_move(slot, 0, 1);
    assert!(waits.await.unwrap() > first);
    assert_eq!(one.metrics().losses(), 0);

    // One that is broken off.
    let name = cluster.name_at(2, "back ");
    let slot = cluster.slot(&name);
    let held = take(&one, &name).await;
    cluster.begin_move(slot, 2, 1);
    renewed(&one, 2).await;
    for server in [1, 2] {
        cluster.ask(server, &["CLUSTER", "SETSLOT", &slot.to_string(), "STABLE"]);
    }
    let waits = tokio::spawn({
        let (other, name) = (other.clone(), name.clone());
        async move { take(&other, &name).await.token() }
    });
    queued(&other, &name).await;
    let first = held.token();
    held.release().await.unwrap();
    assert!(waits.await.unwrap() > first);
    assert_eq!(one.metrics().losses(), 0);
}

/// Waits until the client has renewed so many holds more.
async fn renewed(client: &Client, more: u64) {
    let (begun, before) = (std::time::Instant::now(), client.metrics().renewals);
    while client.metrics().renewals < before + more {
        assert!(begun.elapsed() < LIMIT, "nothing is renewed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
