//! The store where Sentinels say which server is the master: real Sentinels, real failovers.

mod common;

use common::{Client, hold, refused};
use fencelock_engine::ErrorKind;
use fencelock_engine::event::Event;
use fencelock_engine::reply::{RefusalKind, Standing};
use fencelock_redis::{Node, Options};
use fencelock_testkit::{
    Proxy, RedisSentinels, documented_acl, eventually, free_port, skip_servers,
};

fn options(url: &str) -> Options {
    Options::from_url(url).unwrap()
}

/// Waits until a lock is granted: on a busy machine Sentinels may take a server for down once more.
fn served(client: &Client) {
    let mut names = 0..;
    eventually("a lock is granted", || {
        let name = format!("served {}", names.next()?);
        let state = client.acquire(&name, hold(), false).ok()?;
        (state.standing == Standing::Granted).then_some(())
    });
}

/// A client's word that it left a server, and the next that it is connected.
fn moved(client: &Client) -> String {
    let why = client.await_down();
    client.await_up();
    why
}

#[test]
fn a_planned_failover_is_followed_at_once_although_the_old_master_lives() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let client = Client::up(options(&all.url()));
    let held = client.grant("x");
    let new = all.failover();
    let why = moved(&client);
    assert!(why.contains("Sentinels say that 'shop' is"), "{why}");
    assert!(why.contains(&all.servers[0].address()), "it names the server that was left: {why}");
    // The replica has the hold: its release counts there.
    client.release("x", held).unwrap();
    client.grant("y");
    assert!(all.servers[new].cli(&["EXISTS", "fl:{y}"]).is_ok_and(|it| it == redis_one()));
}

fn redis_one() -> redis::Value {
    redis::Value::Int(1)
}

#[test]
fn a_master_that_is_killed_is_replaced() {
    if skip_servers() {
        return;
    }
    let mut all = RedisSentinels::start().unwrap();
    let client = Client::up(options(&all.url()));
    client.grant("x");
    all.servers[0].kill().unwrap();
    client.await_down();
    let new = all.await_master_after(0);
    client.await_up();
    served(&client);
    // The old one comes back as it was, for a moment as a master of its own.
    all.servers[0].restart().unwrap();
    served(&client);
    assert_ne!(new, 0);
}

#[test]
fn a_master_that_stands_still_is_left_and_not_gone_back_to() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let client = Client::up(options(&all.url()));
    client.grant("x");
    all.servers[0].stop().unwrap();
    all.await_master_after(0);
    moved(&client);
    let held = client.grant("y");
    all.servers[0].cont().unwrap();
    // It takes itself for the master until a Sentinel tells it otherwise.
    client.release("y", held).unwrap();
    client.grant("z");
    assert!(client.sink.all().iter().all(|event| !matches!(event, Event::Down { .. })));
}

#[test]
fn a_stale_sentinel_alone_leads_nobody_to_the_old_master() {
    if skip_servers() {
        return;
    }
    let mut all = RedisSentinels::start().unwrap();
    let client = Client::up(options(&all.url()));
    client.grant("x");
    // One of them sees nothing of the failover.
    all.sentinels[2].stop().unwrap();
    let new = {
        all.sentinels[0].cli(&["SENTINEL", "FAILOVER", "shop"]).unwrap();
        eventually("the two others know the new master", || {
            let said = [all.says(0)?, all.says(1)?];
            (said[0] != 0 && said[0] == said[1]).then_some(said[0])
        })
    };
    moved(&client);
    all.sentinels[0].kill().unwrap();
    all.sentinels[1].kill().unwrap();
    all.sentinels[2].cont().unwrap();
    // The connection to the master lives and is kept.
    let held = client.grant("y");
    client.release("y", held).unwrap();
    let there = all.servers[new].cli(&["EXISTS", "fl:{y}"]).unwrap();
    assert_eq!(there, redis_one(), "at the new master");
}

#[test]
fn a_replica_that_sentinels_name_is_not_used() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    // As if what they said were of yesterday.
    let replica = all.servers[1].address();
    let master = all.servers[0].address();
    let client = Client::open(options(&format!("{}?map={master}={replica}", all.url())));
    let why = client.await_down();
    assert!(why.contains(&replica) && why.contains("it is no master but a slave"), "{why}");
}

#[test]
fn behind_nat_the_map_leads_to_the_servers() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let proxies: Vec<Proxy> =
        all.servers.iter().map(|server| Proxy::start(&server.address()).unwrap()).collect();
    let pairs: Vec<String> = all
        .servers
        .iter()
        .zip(&proxies)
        .map(|(server, proxy)| format!("{}={}", server.address(), proxy.address()))
        .collect();
    let client = Client::up(options(&format!("{}?map={}", all.url(), pairs.join(","))));
    client.grant("x");
    all.failover();
    moved(&client);
    client.grant("y");
    // Requests go by the proxy of the new master.
    let new = all.says(0).unwrap();
    proxies[new].cut();
    client.await_down();
}

#[test]
fn passwords_of_sentinels_and_servers_are_apart() {
    if skip_servers() {
        return;
    }
    let builder = RedisSentinels::builder().password("for-the-servers");
    let all = builder.sentinel_password("for-the-sentinels").start().unwrap();
    let nodes = all.url().trim_start_matches("redis+sentinel://").to_owned();
    let url = format!("redis+sentinel://:for-the-servers@{nodes}");
    let client = Client::up(options(&format!("{url}?sentinel_password=for-the-sentinels")));
    client.grant("x");

    let without = Client::open(options(&url));
    let error = without.await_misconfigured();
    assert_eq!(error.kind(), ErrorKind::Misconfigured);
    assert!(error.message().contains("sentinel_password"), "{error}");
    let wrong = Client::open(options(&format!("{url}?sentinel_password=wrong-one")));
    let error = wrong.await_misconfigured();
    assert!(error.message().contains("sentinel_password"), "{error}");
    assert!(!error.message().contains("wrong-one"), "{error}");
    let other = format!("redis+sentinel://:not-theirs@{nodes}?sentinel_password=for-the-sentinels");
    let error = Client::open(options(&other)).await_misconfigured();
    assert!(error.message().contains(&all.servers[0].address()), "it names the server: {error}");
}

