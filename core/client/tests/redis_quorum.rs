//! Locks of most of several Redis servers that know nothing of each other, while some of them fail.

use std::time::Duration;

use fencelock::redis::{Standing, quorum_status};
use fencelock::{Builder, Client, ErrorKind, Guard};
use fencelock_testkit::{Fault, RedisQuorum, RedisServer, eventually, skip_servers, team_acl};

const LIMIT: Duration = Duration::from_secs(40);

/// Three servers, unless they are left out.
macro_rules! quorum {
    () => {
        quorum!(RedisQuorum::builder())
    };
    ($builder:expr) => {
        match skip_servers() {
            true => return,
            false => $builder.start().unwrap(),
        }
    };
}

fn builder(url: &str) -> Builder {
    let builder = Client::builder(url).connect_timeout(LIMIT);
    builder.request_timeout(Duration::from_secs(1)).claim(Duration::from_millis(900))
}

async fn client(all: &RedisQuorum) -> Client {
    builder(&all.url()).connect().await.unwrap()
}

async fn take(client: &Client, name: &str) -> Guard {
    client.lock(name).unwrap().acquire_timeout(LIMIT).await.unwrap()
}

async fn soon<F: Future>(what: &str, future: F) -> F::Output {
    match tokio::time::timeout(LIMIT, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited in vain for: {what}"),
    }
}

/// A server is not to be reached, by anybody.
fn cut(all: &RedisQuorum, at: usize) {
    all.proxies[at].set(Fault::Refuse);
    all.proxies[at].cut();
}

