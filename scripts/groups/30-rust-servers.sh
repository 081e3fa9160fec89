# shellcheck shell=bash disable=SC2034,SC2154
about="Rust: against servers of our own (Redis, alone, behind Sentinels, in a cluster and as a quorum)"

needs() { needs_nextest && needs_redis; }

run() {
    local status=0
    nextest --workspace --exclude fencelock-sim \
        -E "($server_tests) - ($zookeeper_tests | $several_tests)" || status=$?
    libtest -p fencelock --test behaviour sentinel:: || status=$?
    libtest -p fencelock --test behaviour cluster:: || status=$?
    libtest -p fencelock --test behaviour quorum:: || status=$?
    return "$status"
}
