//! What goes wrong between a client and a real Redis server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fencelock::redis::Login;
use fencelock::{Abandoned, Client, ErrorKind, LossReason};
use fencelock_testkit::{Fault, Proxy, RedisServer, free_port, skip_servers};

const LIMIT: Duration = Duration::from_secs(30);

/// A server, unless they are left out.
macro_rules! server {
    () => {
        match skip_servers() {
            true => return,
            false => RedisServer::start().unwrap(),
        }
    };
}

async fn eventually(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = std::time::Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LIMIT, "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for: {what}"),
    }
}

#[tokio::test]
async fn p04_an_acquire_whose_reply_was_lost_yields_one_hold() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::builder(format!("redis://{}", proxy.address()))
        .request_timeout(Duration::from_millis(500))
        .connect()
        .await
        .unwrap();
    let other = Client::connect(server.url()).await.unwrap();
    let lock = client.lock("lost reply").unwrap();
    let swallowed = proxy.counts().swallowed_replies;
    proxy.set(Fault::SwallowReplies);
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    eventually("a swallowed reply", async || proxy.counts().swallowed_replies > swallowed).await;
    proxy.cut();
    proxy.set(Fault::Pass);
    let guard = soon("the grant", waiter).await.unwrap().unwrap();
    let info = other.inspect("lost reply").await.unwrap().unwrap();
    assert_eq!((info.holds.len(), info.token), (1, guard.token().get()));
    guard.release().await.unwrap();
    drop(other.lock("lost reply").unwrap().acquire_timeout(LIMIT).await.unwrap());
}

#[tokio::test]
async fn p04_a_release_whose_reply_was_lost_is_a_release() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::builder(format!("redis://{}", proxy.address()))
        .request_timeout(Duration::from_secs(10))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("released").unwrap().acquire().await.unwrap();
    let swallowed = proxy.counts().swallowed_replies;
    proxy.set(Fault::SwallowReplies);
    let release = tokio::spawn(guard.release());
    eventually("a swallowed reply", async || proxy.counts().swallowed_replies > swallowed).await;
    // Meanwhile another holds it: the repeated release must not end that hold.
    let other = Client::connect(server.url()).await.unwrap();
    let next = other.lock("released").unwrap().acquire_timeout(LIMIT).await.unwrap();
    assert_eq!(next.previous_abandoned(), Abandoned::No);
    proxy.cut();
    proxy.set(Fault::Pass);
    soon("the release", release).await.unwrap().unwrap();
    let refused = client.lock("released").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contended);
    next.release().await.unwrap();
}

/// What was released here may still be held there.
#[tokio::test]
async fn p11_a_close_whose_releases_nobody_confirmed_says_so() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::builder(format!("redis://{}", proxy.address()))
        .request_timeout(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("unconfirmed").unwrap().acquire().await.unwrap();
    proxy.set(Fault::SwallowRequests);
    let error = soon("the release", guard.release()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!soon("the close", client.close()).await);
    assert!(!soon("closing again", client.close()).await);
}

#[tokio::test]
async fn p07_a_short_outage_loses_no_hold() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::builder(format!("redis://{}?lease=6s", proxy.address()))
        .request_timeout(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    let guard = client.lock("outage").unwrap().acquire().await.unwrap();
    proxy.set(Fault::Refuse);
    proxy.cut();
    eventually("refused connections", async || proxy.counts().refused > 2).await;
    proxy.set(Fault::Pass);
    let before = client.metrics().renewals;
    eventually("renewals", async || client.metrics().renewals > before + 1).await;
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

#[tokio::test]
async fn p08_a_hold_that_cannot_be_renewed_is_lost_before_the_store_gives_it_away() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::builder(format!("redis://{}?lease=1s", proxy.address()))
        .request_timeout(Duration::from_millis(300))
        .connect()
        .await
        .unwrap();
    let other = Client::connect(server.url()).await.unwrap();
    let guard = client.lock("cut off").unwrap().acquire().await.unwrap();
    proxy.set(Fault::SwallowRequests);
    let next = tokio::spawn(async move {
        let next = other.lock("cut off").unwrap().acquire().await.unwrap();
        (next, other)
    });
    let (next, _other) = soon("the successor", next).await.unwrap();
    assert!(!guard.is_valid(), "two holders");
    assert_eq!(soon("the loss", guard.lost()).await, LossReason::NotRenewed);
    assert_eq!(next.previous_abandoned(), Abandoned::Yes);
    assert!(client.metrics().renewal_failures > 0);
    proxy.cut();
    proxy.set(Fault::Pass);
    assert_eq!(guard.release().await.unwrap_err().kind(), ErrorKind::Lost);
    assert!(next.is_valid());
}

