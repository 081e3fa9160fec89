//! An uncontended acquire and release at Redis.

mod common;

use fencelock_testkit::RedisServer;

fn main() {
    let server = RedisServer::start().unwrap_or_else(|error| panic!("{error}"));
    common::run(fencelock_bench::pair::single(&server.url()));
}
