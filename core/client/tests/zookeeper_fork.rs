//! A fork beside a session of ZooKeeper: the client crate beneath does not outlive one.
#![cfg(unix)]

mod forked;

use fencelock::ErrorKind;
use fencelock::blocking::Client;
use fencelock_testkit::{ZooKeeper, in_child, skip_servers};

/// One test, because a fork concerns every thread of the process.
#[test]
fn p11_a_forked_child_is_told_to_fork_first_and_the_parents_session_goes_on() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::start().unwrap();
    let url = server.url();
    let sessions = || server.counters(0).unwrap()["zk_global_sessions"];
    // Who has not connected yet may fork: the child is a client like any other.
    let fine = in_child(|| {
        let client = Client::connect(&url).unwrap();
        client.lock("early").unwrap().acquire().unwrap().release().is_ok()
    });
    assert!(fine, "in the child that came first");
    forked::check(&url);

    let client = Client::connect(&url).unwrap();
    let lock = client.lock("taken").unwrap();
    let guard = lock.acquire().unwrap();
    let (token, before) = (guard.token(), sessions());
    let fine = in_child(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let refused = |error: &fencelock::Error| {
            error.kind() == ErrorKind::Unsupported
                && error.message().contains("fork before the first connection")
        };
        refused(&Client::connect(&url).unwrap_err())
            && refused(&runtime.block_on(fencelock::Client::connect(&url)).unwrap_err())
            && refused(&runtime.block_on(fencelock::survey(&url)).unwrap_err())
    });
    assert!(fine, "in the child");
    // Neither the session's socket nor the session has suffered.
    client.ping().unwrap();
    assert_eq!((guard.check().unwrap(), sessions()), (token, before));
    assert_eq!(client.metrics().reconnects, 0);
    guard.release().unwrap();
    assert!(!lock.is_locked().unwrap());
}
