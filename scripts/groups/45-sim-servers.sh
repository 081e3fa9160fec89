# shellcheck shell=bash disable=SC2034
about="simulator: its models of Redis and ZooKeeper compared with real servers"

needs() { needs_nextest && needs_redis; }

run() { nextest --cargo-profile sim -p fencelock-sim -E "binary(/^differential/)"; }
