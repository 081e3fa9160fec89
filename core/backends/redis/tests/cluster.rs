//! The store where its servers are a cluster.

mod common;

use std::time::Duration;

use common::Client;
use fencelock_redis::Options;
use fencelock_testkit::{Fault, Proxy, RedisCluster, skip_servers};

/// As with one server, whose attempts may take longer each time: there it takes fewer round trips.
#[test]
fn a_cluster_is_reached_although_its_map_takes_longer_than_a_connection_may() {
    if skip_servers() {
        return;
    }
    let cluster = RedisCluster::builder().masters_alone().start().unwrap();
    let servers: Vec<String> = cluster.servers.iter().map(|server| server.address()).collect();
    let proxies: Vec<Proxy> = servers.iter().map(|it| Proxy::start(it).unwrap()).collect();
    let (mut nodes, mut pairs) = (Vec::new(), Vec::new());
    for (server, proxy) in servers.iter().zip(&proxies) {
        proxy.set(Fault::Delay(Duration::from_millis(100)));
        nodes.push(proxy.address().to_string());
        pairs.push(format!("{server}={}", proxy.address()));
    }
    let (nodes, map) = (nodes.join(","), pairs.join(","));
    let url = format!("redis+cluster://{nodes}?connect_timeout=300ms&map={map}");
    Client::up(Options::from_url(&url).unwrap());
}
