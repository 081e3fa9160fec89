//! A lock that passes from one process to another.

mod common;

use std::path::Path;

use fencelock_testkit::RedisServer;

fn main() {
    let server = RedisServer::start().unwrap_or_else(|error| panic!("{error}"));
    let program = Path::new(env!("CARGO_BIN_EXE_fencelock-bench"));
    common::run(fencelock_bench::handoff::plans(program, &server.url()));
}