/// How many locks a server has a record of.
fn records(server: &RedisServer) -> usize {
    let keys = server.cli(&["KEYS", "fl:{*"]).unwrap();
    match keys {
        redis::Value::Array(keys) => keys.len(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_at_every_server_and_is_handed_from_client_to_client() {
    let all = quorum!();
    let [one, other] = [client(&all).await, client(&all).await];
    assert!(!one.capabilities().owners && !one.capabilities().shared);
    let guard = take(&one, "x").await;
    eventually("all servers have it", || {
        all.servers.iter().all(|it| records(it) == 1).then_some(())
    });
    let taken = other.lock("x").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Contended);
    let lock = other.lock("x").unwrap();
    let wait = tokio::spawn(async move { lock.acquire().await });
    soon("it is wanted", guard.wanted()).await;
    let token = guard.token();
    guard.release().await.unwrap();
    let next = soon("the next holder", wait).await.unwrap().unwrap();
    assert!(next.token() > token);
    next.release().await.unwrap();
    let owner = fencelock::OwnerId::new("trace").unwrap();
    let error = one.lock("x").unwrap().owner(owner).acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_146_one_server_may_be_down_and_with_two_down_it_is_said_which() {
    let mut all = quorum!();
    let one = client(&all).await;
    take(&one, "x").await.release().await.unwrap();
    all.servers[0].kill().unwrap();
    // Whoever had the queue is gone, too.
    let guard = take(&one, "x").await;
    let other = client(&all).await;
    let lock = other.lock("x").unwrap();
    let wait = tokio::spawn(async move { lock.acquire().await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let token = guard.token();
    guard.release().await.unwrap();
    let guard = soon("the next holder", wait).await.unwrap().unwrap();
    assert!(guard.token() > token);
    guard.release().await.unwrap();

    all.servers[2].kill().unwrap();
    let error = one.lock("x").unwrap().acquire_timeout(Duration::from_secs(3)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    for part in ["q1:6379", "q3:6379", "it takes 2"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
    assert!(!error.message().contains("q2:6379"), "{error}");
    let late = builder(&all.url()).connect_timeout(Duration::from_secs(1)).connect().await;
    assert_eq!(late.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_151_a_server_that_stands_still_keeps_nobody_waiting_and_its_vote_comes_back() {
    let all = quorum!();
    let [one, other] = [client(&all).await, client(&all).await];
    for silent in [2, 0] {
        all.servers[silent].stop().unwrap();
        let mut token = None;
        for client in [&one, &other, &one, &other] {
            let guard = take(client, "x").await;
            assert!(token.is_none_or(|token| guard.token() > token));
            token = Some(guard.token());
            soon("the release", guard.release()).await.unwrap();
        }
        all.servers[silent].cont().unwrap();
        eventually("nothing is left there", || {
            let info = all.servers[silent].cli(&["HEXISTS", "fl:{x}", "i"]).unwrap();
            (info == redis::Value::Int(0)).then_some(())
        });
    }
}

/// How a server forgets.
enum Forgets {
    Restarts,
    Flushes,
    Follows,
}

/// Two of three servers have voted for a hold that is not renewed, and one of them forgets. While the hold lasts
/// nobody else gets the lock by it and the third.
async fn nobody_is_granted_what_a_server_forgot(how: Forgets) {
    let max_lease = Duration::from_secs(6);
    let mut all = quorum!(RedisQuorum::builder().max_lease(max_lease));
    let lease = Duration::from_secs(5);
    let holder = builder(&all.url()).lease(lease).connect().await.unwrap();
    let other = builder(&all.url()).lease(lease).connect().await.unwrap();
    take(&other, "x").await.release().await.unwrap();
    cut(&all, 2);
    let lock = holder.lock("x").unwrap().lease(lease);
    let guard = lock.acquire_timeout(LIMIT).await.unwrap();
    match how {
        Forgets::Restarts => all.servers[1].restart().unwrap(),
        Forgets::Flushes => drop(all.servers[1].cli(&["FLUSHALL"]).unwrap()),
        // What it has then is the third one's, which never heard of the hold.
        Forgets::Follows => {
            let port = all.servers[2].port().to_string();
            all.servers[1].cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
            eventually("it follows", || {
                let info = all.servers[1].cli(&["INFO", "replication"]).unwrap();
                let info: String = redis::from_redis_value(info).unwrap();
                info.contains("master_link_status:up").then_some(())
            });
            all.servers[1].cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
        }
    }
    all.proxies[2].mend();
    let lock = other.lock("x").unwrap();
    let wait = tokio::spawn(async move { lock.acquire_timeout(LIMIT).await });
    let next = soon("the next holder", wait).await.unwrap().unwrap();
    assert!(!guard.is_valid(), "both hold it");
    assert!(next.token() > guard.token());
    let status = quorum_status(all.url()).await.unwrap();
    let standings: Vec<Standing> =
        status.servers.iter().map(|(_, said)| said.as_ref().unwrap().standing).collect();
    assert_eq!(standings[0], Standing::Votes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_22_a_server_that_restarted_empty_gives_no_vote_for_the_longest_lease() {
    nobody_is_granted_what_a_server_forgot(Forgets::Restarts).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_149_a_server_that_was_flushed_gives_no_vote_for_the_longest_lease() {
    nobody_is_granted_what_a_server_forgot(Forgets::Flushes).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_followed_another_gives_no_vote_for_the_longest_lease() {
    nobody_is_granted_what_a_server_forgot(Forgets::Follows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_148_a_server_that_kept_its_file_waits_too_since_that_may_lack_the_last_second() {
    let each = RedisServer::builder().persistent();
    let mut all = quorum!(RedisQuorum::builder().each(each));
    let one = client(&all).await;
    let guard = take(&one, "x").await;
    eventually("all servers have it", || {
        all.servers.iter().all(|it| records(it) == 1).then_some(())
    });
    all.servers[1].restart().unwrap();
    eventually("its marker is of this run", || {
        let status = status_of(&all);
        let voter = status.servers[1].1.clone().ok()?;
        matches!(voter.standing, Standing::Waits(_)).then_some(())
    });
    // It knows the hold still, and renews it.
    assert_eq!(records(&all.servers[1]), 1);
    assert!(guard.is_valid());
    guard.release().await.unwrap();
}

fn status_of(all: &RedisQuorum) -> fencelock::redis::QuorumStatus {
    let url = all.url();
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(async { quorum_status(url).await.unwrap() })
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fresh_quorum_waits_once() {
    let all = quorum!(RedisQuorum::builder().fresh().max_lease(Duration::from_secs(3)));
    let lease = Duration::from_secs(3);
    let one = builder(&all.url()).lease(lease).connect().await.unwrap();
    let error = one.lock("x").unwrap().try_acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.message().contains("memory is new"), "{error}");
    take(&one, "x").await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_152_lists_of_three_and_of_five_share_no_lock() {
    let all = quorum!(RedisQuorum::builder().servers(5));
    let guard = take(&client(&all).await, "x").await;
    let three = all.url().replace("q1,q2,q3,q4,q5", "q1,q2,q3");
    let three = three.split(",q4=").next().unwrap().to_owned() + "&max_lease=60s";
    let error = builder(&three).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.message().contains("fencelock quorum init"), "{error}");
    assert!(guard.is_valid());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bug_166_clients_of_another_longest_lease_get_no_vote() {
    let all = quorum!();
    let url = all.url().replace("max_lease=60000ms", "max_lease=61s");
    let error = builder(&url).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.message().contains("max_lease"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_ask_for_the_run_is_told_which_permission_is_missing() {
    let all = quorum!();
    for server in &all.servers {
        let mut acl = team_acl("team", "fl:");
        acl.push("~fl:quorum".to_owned());
        server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    }
    let url = all.url().replace("redis+quorum://", "redis+quorum://team:a-long-password@");
    let error = builder(&url).connect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misconfigured, "{error}");
    assert!(error.message().contains("INFO"), "{error}");
    for server in &all.servers {
        server.cli(&["ACL", "SETUSER", "team", "+info"]).unwrap();
    }
    take(&builder(&url).connect().await.unwrap(), "x").await.release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_beyond_the_longest_is_refused_with_what_to_do() {
    let url = "redis+quorum://a,b,c";
    let long = Client::builder(url).lease(Duration::from_secs(61)).connect_lazy().unwrap_err();
    assert_eq!(long.kind(), ErrorKind::InvalidArgument);
    let client = Client::builder(url).connect_lazy().unwrap();
    let lock = client.lock("x").unwrap().lease(Duration::from_secs(61));
    let error = lock.acquire().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("max_lease"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p02_tokens_rise_over_servers_that_come_and_go() {
    let mut all = quorum!(RedisQuorum::builder().max_lease(Duration::from_secs(2)));
    let lease = Duration::from_secs(2);
    let [one, other] = [
        builder(&all.url()).lease(lease).connect().await.unwrap(),
        builder(&all.url()).lease(lease).connect().await.unwrap(),
    ];
    let mut last = None;
    for round in 0..9 {
        for client in [&one, &other] {
            // Not every holder releases in time.
            let late = round % 4 == 3;
            let lock = client.lock("x").unwrap();
            let lock = if late { lock.lease(Duration::from_secs(1)) } else { lock };
            let guard = lock.acquire_timeout(LIMIT).await.unwrap();
            assert!(last.is_none_or(|last| guard.token() > last), "round {round}");
            last = Some(guard.token());
            if late {
                soon("the loss", guard.lost()).await;
            } else {
                soon("the release", guard.release()).await.unwrap_or_default();
            }
        }
        let at = round % 3;
        match round / 3 {
            0 => all.servers[at].restart().unwrap(),
            1 => drop(all.servers[at].cli(&["FLUSHALL"]).unwrap()),
            _ => all.proxies[at].cut(),
        }
    }
}