#[tokio::test]
async fn p02_p08_flushall_loses_the_hold_and_no_token_goes_back() {
    let server = server!();
    let client = Client::builder(format!("{}?lease=2s", server.url())).connect().await.unwrap();
    let lock = client.lock("flushed").unwrap();
    let first = lock.acquire().await.unwrap();
    let token = first.token();
    first.release().await.unwrap();
    server.cli(&["FLUSHALL"]).unwrap();
    let second = lock.acquire().await.unwrap();
    assert!(second.token() > token, "between holds");
    let token = second.token();
    server.cli(&["FLUSHALL"]).unwrap();
    let reason = soon("the loss", second.lost()).await;
    assert_eq!(reason, LossReason::Gone);
    assert_eq!(second.release().await.unwrap_err().kind(), ErrorKind::Lost);
    let other = Client::connect(server.url()).await.unwrap();
    let third = other.lock("flushed").unwrap().acquire().await.unwrap();
    assert!(third.token() > token, "during a hold, for another client");
    assert_eq!(third.previous_abandoned(), Abandoned::Unknown);
}

/// The release asks before the next renewal does.
#[tokio::test]
async fn p08_who_listens_is_told_of_a_loss_that_the_release_finds() {
    let server = server!();
    let client = Client::connect(server.url()).await.unwrap();
    let guard = client.lock("flushed").unwrap().acquire().await.unwrap();
    let (told, lost) = (Arc::new(AtomicU32::new(0)), guard.lost());
    guard.on_lost({
        let told = told.clone();
        move |_| _ = told.fetch_add(1, Ordering::SeqCst)
    });
    server.cli(&["FLUSHALL"]).unwrap();
    assert_eq!(guard.release_ref().await.unwrap_err().kind(), ErrorKind::Lost);
    assert_eq!(soon("the loss", lost).await, LossReason::Gone);
    assert_eq!(told.load(Ordering::SeqCst), 1);
    // A release in time tells nobody.
    let guard = client.lock("kept").unwrap().acquire().await.unwrap();
    guard.on_lost({
        let told = told.clone();
        move |_| _ = told.fetch_add(1, Ordering::SeqCst)
    });
    guard.release().await.unwrap();
    client.close().await;
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

/// Unsent, it would be taken for unanswered, and cost the connection.
#[test]
fn p11_an_acquire_that_is_given_up_at_once_is_sent_all_the_same() {
    let server = server!();
    let builder = Client::builder(server.url()).request_timeout(Duration::from_millis(300));
    let client = builder.connect_blocking().unwrap();
    let other = fencelock::blocking::Client::connect(server.url()).unwrap();
    drop(client.lock("given up").unwrap().begin(None).unwrap());
    fencelock_testkit::eventually("the store knows of it", || {
        other.inspect("given up").unwrap().filter(|info| info.last_token > 0)
    });
    assert_eq!(client.metrics().reconnects, 0);
}

#[tokio::test]
async fn p14_a_blocking_client_in_async_code_says_what_is_wrong() {
    let url = "redis://127.0.0.1:1?prefix=a{b}";
    let refused = Client::builder(url).connect_blocking().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidArgument, "{refused}");
}

#[tokio::test]
async fn p09_p13_waiters_survive_a_server_that_restarts_empty() {
    let mut server = server!();
    let url = format!("{}?lease=2s&claim=600ms&request_timeout=500ms", server.url());
    let holder = Client::connect(&url).await.unwrap();
    let guard = holder.lock("restart").unwrap().acquire().await.unwrap();
    let token = guard.token();
    let mut waiters = Vec::new();
    for _ in 0..5 {
        let client = Client::connect(&url).await.unwrap();
        let lock = client.lock("restart").unwrap();
        waiters.push(tokio::spawn(async move {
            let guard = lock.acquire().await.unwrap();
            let token = guard.token();
            guard.release().await.unwrap();
            token
        }));
    }
    eventually("waiters", async || {
        let info = holder.inspect("restart").await.unwrap().unwrap();
        info.waiters.len() == 5
    })
    .await;
    server.restart().unwrap();
    soon("the loss", guard.lost()).await;
    let mut tokens = Vec::new();
    for waiter in waiters {
        tokens.push(soon("a waiter", waiter).await.unwrap());
    }
    tokens.sort();
    assert!(tokens[0] > token && tokens.is_sorted_by(|a, b| a < b), "{token:?} {tokens:?}");
}

