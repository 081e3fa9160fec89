//! What a client counts of a server that is silent, and answers again.

use std::time::Duration;

use fencelock::ServerMetrics;
use fencelock::blocking::Client;
use fencelock_testkit::{RedisServer, eventually, skip_servers};

#[test]
fn a_server_that_stands_still_is_doubted_and_then_connected_again() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    let builder = fencelock::Client::builder(server.url());
    let client: Client =
        builder.request_timeout(Duration::from_millis(200)).connect_blocking().unwrap();
    let told = |client: &Client| -> ServerMetrics {
        let mut servers = client.metrics().servers;
        assert_eq!(servers.len(), 1, "{servers:?}");
        servers.remove(0)
    };
    client.lock("counted").unwrap().acquire().unwrap().release().unwrap();
    let before = told(&client);
    assert_eq!((before.name.as_str(), before.connected, before.doubts), ("redis", true, 0));
    assert!(before.requests >= 2 && before.round_trip > Duration::ZERO, "{before:?}");

    server.stop().unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| client.lock("counted").unwrap().acquire());
        eventually("the silent server is doubted", || {
            let now = told(&client);
            (now.doubts > 0 && !now.connected).then_some(())
        });
        server.cont().unwrap();
        waits.join().unwrap().unwrap().release().unwrap();
    });
    let after = told(&client);
    assert!(after.connected && after.requests > before.requests, "{after:?}");
    let text = client.metrics().to_prometheus();
    let doubts = format!("fencelock_server_doubts_total{{server=\"redis\"}} {}", after.doubts);
    assert!(text.lines().any(|line| line == doubts), "{doubts} is not in\n{text}");
}
