# shellcheck shell=bash disable=SC2034,SC2154
about="Rust: against servers of our own (Redis)"

needs() { needs_nextest && needs_redis; }

run() { nextest --workspace --exclude fencelock-sim -E "($server_tests) - ($zookeeper_tests)"; }
