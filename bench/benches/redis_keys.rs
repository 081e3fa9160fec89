//! 64 tasks, each with a lock of its own at one Redis.

mod common;

use fencelock_testkit::RedisServer;

fn main() {
    let server = RedisServer::start().unwrap_or_else(|error| panic!("{error}"));
    common::run(fencelock_bench::pair::many(&server.url()));
}
