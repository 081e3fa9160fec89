# shellcheck shell=bash disable=SC2034,SC2154
about="the client, in memory and on one real Redis"

needs() { needs_nextest && needs_redis; }

# The behaviour suite is many small tests: in one process they share one server.
run() {
    local status=0
    nextest -p fencelock --lib || status=$?
    libtest -p fencelock --test behaviour -- memory:: redis:: || status=$?
    return "$status"
}
