//! Promise 11: after a fork the child holds nothing, and leaves the parent's holds alone.
#![cfg(unix)]

mod forked;

use fencelock::ErrorKind;
use fencelock::blocking::Client;
use fencelock_testkit::{RedisServer, in_child, skip_servers};
use forked::check;

/// One test, because a fork concerns every thread of the process.
#[test]
fn p11_a_forked_child_holds_nothing_and_the_parent_keeps_its_own() {
    check("memory:");
    let folder = tempfile::tempdir().unwrap();
    check(&format!("sqlite:{}", folder.path().join("locks.db").display()));
    if !skip_servers() {
        let server = RedisServer::start().unwrap();
        check(&server.url());
        check_again(&server.url());
    }
}

/// A child that connects afresh is a client like any other, with ids of its own.
fn check_again(url: &str) {
    let client = Client::connect(url).unwrap();
    let guard = client.lock("taken").unwrap().acquire().unwrap();
    let parent = client.id().to_owned();
    let fine = in_child(|| {
        let own = Client::connect(url).unwrap();
        let refused = own.lock("taken").unwrap().try_acquire().unwrap_err().kind();
        let free = own.lock("free").unwrap().acquire().unwrap().release();
        refused == ErrorKind::Contended && free.is_ok() && own.id() != parent
    });
    assert!(fine, "in the child");
    guard.release().unwrap();
}
