//! Holders and waiters while one Redis server takes over from another.

use std::time::Duration;

use fencelock::{Builder, Client, ErrorKind};
use fencelock_testkit::{RedisSentinels, skip_servers};

const LIMIT: Duration = Duration::from_secs(60);

/// Servers and Sentinels, unless they are left out.
macro_rules! sentinels {
    () => {
        match skip_servers() {
            true => return,
            false => RedisSentinels::start().unwrap(),
        }
    };
}

fn builder(all: &RedisSentinels) -> Builder {
    Client::builder(all.url()).connect_timeout(LIMIT).request_timeout(Duration::from_secs(2))
}

async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for: {what}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p08_a_planned_failover_costs_no_hold_and_p09_no_waiter_its_turn() {
    let all = sentinels!();
    let (first, second) =
        (builder(&all).connect().await.unwrap(), builder(&all).connect().await.unwrap());
    let guards: Vec<_> = {
        let mut guards = Vec::new();
        for number in 0..100 {
            guards.push(first.lock(format!("held {number}")).unwrap().acquire().await.unwrap());
        }
        guards
    };
    let mut waits = Vec::new();
    for number in 0..100 {
        let lock = second.lock(format!("held {number}")).unwrap();
        waits.push(tokio::spawn(async move { lock.acquire().await }));
    }
    let queued = async {
        while second.inspect("held 99").await.unwrap().is_none_or(|info| info.waiters.is_empty()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    soon("the last one waits", queued).await;
    tokio::task::block_in_place(|| all.failover());
    for (guard, wait) in guards.into_iter().zip(waits) {
        let token = guard.token();
        assert!(guard.is_valid());
        soon("the release", guard.release()).await.unwrap();
        let next = soon("the next holder", wait).await.unwrap().unwrap();
        assert!(next.token() > token);
        soon("its release", next.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p13_a_wait_goes_on_while_the_master_is_dead_and_p07_a_hold_is_renewed_at_the_next() {
    let mut all = sentinels!();
    let lease = Duration::from_secs(10);
    let holder = builder(&all).lease(lease).connect().await.unwrap();
    let waiter = builder(&all).connect().await.unwrap();
    let guard = holder.lock("x").unwrap().acquire().await.unwrap();
    let lock = waiter.lock("x").unwrap();
    let wait = tokio::spawn(async move { lock.acquire().await });
    tokio::task::block_in_place(|| {
        all.servers[0].kill().unwrap();
        all.await_master_after(0);
    });
    // Longer than the lease: only renewals at the new master keep it.
    tokio::time::sleep(lease + Duration::from_secs(1)).await;
    assert!(guard.is_valid());
    assert!(!wait.is_finished());
    let token = guard.token();
    soon("the release", guard.release()).await.unwrap();
    let next = soon("the next holder", wait).await.unwrap().unwrap();
    assert!(next.token() > token);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p02_a_grant_that_no_replica_had_is_fenced_by_the_next() {
    let mut all = sentinels!();
    let client = builder(&all).connect().await.unwrap();
    // One that stands still is sent it all the same, and reads it later: so it is cut off as well.
    for replica in &all.servers[1..] {
        replica.stop().unwrap();
    }
    all.servers[0].cli(&["CLIENT", "KILL", "TYPE", "REPLICA"]).unwrap();
    let lost = client.lock("x").unwrap().acquire().await.unwrap();
    let token = lost.token();
    all.servers[0].kill().unwrap();
    for replica in &all.servers[1..] {
        replica.cont().unwrap();
    }
    let other = tokio::task::block_in_place(|| {
        all.await_master_after(0);
        builder(&all)
    });
    let other = soon("a client of the new master", other.connect()).await.unwrap();
    let next = soon("the next holder", other.lock("x").unwrap().acquire()).await.unwrap();
    assert!(next.token() > token, "the resource refuses {token}");
    // Its first holder hears that the store forgot it, or that it lost it to another.
    soon("the loss", lost.lost()).await;
    assert_eq!(lost.release().await.unwrap_err().kind(), ErrorKind::Lost);
}

#[tokio::test]
async fn leases_are_ten_times_as_long_as_clocks_may_differ() {
    let url = "redis+sentinel://127.0.0.1:1/shop";
    let short = Client::builder(url).lease(Duration::from_millis(900)).connect_lazy().unwrap_err();
    assert_eq!(short.kind(), ErrorKind::InvalidArgument);
    assert!(short.message().contains("clock_slack"), "{short}");
    let short = Client::builder(format!("{url}?claim=900ms")).connect_lazy().unwrap_err();
    assert!(short.message().contains("clock_slack"), "{short}");
    let client =
        Client::builder(format!("{url}?clock_slack=20ms&lease=1s")).connect_lazy().unwrap();
    let explicit = client.lock("x").unwrap().lease(Duration::from_millis(150));
    let error = explicit.acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("clock_slack"), "{error}");
}

#[tokio::test]
async fn without_a_sentinel_connecting_says_why() {
    let url = "redis+sentinel://127.0.0.1:1,127.0.0.1:2/shop?connect_timeout=300ms";
    let error = Client::connect(url).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("no Sentinel says which server is 'shop'"), "{error}");
    assert!(error.message().contains("127.0.0.1:2: "), "{error}");
}
