//! What is left at the server of a client that has gone: no session, and so no node that others wait
//! behind until it times out.

use std::time::Duration;

use fencelock::blocking;
use fencelock_testkit::{ZooKeeper, eventually, skip_servers};

/// Longer than `eventually` waits.
const LEASE: &str = "?lease=60s";

/// A server and its URL, where there may be one.
fn start() -> Option<(ZooKeeper, String)> {
    if skip_servers() {
        return None;
    }
    let server = ZooKeeper::start().unwrap();
    let url = format!("{}{LEASE}", server.url());
    Some((server, url))
}

fn sessions(server: &ZooKeeper) -> f64 {
    server.counters(0).unwrap()["zk_global_sessions"]
}

fn blocking_use(url: &str, round: usize) -> blocking::Client {
    let client = blocking::Client::connect(url).unwrap();
    let guard = client.lock("left").unwrap().acquire_timeout(Duration::from_secs(20)).unwrap();
    if round.is_multiple_of(2) {
        guard.release().unwrap();
    }
    client
}

#[test]
fn a_client_that_was_closed_has_no_session_any_more() {
    let Some((server, url)) = start() else { return };
    for round in 0..10 {
        blocking_use(&url, round).close();
        assert!(sessions(&server) < 0.5, "round {round}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for round in 0..10 {
        runtime.block_on(async {
            let client = fencelock::Client::connect(&url).await.unwrap();
            let guard = client.lock("left").unwrap().acquire().await.unwrap();
            client.close().await;
            drop(guard);
        });
        assert!(sessions(&server) < 0.5, "round {round}");
    }
}

#[test]
fn a_client_that_was_only_dropped_has_no_session_soon() {
    let Some((server, url)) = start() else { return };
    for round in 0..10 {
        drop(blocking_use(&url, round));
    }
    eventually("the sessions end", || (sessions(&server) < 0.5).then_some(()));
}
