//! Every way to a Redis server, for processes that do not ignore SIGPIPE.
#![cfg(unix)]

mod piped;

use fencelock_testkit::{RedisServer, skip_servers};

#[test]
fn writer() {
    piped::writer();
}

fn survives(server: &RedisServer, url: &str) {
    piped::survives(url, || {
        for kind in ["normal", "pubsub"] {
            server.cli(&["CLIENT", "KILL", "TYPE", kind]).unwrap();
        }
    });
}

#[test]
fn no_connection_that_goes_ends_a_process() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::start().unwrap();
    survives(&server, &server.url());
    survives(&server, &format!("redis+unix://{}", server.socket().display()));
}

#[test]
fn no_connection_over_tls_that_goes_ends_a_process() {
    if skip_servers() {
        return;
    }
    let server = RedisServer::builder().tls(false).start().unwrap();
    let ca = server.certificates().unwrap().ca.display().to_string();
    let url = format!("rediss://127.0.0.1:{}?tls_ca={ca}", server.tls_port());
    survives(&server, &url);
}
