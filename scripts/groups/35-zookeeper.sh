# shellcheck shell=bash disable=SC2034,SC2154
about="ZooKeeper: real ensembles with real faults, Curator beside ours"

needs() {
    needs_nextest && needs_zookeeper
    has mvn || die "Maven, which builds Curator's driver, is missing: on Debian, apt-get install maven"
}

run() {
    local status=0
    step "Curator's driver" scripts/curator || status=$?
    # The behaviour suite is many small tests: in one process they share one server.
    libtest -p fencelock --test behaviour zookeeper:: || status=$?
    nextest --workspace --exclude fencelock-sim \
        -E "($zookeeper_tests) - binary(behaviour)" || status=$?
    return "$status"
}