#[tokio::test]
async fn p09_a_waiter_is_served_over_a_connection_that_is_cut() {
    let server = server!();
    let proxy = Proxy::start(&server.address()).unwrap();
    let client = Client::connect(format!("redis://{}?claim=900ms", proxy.address())).await.unwrap();
    let other = Client::connect(server.url()).await.unwrap();
    let guard = other.lock("cut").unwrap().acquire().await.unwrap();
    let lock = client.lock("cut").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    eventually("the waiter", async || {
        other.inspect("cut").await.unwrap().unwrap().waiters.len() == 1
    })
    .await;
    proxy.cut();
    guard.release().await.unwrap();
    soon("the waiter", waiter).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn p14_unavailable_comes_only_at_a_bound() {
    let mut server = server!();
    let url = format!("{}?request_timeout=300ms", server.url());
    let client = Client::connect(&url).await.unwrap();
    let lock = client.lock("away").unwrap();
    server.kill().unwrap();
    let unavailable = |error: fencelock::Error| assert_eq!(error.kind(), ErrorKind::Unavailable);
    unavailable(soon("a try", lock.try_acquire()).await.unwrap_err());
    unavailable(soon("a wait", lock.acquire_timeout(LIMIT / 60)).await.unwrap_err());
    unavailable(soon("a ping", client.ping()).await.unwrap_err());
    let waiter = tokio::spawn({
        let lock = lock.clone();
        async move { lock.acquire().await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!waiter.is_finished(), "an unbounded wait goes on");
    server.restart().unwrap();
    soon("the wait", waiter).await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test]
async fn p14_connect_says_what_is_wrong() {
    if skip_servers() {
        return;
    }
    let nobody = format!("redis://127.0.0.1:{}?connect_timeout=500ms", free_port().unwrap());
    let error = Client::connect(&nobody).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("127.0.0.1"), "{error}");

    let server = RedisServer::builder().password("right").start().unwrap();
    let wrong = format!("redis://:wrong-one@{}?connect_timeout=30s", server.address());
    for result in [
        soon("the refusal", Client::connect(&wrong)).await.map(drop),
        soon("the refusal", Client::connect(server.url())).await.map(drop),
        tokio::task::spawn_blocking(move || fencelock::blocking::Client::connect(&wrong).map(drop))
            .await
            .unwrap(),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misconfigured);
        assert!(!error.message().contains("wrong-one"), "{error}");
    }
    let right = format!("redis://:right@{}", server.address());
    Client::connect(right).await.unwrap().ping().await.unwrap();

    let lazy = Client::builder(&nobody).connect_lazy().unwrap();
    assert!(lazy.lock("x").is_ok());
}

#[tokio::test]
async fn credentials_are_asked_at_every_connect() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().password("rotated").start().unwrap();
    let proxy = Proxy::start(&server.address()).unwrap();
    let asked = Arc::new(AtomicU32::new(0));
    let count = asked.clone();
    let client = Client::builder(format!("redis://{}", proxy.address()))
        .credentials(move || {
            count.fetch_add(1, Ordering::SeqCst);
            Ok(Login { user: None, password: "rotated".to_owned() })
        })
        .connect()
        .await
        .unwrap();
    let before = asked.load(Ordering::SeqCst);
    assert!(before > 0);
    proxy.cut();
    eventually("another login", async || asked.load(Ordering::SeqCst) > before).await;
    drop(soon("a hold", client.lock("x").unwrap().acquire()).await.unwrap());
}

#[tokio::test]
async fn options_of_a_redis_client_are_taken_over() {
    let server = server!();
    let theirs = redis::Client::open(server.url()).unwrap();
    let mut options = fencelock::redis::Options::from_client(&theirs).unwrap();
    options.prefix = "own:".to_owned();
    let client = Client::builder("redis:").redis_options(options).connect().await.unwrap();
    let guard = client.lock("taken").unwrap().acquire().await.unwrap();
    let keys = format!("{:?}", server.cli(&["KEYS", "own:*"]).unwrap());
    assert!(keys.contains("taken"), "{keys}");
    guard.release().await.unwrap();
    let error = Client::builder("memory:").key_prefix("x:").connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[tokio::test]
async fn p14_a_newer_layout_and_a_foreign_key_are_left_alone_with_a_clear_error() {
    let server = server!();
    server.cli(&["HSET", "fl:{newer}", "v", "3", "future", "kept"]).unwrap();
    server.cli(&["SET", "fl:{foreign}", "of another library"]).unwrap();
    let client = Client::connect(server.url()).await.unwrap();
    for (name, says) in [("newer", "layout"), ("foreign", "fl:{foreign}")] {
        let lock = client.lock(name).unwrap();
        for waits in [false, true] {
            let refused = match waits {
                true => soon("the refusal", lock.acquire()).await,
                false => soon("the refusal", lock.try_acquire()).await,
            };
            let error = refused.map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
            assert!(error.message().contains(says), "{error}");
        }
    }
    let newer = format!("{:?}", server.cli(&["HGETALL", "fl:{newer}"]).unwrap());
    assert!(newer.contains("future") && newer.contains("kept"), "{newer}");
    let fields = format!("{:?}", server.cli(&["HLEN", "fl:{newer}"]).unwrap());
    assert!(fields.contains('2'), "{fields}");
}