/// The permissions that docs/redis.md names are enough.
#[test]
fn the_documented_permissions_are_enough() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let mut acl = documented_acl("ACL SETUSER locks on");
    acl.push("+role".to_owned());
    for server in &all.servers {
        server.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    }
    let acl = documented_acl("ACL SETUSER locks-sentinel on");
    for sentinel in &all.sentinels {
        sentinel.cli(&acl.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        // Nobody comes in without a login.
        sentinel.cli(&["ACL", "SETUSER", "default", "-@all", "+sentinel", "+ping"]).unwrap();
    }
    let nodes = all.url().replace("redis+sentinel://", "");
    let login = "sentinel_user=locks-sentinel&sentinel_password=a-long-password";
    let url = format!("redis+sentinel://locks:a-long-password@{nodes}?{login}");
    let client = Client::up(options(&url));
    client.grant("x");
    all.failover();
    moved(&client);
    served(&client);
}

#[test]
fn sentinels_and_servers_speak_tls() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::builder().tls().start().unwrap();
    // Each has an authority of its own, and the Sentinels tell the ports without TLS.
    let server = &all.servers[0];
    let ca = all.authority(server).unwrap().display().to_string();
    let nodes: Vec<String> = all.sentinels.iter().map(|it| it.address()).collect();
    let url = format!("rediss+sentinel://{}/shop?sentinel_tls=no&tls_ca={ca}", nodes.join(","));
    let map = format!("{}=127.0.0.1:{}", server.address(), server.tls_port());
    let client = Client::up(options(&format!("{url}&map={map}")));
    client.grant("x");

    let sentinel = &all.sentinels[0];
    let ca = all.authority(sentinel).unwrap().display().to_string();
    let port = sentinel.tls_port();
    let url = format!("redis+sentinel://127.0.0.1:{port}/shop?sentinel_tls=yes&tls_ca={ca}");
    Client::up(options(&url)).grant("y");
    // A Sentinel that speaks TLS only by another port.
    let url = format!("redis+sentinel://{}/shop?sentinel_tls=yes&tls_ca={ca}", sentinel.address());
    let why = Client::open(options(&url)).await_down();
    assert!(why.contains("does this port speak TLS?"), "{why}");
}

#[test]
fn a_name_that_they_do_not_know_and_sentinels_that_are_none_are_told() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let error = Client::open(options(&all.url().replace("/shop", "/bazaar"))).await_misconfigured();
    assert!(error.message().contains("know no master 'bazaar'"), "{error}");
    let server = all.servers[0].address();
    let error =
        Client::open(options(&format!("redis+sentinel://{server}/shop"))).await_misconfigured();
    assert!(error.message().contains("26379"), "{error}");
    let nobody = free_port().unwrap();
    let why =
        Client::open(options(&format!("redis+sentinel://127.0.0.1:{nobody}/shop"))).await_down();
    assert!(why.contains("no Sentinel says which server is 'shop'"), "{why}");
    assert!(why.contains(&format!("127.0.0.1:{nobody}: ")), "{why}");
}

#[test]
fn a_wait_goes_on_over_a_failover() {
    if skip_servers() {
        return;
    }
    let all = RedisSentinels::start().unwrap();
    let [first, second] = [(); 2].map(|()| Client::up(options(&all.url())));
    let held = first.grant("x");
    let waiting = hold();
    assert_eq!(second.acquire("x", waiting, true).unwrap().standing, Standing::Queued);
    all.failover();
    moved(&first);
    moved(&second);
    first.release("x", held).unwrap();
    // The queue went along; the inbox at the new master is subscribed to before anything is asked there.
    second.await_push();
}

#[test]
fn a_master_that_refuses_writes_is_said_so() {
    if skip_servers() {
        return;
    }
    let lines = RedisSentinels::builder().config("min-replicas-to-write 1");
    let all = lines.config("min-replicas-max-lag 1").start().unwrap();
    let client = Client::up(options(&all.url()));
    client.grant("x");
    for replica in &all.servers[1..] {
        replica.stop().unwrap();
    }
    let mut names = 0..;
    let (kind, why) = eventually("it refuses", || {
        let name = format!("y{}", names.next()?);
        match client.acquire(&name, hold(), false) {
            Ok(_) => None,
            refusal => Some(refused(refusal)),
        }
    });
    assert_eq!(kind, RefusalKind::Retry);
    assert!(why.contains("NOREPLICAS"), "{why}");
}

#[test]
fn the_address_is_shown_without_what_is_secret() {
    let url =
        "rediss+sentinel://u:sesame@h1,h2:7/a%20b/3?sentinel_user=s&sentinel_password=sesame2";
    let options = Options::from_url(url);
    assert!(options.is_err(), "a name with a space");
    let options = Options::from_url(&url.replace("a%20b", "shop")).unwrap();
    assert_eq!(options.address.to_string(), "h1:26379,h2:7/shop");
    let shown = format!("{options:?}");
    assert!(!shown.contains("sesame"), "{shown}");
    assert_eq!(options.db, 3);
    let node = Node { host: "h2".to_owned(), port: 7 };
    assert!(shown.contains("h2") && node.to_string() == "h2:7");
}
