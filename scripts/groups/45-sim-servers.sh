# shellcheck shell=bash disable=SC2034
about="simulator: its model of Redis compared with a real server"

needs() { needs_nextest && needs_redis; }

run() { nextest --cargo-profile release -p fencelock-sim -E "binary(differential)"; }
