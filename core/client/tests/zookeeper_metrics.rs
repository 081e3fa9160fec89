//! What is counted where a watch tells that a lock has come free.

use std::time::Duration;

use fencelock::blocking::Client;
use fencelock_testkit::{ZooKeeper, eventually, skip_servers};

#[test]
fn a_hand_off_between_clients_counts_as_pushed_and_not_as_polled() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::start().unwrap();
    let [one, other] = [(); 2].map(|()| Client::connect(server.url()).unwrap());
    let guard = one.lock("counted").unwrap().acquire().unwrap();
    std::thread::scope(|scope| {
        let lock = other.lock("counted").unwrap();
        let waiter = scope.spawn(move || lock.acquire_timeout(Duration::from_secs(30)).unwrap());
        eventually("a waiter", || {
            let info = one.inspect("counted").unwrap()?;
            (info.waiters.len() == 1).then_some(())
        });
        guard.release().unwrap();
        waiter.join().unwrap().release().unwrap();
    });
    let text = other.metrics().to_prometheus();
    for line in ["fencelock_grants_total{how=\"push\"} 1", "fencelock_grants_total{how=\"poll\"} 0"]
    {
        assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
    }
}
