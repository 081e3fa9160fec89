# shellcheck shell=bash disable=SC2034,SC2154
about="one language, in memory and on Redis: C, or that of IN (c, java, node, python)"

needs() {
    needs_redis
    case ${IN:-c} in
    c) ;;
    java) { has mvn && has javac; } || die "a JDK or Maven is missing" ;;
    node) has npm || die "Node with npm is missing" ;;
    python) has python3 || die "Python is missing" ;;
    *) die "IN is c, java, node or python, not '$IN'" ;;
    esac
}

in_c() {
    local status=0 redis socket=$TMPDIR/r.sock url log=$TMPDIR/abi.log
    scripts/native dev && scripts/c-test build abi-test || return 1
    "${REDIS_SERVER:-redis-server}" --port 0 --unixsocket "$socket" --save '' --appendonly no \
        --dir "$TMPDIR" >"$TMPDIR/redis.log" &
    redis=$!
    until [ -S "$socket" ] || ! kill -0 "$redis" 2>/dev/null; do sleep 0.1; done
    for url in memory: "redis+unix://$socket"; do
        local failed=0
        scripts/c-test run abi-test "$url" | tee "$log" || failed=1
        count "$(grep -c '^ok ' "$log")" "$failed" 0
        if [ "$failed" -ne 0 ]; then status=1; fi
    done
    kill "$redis"
    wait "$redis" || true
    return "$status"
}

run() {
    local status=0
    case ${IN:-c} in
    c) in_c || status=$? ;;
    java)
        step "native library of Java" scripts/java native || status=$?
        surefire scripts/java mvn test -pl fencelock -Dfencelock.test.stores=memory,redis || status=$?
        ;;
    node) step "the npm package" node/scripts/test || status=$? ;;
    python)
        scripts/python build || return 1
        # Without FENCELOCK_TEST_ZK it leaves ZooKeeper out.
        step "the Python package" scripts/python pytest -q || status=$?
        ;;
    esac
    return "$status"
}
