//! The way to a ZooKeeper server, for processes that do not ignore SIGPIPE.
#![cfg(unix)]

mod piped;

use fencelock_testkit::{Proxy, ZooKeeper, skip_servers};

#[test]
fn writer() {
    piped::writer();
}

#[test]
fn a_connection_that_breaks_while_it_is_written_to_ends_no_process() {
    if skip_servers() {
        return;
    }
    let server = ZooKeeper::start().unwrap();
    let proxy = Proxy::start(&server.address(0)).unwrap();
    piped::survives(&format!("zk://{}?lease=60s", proxy.address()), || proxy.cut());
}
